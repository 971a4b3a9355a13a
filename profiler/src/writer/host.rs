//! Use of the host's resources between heartbeats, and the JVM's part of it, from the kernel's counters.

use std::fs;
use std::path::Path;

use procfs::process::Process;
use procfs::{CpuPressure, Current, DiskStat, IoPressure, MemoryPressure, PressureRecord};
use unfuse_format::HostRow;

use super::cpu_limit::{CpuLimit, Groups};
use super::cpu_set::{CpuCounters, CpuSet};
use crate::clock::{EpochOffset, monotonic_ns};

/// The kernel counts sectors of this size for every disk, bytes.
const SECTOR: u64 = 512;

/// Reads the counters and remembers the last ones.
#[derive(Debug)]
pub(super) struct HostMeter {
    jvm: u32,
    groups: Groups,
    last: Option<HostCounters>,
    /// CPU time of garbage collection since the last row, ns.
    gc_ns: u64,
    /// CPU time of just-in-time compilation since the last row, ns; `None` if it was not measured.
    jit_ns: Option<u64>,
}

/// Counters that only grow; those that cannot be read stay 0.
#[derive(Debug, Default, Clone, PartialEq)]
struct HostCounters {
    at_ns: u64,
    cpus: u32,
    cpu_ms: u64,
    stolen_ms: u64,
    limit: Option<CpuLimit>,
    set: Option<SetCounters>,
    jvm: Usage,
    disk_read_bytes: u64,
    disk_write_bytes: u64,
    /// Time with active requests, ms, by disk.
    disk_busy_ms: Vec<u64>,
    network_in_bytes: u64,
    network_out_bytes: u64,
    network_bytes_per_s: Option<u64>,
    /// Pressure stall time, µs: CPU, IO, memory.
    pressure_us: [Option<u64>; 3],
}

/// The CPUs on which the JVM may run, if these are not all.
#[derive(Debug, Clone, PartialEq)]
struct SetCounters {
    set: CpuSet,
    cpus: u32,
    cpu_ms: u64,
    stolen_ms: u64,
}

impl SetCounters {
    fn new(jvm: u32, kernel: &CpuCounters) -> Option<Self> {
        let set = CpuSet::of(jvm)?.part_of(&kernel.online)?;
        let own = || kernel.online.iter().filter(|(cpu, _)| set.has(*cpu));
        Some(Self {
            cpus: own().count() as u32,
            cpu_ms: own().map(|(_, ticks)| ms(ticks.busy)).sum(),
            stolen_ms: own().map(|(_, ticks)| ms(ticks.stolen)).sum(),
            set,
        })
    }
}

/// Resources used by processes.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
struct Usage {
    cpu_ms: u64,
    read_bytes: u64,
    write_bytes: u64,
}

impl HostMeter {
    /// A meter that looks for the first time now; `descendants` are the JVM's living ones.
    pub(super) fn new(jvm: u32, descendants: &[u32]) -> Self {
        let mut groups = Groups::default();
        Self {
            jvm,
            last: HostCounters::read(jvm, descendants, &mut groups),
            groups,
            gc_ns: 0,
            jit_ns: None,
        }
    }

    /// The CPUs on which the JVM might run at the last look, if these were not all.
    pub(super) fn cpu_set(&self) -> Option<&CpuSet> {
        Some(&self.last.as_ref()?.set.as_ref()?.set)
    }

    pub(super) fn add_gc(&mut self, ns: u64) {
        self.gc_ns += ns;
    }

    pub(super) fn add_jit(&mut self, ns: u64) {
        *self.jit_ns.get_or_insert(0) += ns;
    }

    /// Use since the last call, with that of the JVM's living descendants; `None` if the kernel has no counters, or the JVM
    /// has ended: then its last use is unknown.
    pub(super) fn look(&mut self, clock: EpochOffset, descendants: &[u32]) -> Option<HostRow> {
        let state = Process::new(self.jvm.cast_signed()).and_then(|jvm| jvm.stat());
        if state.map_or(true, |stat| matches!(stat.state, 'Z' | 'X')) {
            return None;
        }
        let now = HostCounters::read(self.jvm, descendants, &mut self.groups)?;
        let last = self.last.replace(now.clone())?;
        let gc_ns = std::mem::take(&mut self.gc_ns);
        let jit_ns = self.jit_ns.take();
        Some(HostRow {
            start_ns: clock.epoch_ns(last.at_ns),
            end_ns: clock.epoch_ns(now.at_ns),
            gc_cpu_s: gc_ns as f64 / 1e9,
            jit_cpu_s: jit_ns.map(|ns| ns as f64 / 1e9),
            ..now.since(&last)
        })
    }
}

impl HostCounters {
    fn read(jvm: u32, descendants: &[u32], groups: &mut Groups) -> Option<Self> {
        let kernel = CpuCounters::read()?;
        let mut counters = Self {
            at_ns: monotonic_ns(),
            cpus: kernel.online.len() as u32,
            cpu_ms: ms(kernel.all.busy),
            stolen_ms: ms(kernel.all.stolen),
            limit: groups.limit(jvm),
            set: SetCounters::new(jvm, &kernel),
            jvm: used_by(std::iter::once(jvm).chain(descendants.iter().copied())),
            pressure_us: [
                CpuPressure::current().ok().map(|p| p.some),
                IoPressure::current().ok().map(|p| p.some),
                MemoryPressure::current().ok().map(|p| p.some),
            ]
            .map(|record| record.map(|record: PressureRecord| record.total)),
            ..Self::default()
        };
        counters.add_disks(&procfs::diskstats().unwrap_or_default());
        counters.add_network();
        Some(counters)
    }

    /// Adds whole disks: devices that consist of parts of them would count twice.
    fn add_disks(&mut self, disks: &[DiskStat]) {
        let is_disk = |disk: &&DiskStat| {
            Path::new("/sys/block")
                .join(&disk.name)
                .join("device")
                .exists()
        };
        for disk in disks.iter().filter(is_disk) {
            self.disk_read_bytes += disk.sectors_read * SECTOR;
            self.disk_write_bytes += disk.sectors_written * SECTOR;
            self.disk_busy_ms.push(disk.time_in_progress);
        }
    }

    /// Adds network cards; in a container, which has none, every interface except the loopback. What a virtual interface
    /// says about its speed is a constant of its driver.
    fn add_network(&mut self) {
        let Ok(interfaces) = procfs::net::dev_status() else {
            return;
        };
        let sys = |name: &str, file: &str| Path::new("/sys/class/net").join(name).join(file);
        let has_card = interfaces.keys().any(|name| sys(name, "device").exists());
        let counts = |name: &str| match has_card {
            true => sys(name, "device").exists(),
            false => name != "lo",
        };
        for (name, interface) in interfaces.iter().filter(|(name, _)| counts(name)) {
            self.network_in_bytes += interface.recv_bytes;
            self.network_out_bytes += interface.sent_bytes;
            let speed = || -> Option<i64> {
                let text = fs::read_to_string(sys(name, "speed")).ok()?;
                text.trim().parse().ok().filter(|megabits| *megabits > 0)
            };
            let megabits = has_card.then(speed).flatten();
            if let Some(megabits) = megabits {
                *self.network_bytes_per_s.get_or_insert(0) += megabits.unsigned_abs() * 125_000;
            }
        }
    }

    /// The growth since `before`. A counter that has fallen (a child ended) has not grown.
    fn since(&self, before: &Self) -> HostRow {
        let s = |now: u64, then: u64, per_s: f64| now.saturating_sub(then) as f64 / per_s;
        let pressure = |index: usize| {
            let (now, then) = self.pressure_us[index].zip(before.pressure_us[index])?;
            Some(s(now, then, 1e6))
        };
        let busy = self.disk_busy_ms.iter().zip(&before.disk_busy_ms);
        let limits = self.limit.as_ref().zip(before.limit.as_ref());
        let limits = limits.filter(|(now, then)| now.group == then.group);
        let sets = self.set.as_ref().zip(before.set.as_ref());
        let sets = sets.filter(|(now, then)| now.set == then.set);
        let periods = |(now, then): (&CpuLimit, &CpuLimit)| {
            let all = now.periods.saturating_sub(then.periods);
            now.throttled.saturating_sub(then.throttled) as f64 / all.max(1) as f64
        };
        HostRow {
            cpus: self.cpus,
            cpu_s: s(self.cpu_ms, before.cpu_ms, 1e3),
            jvm_cpu_s: s(self.jvm.cpu_ms, before.jvm.cpu_ms, 1e3),
            cpu_limit: limits.map(|(now, _)| now.cpus),
            cpu_group: limits.map(|(now, _)| now.group.clone()),
            group_cpu_s: limits.map(|(now, then)| s(now.used_us, then.used_us, 1e6)),
            throttled_part: limits.map(periods),
            throttled_s: limits.map(|(now, then)| s(now.throttled_us, then.throttled_us, 1e6)),
            stolen_cpu_s: Some(s(self.stolen_ms, before.stolen_ms, 1e3)),
            cpu_set: sets.map(|(now, _)| now.set.list()),
            set_cpus: sets.map(|(now, _)| now.cpus),
            set_cpu_s: sets.map(|(now, then)| s(now.cpu_ms, then.cpu_ms, 1e3)),
            set_stolen_cpu_s: sets.map(|(now, then)| s(now.stolen_ms, then.stolen_ms, 1e3)),
            disk_read_bytes: self.disk_read_bytes.saturating_sub(before.disk_read_bytes),
            disk_write_bytes: self
                .disk_write_bytes
                .saturating_sub(before.disk_write_bytes),
            jvm_disk_read_bytes: self.jvm.read_bytes.saturating_sub(before.jvm.read_bytes),
            jvm_disk_write_bytes: self.jvm.write_bytes.saturating_sub(before.jvm.write_bytes),
            disk_busy_s: busy
                .map(|(now, then)| s(*now, *then, 1e3))
                .fold(0.0, f64::max),
            network_in_bytes: self
                .network_in_bytes
                .saturating_sub(before.network_in_bytes),
            network_out_bytes: self
                .network_out_bytes
                .saturating_sub(before.network_out_bytes),
            network_bytes_per_s: self.network_bytes_per_s,
            cpu_pressure_s: pressure(0),
            io_pressure_s: pressure(1),
            memory_pressure_s: pressure(2),
            ..HostRow::default()
        }
    }
}

/// Ticks of the kernel in ms.
fn ms(ticks: u64) -> u64 {
    ticks.saturating_mul(1000 / procfs::ticks_per_second().max(1))
}

/// Resources used by processes, with those that they have waited for.
fn used_by(pids: impl Iterator<Item = u32>) -> Usage {
    let mut sum = Usage::default();
    for process in pids.filter_map(|pid| Process::new(pid.cast_signed()).ok()) {
        if let Ok(stat) = process.stat() {
            let waited_for = (stat.cutime.max(0) + stat.cstime.max(0)).unsigned_abs();
            sum.cpu_ms += ms(stat.utime + stat.stime + waited_for);
        }
        if let Ok(io) = process.io() {
            sum.read_bytes += io.read_bytes;
            sum.write_bytes += io.write_bytes.saturating_sub(io.cancelled_write_bytes);
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn this_process_burns_and_writes_and_is_seen() {
        let mut meter = HostMeter::new(std::process::id(), &[]);
        let dir = tempfile::tempdir().unwrap();
        let mut file = fs::File::create(dir.path().join("file")).unwrap();
        let until = Instant::now() + Duration::from_millis(300);
        let mut written = 0;
        while Instant::now() < until {
            if written < 8 << 20 {
                file.write_all(&[7; 1 << 16]).unwrap();
                written += 1 << 16;
            }
        }
        file.sync_all().unwrap();
        meter.add_jit(500_000_000);
        let row = meter.look(EpochOffset::measure(), &[]).unwrap();
        assert!(row.cpus > 0);
        assert_eq!(row.jit_cpu_s, Some(0.5));
        assert!(row.end_ns - row.start_ns >= 300_000_000);
        assert!(row.jvm_cpu_s > 0.01, "{row:?}");
        assert!(row.cpu_s > 0.0, "{row:?}");
        let seconds = (row.end_ns - row.start_ns) as f64 / 1e9;
        // Ticks of several counters.
        assert!(row.cpu_s <= f64::from(row.cpus) * seconds + 0.5, "{row:?}");
    }

    #[test]
    fn counters_that_fall_have_not_grown() {
        let before = HostCounters {
            cpu_ms: 500,
            disk_busy_ms: vec![10, 20],
            pressure_us: [Some(1_000_000), None, Some(5)],
            ..HostCounters::default()
        };
        let now = HostCounters {
            cpu_ms: 1500,
            disk_busy_ms: vec![510, 1020],
            pressure_us: [Some(1_500_000), Some(7), None],
            ..HostCounters::default()
        };
        let row = now.since(&before);
        assert_eq!((row.cpu_s, row.disk_busy_s), (1.0, 1.0));
        assert_eq!((row.cpu_pressure_s, row.io_pressure_s), (Some(0.5), None));
        assert_eq!(before.since(&now).cpu_s, 0.0);
        assert_eq!((row.cpu_set, row.set_cpus), (None, None));
    }

    #[test]
    fn a_set_counts_for_itself_while_it_stays_the_same() {
        let counters = |set: CpuSet, cpu_ms, stolen_ms| HostCounters {
            set: Some(SetCounters {
                set,
                cpus: 2,
                cpu_ms,
                stolen_ms,
            }),
            ..HostCounters::default()
        };
        let own = CpuSet::of(std::process::id()).unwrap();
        let before = counters(own.clone(), 500, 100);
        let row = counters(own.clone(), 1500, 350).since(&before);
        assert_eq!((row.cpu_set, row.set_cpus), (Some(own.list()), Some(2)));
        assert_eq!(
            (row.set_cpu_s, row.set_stolen_cpu_s),
            (Some(1.0), Some(0.25))
        );
        let row = counters(CpuSet::default(), 1500, 350).since(&before);
        assert_eq!((row.cpu_set, row.set_cpu_s), (None, None));
    }
}
