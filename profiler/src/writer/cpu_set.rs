//! The CPUs on which a process may run: a CPU set, as static CPU managers give to containers, or an affinity.

use std::fs;

use procfs::process::Process;

use super::threads_of;

/// The threads of a process with more are not read.
const MOST_THREADS: usize = 64;

/// Ranges of CPUs, both ends included, ascending.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct CpuSet(Vec<(u32, u32)>);

/// Counters of `/proc/stat`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct CpuCounters {
    /// Of all CPUs together.
    pub(super) all: CpuTicks,
    /// Of those that are online, with their numbers.
    pub(super) online: Vec<(u32, CpuTicks)>,
}

/// Time of CPUs, ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct CpuTicks {
    /// In which they did something.
    pub(super) busy: u64,
    pub(super) stolen: u64,
}

impl CpuCounters {
    /// Reads the counters; `None` if the kernel has none.
    pub(super) fn read() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines().map_while(|line| line.strip_prefix("cpu"));
        let all = CpuTicks::parse(lines.next()?.split_ascii_whitespace());
        let online = lines.filter_map(|line| {
            let mut fields = line.split_ascii_whitespace();
            let number = fields.next()?.parse().ok()?;
            Some((number, CpuTicks::parse(fields)))
        });
        Some(Self {
            all,
            online: online.collect(),
        })
    }
}

impl CpuTicks {
    /// Parses `user nice system idle iowait irq softirq steal …`.
    fn parse<'a>(fields: impl Iterator<Item = &'a str>) -> Self {
        let ticks: Vec<u64> = fields.map_while(|field| field.parse().ok()).collect();
        let of = |index: usize| ticks.get(index).copied().unwrap_or(0);
        Self {
            busy: [0, 1, 2, 5, 6]
                .map(of)
                .into_iter()
                .fold(0, u64::saturating_add),
            stolen: of(7),
        }
    }
}

impl CpuSet {
    /// The set of a process; `None` if it cannot be read.
    pub(super) fn of(pid: u32) -> Option<Self> {
        let status = Process::new(pid.cast_signed()).ok()?.status().ok()?;
        status.cpus_allowed_list.map(Self)
    }

    /// Itself if it has some of the CPUs that are online, but not all. `None` also where `/proc/stat` has numbers of its own,
    /// as in containers of LXC: then the set has as many CPUs as there are, but others.
    pub(super) fn part_of(self, online: &[(u32, CpuTicks)]) -> Option<Self> {
        let own = online.iter().filter(|(cpu, _)| self.has(*cpu)).count();
        let size: u64 = self
            .0
            .iter()
            .map(|(first, last)| u64::from(last.saturating_sub(*first)) + 1)
            .sum();
        let is_part = own > 0 && own < online.len() && size != online.len() as u64;
        is_part.then_some(self)
    }

    pub(super) fn has(&self, cpu: u32) -> bool {
        let mut ranges = self.0.iter();
        ranges.any(|(first, last)| (*first..=*last).contains(&cpu))
    }

    /// Whether the other one has a CPU of this one.
    fn meets(&self, other: &Self) -> bool {
        let meets = |(a, b): &(u32, u32), (c, d): &(u32, u32)| a <= d && c <= b;
        let mut ranges = self.0.iter();
        ranges.any(|own| other.0.iter().any(|range| meets(own, range)))
    }

    /// Whether no thread of a process may run on a CPU of this set. Not known of a process with many threads.
    pub(super) fn excludes(&self, pid: u32) -> bool {
        if Self::of(pid).is_none_or(|own| own.meets(self)) {
            return false;
        }
        let Some(threads) = threads_of(pid, MOST_THREADS) else {
            return false;
        };
        let elsewhere = |thread: &u32| Self::of(*thread).is_none_or(|own| !own.meets(self));
        threads.iter().all(elsewhere)
    }

    /// As the kernel lists it: `0-3,8`.
    pub(super) fn list(&self) -> String {
        let ranges = self.0.iter().map(|(first, last)| match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        });
        ranges.collect::<Vec<_>>().join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn online(numbers: &[u32]) -> Vec<(u32, CpuTicks)> {
        let cpus = numbers.iter();
        cpus.map(|number| (*number, CpuTicks::default())).collect()
    }

    #[test]
    fn sets_meet_where_they_share_a_cpu() {
        let set = CpuSet(vec![(0, 1), (4, 4)]);
        assert_eq!(set.list(), "0-1,4");
        assert!(set.has(4) && !set.has(3));
        for (ranges, meets) in [(vec![(2, 3)], false), (vec![(2, 4)], true), (vec![], false)] {
            let other = CpuSet(ranges);
            assert_eq!((set.meets(&other), other.meets(&set)), (meets, meets));
        }
    }

    #[test]
    fn only_a_part_of_the_cpus_is_a_set() {
        let is_part = |ranges: &[(u32, u32)], numbers: &[u32]| {
            let set = CpuSet(ranges.to_vec());
            set.part_of(&online(numbers)).is_some()
        };
        assert!(is_part(&[(0, 1)], &[0, 1, 2, 3]));
        assert!(is_part(&[(2, 2)], &[0, 2, 4, 6]));
        assert!(!is_part(&[(0, 3)], &[0, 1, 2, 3]));
        // More CPUs are possible than there are.
        assert!(!is_part(&[(0, 127)], &[0, 1]));
        // Some are offline.
        assert!(!is_part(&[(0, 0), (2, 2), (4, 4), (6, 6)], &[0, 2, 4, 6]));
        // Other numbers.
        assert!(!is_part(&[(8, 11)], &[0, 1, 2, 3]));
        assert!(!is_part(&[(2, 5)], &[0, 1, 2, 3]));
    }

    #[test]
    fn counters_have_the_numbers_of_their_cpus() {
        let text = "cpu  110 20 3 4000 500 6 7 90 0 0\n\
                    cpu0 10 0 0 0 0 0 0 10 0 0\n\
                    cpu12 100 20 3 4000 500 6 7 80 0 0\n\
                    intr 77 0\n";
        let ticks = |busy, stolen| CpuTicks { busy, stolen };
        let counters = CpuCounters {
            all: ticks(146, 90),
            online: vec![(0, ticks(10, 10)), (12, ticks(136, 80))],
        };
        assert_eq!(CpuCounters::parse(text), Some(counters));
        assert_eq!(CpuCounters::parse("intr 77 0\n"), None);
        let here = CpuCounters::read().unwrap();
        assert!(here.all.busy > 0 && !here.online.is_empty());
    }

    #[test]
    fn a_process_runs_where_it_may() {
        let own = CpuSet::of(std::process::id()).unwrap();
        assert!(!own.excludes(std::process::id()));
        let elsewhere = CpuSet(vec![(u32::MAX, u32::MAX)]);
        // This test has few threads.
        assert!(elsewhere.excludes(std::process::id()));
    }
}
