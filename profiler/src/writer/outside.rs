//! What processes beside the profiled JVM use of its host: the largest users of each resource, from /proc.
//!
//! A scan reads `/proc/PID/stat` of every process, and more only of those that have done something since the last scan.
//! Processes come and go at any time: what cannot be read counts as ended.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::PathBuf;

use unfuse_format::OutsideRow;

use self::bytes::{bytes_of, own_bytes_of};
use self::children::{Child, Ended, children, ended_children};
use self::home::{Home, MOST_LIST, read_start, shortened};
use self::stat::ProcessStat;
use super::cpu_set::CpuSet;
use crate::clock::{EpochOffset, monotonic_ns};

mod bytes;
mod children;
mod home;
mod stat;

/// Scans are not closer to each other than this, whatever the heartbeat, ns.
const SCAN_EVERY_NS: u64 = 1_000_000_000;
/// Processes that a scan looks at.
const MOST_PROCESSES: usize = 4096;
/// Groups that get a row for each resource.
const MOST_GROUPS: usize = 5;
/// A group gets no row for less than this part of what all groups used of a resource.
const LEAST_PART: f64 = 0.02;
/// A group gets no row for less than this part of one CPU.
const LEAST_CPU: f64 = 0.01;
/// A group gets no row for fewer bytes.
const LEAST_BYTES: i64 = 1 << 20;
/// Looks at the processes of the host, and remembers what they had used at the last look.
#[derive(Debug)]
pub(super) struct OutsideMeter {
    jvm: u32,
    last: Option<Scan>,
    users: HashMap<u32, String>,
}

/// The processes at one time.
#[derive(Debug, Default)]
struct Scan {
    at_ns: u64,
    processes: HashMap<u32, Seen>,
    /// Whether there were more.
    is_part: bool,
}

/// A process at a scan.
#[derive(Debug, Clone)]
struct Seen {
    stat: ProcessStat,
    /// Bytes read and written so far, when it was last known to be active; `None` if they cannot be read.
    bytes: Option<[u64; 2]>,
    /// The part of them that its own threads have moved, without its ended children. Only of processes with few threads that have
    /// or had children.
    own_bytes: Option<[u64; 2]>,
    /// Known once it has used something.
    home: Option<Home>,
    /// One of its children, whose name stands for those that begin and end between two scans.
    child: Option<Child>,
}

/// Processes that count as one: the nearest `java`, the name of the program, and where they belong.
type Group = (Option<u32>, String, Home);

/// What a process is called in rows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ProcessName(Group);

/// The names of processes at one scan.
pub(super) struct ProcessNames<'a> {
    last: Option<&'a Scan>,
    kin: Option<Ancestors>,
}

impl ProcessNames<'_> {
    /// The name of a process; none for the JVM, its descendants, and processes that the scan did not see.
    pub(super) fn name_of(&self, pid: u32) -> Option<ProcessName> {
        let java = self.kin.as_ref()?.outside(pid)?;
        let seen = self.last?.processes.get(&pid)?;
        let home = seen.home.clone().unwrap_or_else(|| Home::of(pid));
        Some(ProcessName((java, shown_command(&seen.stat), home)))
    }
}

/// What a group has used between two scans.
#[derive(Debug, Default, Clone, Copy)]
struct Used {
    processes: u32,
    ticks: u64,
    /// Of processes that may run on the JVM's set of CPUs; none if it has none.
    set_ticks: Option<u64>,
    bytes: Option<[u64; 2]>,
    pages: i64,
}

impl OutsideMeter {
    /// A meter that looks for the first time now, if there will be heartbeats.
    pub(super) fn new(jvm: u32, beats: bool) -> Self {
        let mut meter = Self {
            jvm,
            last: None,
            users: HashMap::new(),
        };
        if beats {
            let first = meter.scan();
            meter.last = Some(first);
        }
        meter
    }

    /// The largest users since the last look; none if that was a moment ago. If the JVM may run on a set of the CPUs only, rows
    /// also have the CPU time of processes that may run there.
    pub(super) fn look(&mut self, clock: EpochOffset, set: Option<&CpuSet>) -> Vec<OutsideRow> {
        let since = self.last.as_ref().map(|last| last.at_ns);
        if since.is_some_and(|at| monotonic_ns().saturating_sub(at) < SCAN_EVERY_NS) {
            return Vec::new();
        }
        let mut now = self.scan();
        let Some(last) = self.last.take() else {
            self.last = Some(now);
            return Vec::new();
        };
        let groups = groups(self.jvm, set, &last, &mut now);
        let seconds = now.at_ns.saturating_sub(last.at_ns) as f64 / 1e9;
        let chosen = largest(&groups, seconds);
        let rows = groups
            .into_iter()
            .filter(|(group, _)| chosen.contains(group));
        let rows: Vec<_> = rows
            .map(|(group, used)| OutsideRow {
                start_ns: clock.epoch_ns(last.at_ns),
                end_ns: clock.epoch_ns(now.at_ns),
                ..self.row(group, used)
            })
            .collect();
        self.last = Some(now);
        rows
    }

    /// The JVM's descendants that lived at the last look.
    pub(super) fn descendants(&self) -> Vec<u32> {
        let Some(last) = &self.last else {
            return Vec::new();
        };
        let kin = Ancestors::new(self.jvm, last);
        let pids = last.processes.keys().copied();
        pids.filter(|pid| *pid != self.jvm && kin.outside(*pid).is_none())
            .collect()
    }

    /// The names of the processes that the last scan saw.
    pub(super) fn names(&self) -> ProcessNames<'_> {
        let last = self.last.as_ref();
        ProcessNames {
            kin: last.map(|last| Ancestors::new(self.jvm, last)),
            last,
        }
    }

    /// The columns of a row that name a process.
    pub(super) fn named(&mut self, name: ProcessName) -> OutsideRow {
        self.row(name.0, Used::default())
    }

    fn scan(&self) -> Scan {
        let mut scan = Scan {
            at_ns: monotonic_ns(),
            ..Scan::default()
        };
        let mut buffer = Vec::with_capacity(1024);
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        for pid in pids {
            if scan.processes.len() >= MOST_PROCESSES {
                scan.is_part = true;
                break;
            }
            let Some(stat) = ProcessStat::read(pid, &mut buffer) else {
                continue;
            };
            let new = Seen {
                stat,
                bytes: None,
                own_bytes: None,
                home: None,
                child: None,
            };
            scan.processes.insert(pid, new);
        }
        self.complete(&mut scan);
        scan
    }

    /// Reads the bytes of processes that were active since the last scan, and keeps what was known of the others.
    fn complete(&self, scan: &mut Scan) {
        let none = Scan::default();
        let last = self.last.as_ref().unwrap_or(&none);
        let ended = ended_children(last, scan);
        let living = scan.processes.values().map(|seen| seen.stat.parent);
        let parents: HashSet<u32> = living.chain(ended.keys().copied()).collect();
        for (pid, now) in &mut scan.processes {
            let before = last.before(*pid, now);
            // Bytes of an ended child become its parent's.
            let idle = before.is_some_and(|before| before.stat.is_as_active_as(&now.stat))
                && !ended.contains_key(pid);
            // Its children may all have begun and ended between two scans.
            let inherits = (parents.contains(pid) || now.stat.waited_ticks > 0) && *pid != self.jvm;
            (now.bytes, now.own_bytes) = match before {
                Some(before) if idle => (before.bytes, before.own_bytes),
                _ if inherits => (bytes_of(*pid), own_bytes_of(*pid)),
                _ => (bytes_of(*pid), None),
            };
            // A process moves to its group and user before it becomes another program.
            let home = before.filter(|before| before.stat.command == now.stat.command);
            now.home = home.and_then(|before| before.home.clone());
        }
    }

    fn row(&mut self, (jvm, command, home): Group, used: Used) -> OutsideRow {
        let per_s = procfs::ticks_per_second().max(1) as f64;
        let page = i64::try_from(procfs::page_size()).unwrap_or(4096);
        OutsideRow {
            command,
            user: self.user(home.uid),
            cgroup: home.cgroup,
            container: home.container,
            jvm,
            processes: used.processes,
            cpu_s: used.ticks as f64 / per_s,
            set_cpu_s: used.set_ticks.map(|ticks| ticks as f64 / per_s),
            read_bytes: used.bytes.map(|[read, _]| read),
            write_bytes: used.bytes.map(|[_, written]| written),
            resident_growth_bytes: used.pages.saturating_mul(page),
            ..OutsideRow::default()
        }
    }

    /// The name of a user. Only of the machine's own list: to ask others for it can take seconds.
    fn user(&mut self, uid: u32) -> String {
        if self.users.is_empty() {
            let list = read_start(&PathBuf::from("/etc/passwd"), MOST_LIST).unwrap_or_default();
            let users = list.lines().filter_map(|line| {
                let mut fields = line.split(':');
                let name = fields.next()?;
                Some((fields.nth(1)?.parse().ok()?, shortened(name)))
            });
            // The first line of a user counts.
            for (uid, name) in users {
                self.users.entry(uid).or_insert(name);
            }
        }
        let name = self.users.entry(uid);
        name.or_insert_with(|| uid.to_string()).clone()
    }
}

impl Scan {
    /// What was seen of a process before.
    fn before(&self, pid: u32, now: &Seen) -> Option<&Seen> {
        let before = self.processes.get(&pid)?;
        (before.stat.started == now.stat.started).then_some(before)
    }
}

/// The growth of each group between two scans, without the JVM and its descendants; if the JVM may run on a set of the CPUs
/// only, with the part of those that may run there.
fn groups(jvm: u32, set: Option<&CpuSet>, last: &Scan, now: &mut Scan) -> BTreeMap<Group, Used> {
    let ended = ended_children(last, now);
    let mut children = children(last, now, &ended);
    let kin = Ancestors::new(jvm, now);
    let nothing = Ended::default();
    let mut groups: BTreeMap<Group, Used> = BTreeMap::new();
    for (pid, seen) in &mut now.processes {
        let Some(java) = kin.outside(*pid) else {
            continue;
        };
        let before = last.before(*pid, seen);
        // One that has no earlier scan began after it, unless that scan left some out.
        if before.is_none() && last.is_part {
            continue;
        }
        seen.child = children.remove(pid);
        let (mut used, mut inherited) = growth(before, seen, ended.get(pid).unwrap_or(&nothing));
        if let Some(set) = set {
            let is_excluded = used.ticks > 0 && set.excludes(*pid);
            used.set_ticks = Some(if is_excluded { 0 } else { used.ticks });
            // Ended children may have run anywhere.
            inherited.set_ticks = Some(inherited.ticks);
        }
        if used.is_none() && inherited.is_none() {
            continue;
        }
        let home = seen.home.get_or_insert_with(|| Home::of(*pid)).clone();
        if let Some(child) = seen.child.as_ref().filter(|_| !inherited.is_none()) {
            let home = child.home.clone().unwrap_or_else(|| home.clone());
            let group = (java, child.command.clone(), home);
            groups.entry(group).or_default().add(inherited);
        }
        if !used.is_none() {
            let group = (java, shown_command(&seen.stat), home);
            groups.entry(group).or_default().add(used);
        }
    }
    groups
}

impl Used {
    fn is_none(&self) -> bool {
        self.ticks == 0 && self.bytes.is_none_or(|bytes| bytes == [0, 0]) && self.pages == 0
    }

    fn add(&mut self, other: Self) {
        self.processes += other.processes;
        self.ticks = self.ticks.saturating_add(other.ticks);
        if let Some(ticks) = other.set_ticks {
            self.set_ticks = Some(self.set_ticks.unwrap_or(0).saturating_add(ticks));
        }
        self.pages = self.pages.saturating_add(other.pages);
        if let Some(bytes) = other.bytes {
            let sums = self.bytes.get_or_insert([0, 0]);
            for (sum, bytes) in sums.iter_mut().zip(bytes) {
                *sum = sum.saturating_add(bytes);
            }
        }
    }
}

/// What a process has used since the last scan, and what it has inherited of its children that have ended: what they used after
/// the last scan, at which `ended` had been counted of them. If none of its children was ever seen, all is its own.
fn growth(before: Option<&Seen>, now: &Seen, ended: &Ended) -> (Used, Used) {
    let then = before.map(|before| &before.stat);
    let own = now
        .stat
        .ticks
        .saturating_sub(then.map_or(0, |stat| stat.ticks));
    let waited = then.map_or(0, |stat| stat.waited_ticks);
    let waited = now.stat.waited_ticks.saturating_sub(waited);
    let bytes = now.bytes.map(|now| {
        // A process that could not be looked at before may have moved them at any time.
        let then = match before {
            Some(before) => before.bytes.unwrap_or(now),
            None => [0, 0],
        };
        let counted = |index: usize| then[index].saturating_add(ended.bytes[index]);
        [0, 1].map(|index| now[index].saturating_sub(counted(index)))
    });
    let pages = then.map_or(0, |stat| stat.pages);
    let mut used = Used {
        processes: 1,
        ticks: own,
        set_ticks: None,
        bytes,
        pages: now.stat.pages.saturating_sub(pages),
    };
    let mut inherited = Used {
        processes: 1,
        ticks: waited.saturating_sub(ended.ticks),
        ..Used::default()
    };
    if now.child.is_none() {
        used.ticks = used.ticks.saturating_add(inherited.ticks);
        return (used, Used::default());
    }
    let before_own = match before {
        // It had inherited nothing yet.
        Some(before) if before.stat.waited_ticks == 0 => before.own_bytes.or(before.bytes),
        Some(before) => before.own_bytes,
        None => Some([0, 0]),
    };
    if let (Some(all), Some(now), Some(then)) = (bytes, now.own_bytes, before_own) {
        let own = [0, 1].map(|index| now[index].saturating_sub(then[index]).min(all[index]));
        used.bytes = Some(own);
        inherited.bytes = Some([0, 1].map(|index| all[index] - own[index]));
    }
    (used, inherited)
}

/// Who descends from whom at one scan.
struct Ancestors {
    jvm: u32,
    /// Parent, and whether the process is a `java`.
    parents: HashMap<u32, (u32, bool)>,
}

impl Ancestors {
    fn new(jvm: u32, scan: &Scan) -> Self {
        let parents = scan.processes.iter();
        let parents = parents.map(|(pid, seen)| {
            let stat = &seen.stat;
            (*pid, (stat.parent, stat.command == "java"))
        });
        Self {
            jvm,
            parents: parents.collect(),
        }
    }

    /// The nearest `java` of a process, which may be itself; `None` if it is the profiled JVM or a descendant of it.
    fn outside(&self, pid: u32) -> Option<Option<u32>> {
        let (mut java, mut at) = (None, pid);
        let mut passed = HashSet::new();
        while passed.insert(at) {
            if at == self.jvm {
                return None;
            }
            let Some((parent, is_java)) = self.parents.get(&at) else {
                break;
            };
            if *is_java && java.is_none() {
                java = Some(at);
            }
            at = *parent;
        }
        Some(java)
    }
}

/// The name under which a process is counted: threads of the kernel and processes of the profiler have a name each.
fn shown_command(stat: &ProcessStat) -> String {
    let kind = match stat.command.as_str() {
        name if name.starts_with("unfuse-") => "unfuse",
        name if stat.is_kernel => name.split(['/', ':']).next().unwrap_or(name),
        name => name,
    };
    kind.to_owned()
}

/// What a group used of a resource.
type Amount<'a> = &'a dyn Fn(&Used) -> i64;

/// The groups that get a row.
fn largest(groups: &BTreeMap<Group, Used>, seconds: f64) -> HashSet<Group> {
    let per_s = procfs::ticks_per_second().max(1) as f64;
    let cpu = |used: &Used| i64::try_from(used.ticks).unwrap_or(i64::MAX);
    let moved = |used: &Used, index: usize| {
        let bytes = used.bytes.map_or(0, |bytes| bytes[index]);
        i64::try_from(bytes).unwrap_or(i64::MAX)
    };
    let page = i64::try_from(procfs::page_size()).unwrap_or(4096);
    let amounts: [(Amount<'_>, i64); 4] = [
        (&cpu, (LEAST_CPU * seconds * per_s) as i64),
        (&|used| moved(used, 0), LEAST_BYTES),
        (&|used| moved(used, 1), LEAST_BYTES),
        (&|used| used.pages.saturating_mul(page), LEAST_BYTES),
    ];
    let mut chosen = HashSet::new();
    for (amount, least) in amounts {
        let mut users: Vec<(&Group, i64)> = groups
            .iter()
            .map(|(group, used)| (group, amount(used)))
            .filter(|(_, used)| *used > 0)
            .collect();
        let all: f64 = users.iter().map(|(_, used)| *used as f64).sum();
        users.retain(|(_, used)| *used >= least && *used as f64 >= LEAST_PART * all);
        users.sort_by_key(|(_, used)| std::cmp::Reverse(*used));
        chosen.extend(
            users
                .into_iter()
                .take(MOST_GROUPS)
                .map(|(group, _)| group.clone()),
        );
    }
    chosen
}

#[cfg(test)]
mod tests;
