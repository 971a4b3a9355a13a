//! Names of processes outside Spark, and what each of them used.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use unfuse_format::{HostRow, OutsideRow};

use crate::windows::spread;
use crate::workload::UNITS;
use crate::{KnownProcess, KnownUse, NamedProcess, ProcessId, Span};

/// Processes with a name of their own, for each resource; the use of all others stays external.
const MOST_NAMES: usize = 100;
/// Longest name, characters.
const MOST_CHARACTERS: usize = 80;

/// Words in the paths of containers' control groups.
const CONTAINERS: [&str; 6] = ["docker", "libpod", "containerd", "crio", "lxc", "ecs"];

/// What named processes used on each host.
#[derive(Debug, Default)]
pub(super) struct Neighbours {
    /// In the order of their names.
    names: Vec<NamedProcess>,
    /// Profiled JVMs by host and process id.
    profiled: BTreeSet<(String, u32)>,
    by_host: BTreeMap<String, Vec<Scan>>,
}

/// The processes of one scan.
#[derive(Debug)]
struct Scan {
    span: Span,
    used: Vec<(ProcessId, Amounts)>,
}

/// What a process used.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Amounts {
    /// CPU seconds.
    cpu_s: f64,
    /// Bytes moved from and to disks.
    bytes: f64,
}

impl Amounts {
    fn from_row(row: &OutsideRow) -> Self {
        let bytes = [row.read_bytes, row.write_bytes];
        Self {
            cpu_s: Some(row.cpu_s)
                .filter(|s| s.is_finite())
                .map_or(0.0, |s| s.max(0.0)),
            bytes: bytes.into_iter().flatten().map(|bytes| bytes as f64).sum(),
        }
    }

    fn add(&mut self, other: Self, part: f64) {
        self.cpu_s += other.cpu_s * part;
        self.bytes += other.bytes * part;
    }
}

impl Neighbours {
    /// Names the processes in rows, except profiled JVMs, which have rows in `hosts`, and their children.
    pub(super) fn new(rows: &[OutsideRow], hosts: &[HostRow]) -> Self {
        let profiled: BTreeSet<(&str, u32)> = hosts
            .iter()
            .map(|row| (row.host.as_str(), row.pid))
            .collect();
        let outside = |row: &&OutsideRow| {
            let jvm = row.jvm.map(|jvm| (row.host.as_str(), jvm));
            row.start_ns < row.end_ns && jvm.is_none_or(|jvm| !profiled.contains(&jvm))
        };
        let rows: Vec<&OutsideRow> = rows.iter().filter(outside).collect();
        let mut sums: BTreeMap<String, Amounts> = BTreeMap::new();
        for row in &rows {
            let sum = sums.entry(name(row)).or_default();
            sum.add(Amounts::from_row(row), 1.0);
        }
        let ids = ids(&sums);
        let names = ids.iter().map(|(name, id)| NamedProcess {
            id: *id,
            name: (*name).to_owned(),
        });
        Self {
            names: names.collect(),
            by_host: scans(rows, &ids),
            profiled: profiled
                .iter()
                .map(|(host, pid)| ((*host).to_owned(), *pid))
                .collect(),
        }
    }

    pub(super) fn names(&self) -> &[NamedProcess] {
        &self.names
    }

    /// The process of this name; one that has none is external. None for profiled JVMs and their children.
    pub(super) fn process(&self, row: &OutsideRow) -> Option<KnownProcess> {
        let jvm = row.jvm.map(|jvm| (row.host.clone(), jvm));
        if jvm.is_some_and(|jvm| self.profiled.contains(&jvm)) {
            return None;
        }
        let name = name(row);
        let found = self.names.binary_search_by(|known| known.name.cmp(&name));
        Some(found.map_or(KnownProcess::ExternalCpu, |at| {
            KnownProcess::Outside(self.names[at].id)
        }))
    }

    /// Divides the external use in the rows of a host among the processes that were seen there.
    pub(super) fn name_external(&self, host: &str, rows: Vec<KnownUse>) -> Vec<KnownUse> {
        let spans: BTreeSet<Span> = rows.iter().map(|row| row.span).collect();
        let windows: Vec<Span> = spans.into_iter().collect();
        let used = self.during(host, &windows);
        let named = rows.into_iter().flat_map(|row| {
            let used = windows
                .binary_search(&row.span)
                .ok()
                .map(|index| &used[index]);
            let used = used.into_iter().flatten();
            let parts = match row.process {
                KnownProcess::ExternalCpu => {
                    let named = used.map(|(id, amounts)| (*id, amounts.cpu_s));
                    divide(row.process, row.units, named)
                }
                KnownProcess::ExternalIo => {
                    let named = used.map(|(id, amounts)| (*id, amounts.bytes));
                    divide(row.process, row.units, named)
                }
                _ => vec![(row.process, row.units)],
            };
            let part = move |(process, units)| KnownUse {
                process,
                units,
                ..row.clone()
            };
            parts.into_iter().map(part)
        });
        // Parts that are too small to be amounts are nothing.
        named.filter(|row| UNITS.contains(&row.units)).collect()
    }

    /// What each process used in each of a host's windows.
    fn during(&self, host: &str, windows: &[Span]) -> Vec<BTreeMap<ProcessId, Amounts>> {
        let mut used = vec![BTreeMap::<ProcessId, Amounts>::new(); windows.len()];
        for scan in self.by_host.get(host).into_iter().flatten() {
            for (index, part) in spread(windows, scan.span) {
                for (process, amounts) in &scan.used {
                    used[index].entry(*process).or_default().add(*amounts, part);
                }
            }
        }
        used
    }
}

/// The largest users of each resource, numbered in the order of their names.
fn ids(sums: &BTreeMap<String, Amounts>) -> BTreeMap<&str, ProcessId> {
    let mut named = BTreeSet::new();
    for amount in [|of: &Amounts| of.cpu_s, |of: &Amounts| of.bytes] {
        let sums = sums.iter().map(|(name, sum)| (name.as_str(), amount(sum)));
        let mut largest: Vec<(&str, f64)> = sums.filter(|(_, amount)| *amount > 0.0).collect();
        largest.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        named.extend(largest.into_iter().take(MOST_NAMES).map(|(name, _)| name));
    }
    (0..)
        .map(ProcessId)
        .zip(named)
        .map(|(id, name)| (name, id))
        .collect()
}

/// The scans of each host that do not overlap: the writer of every JVM looks at the whole host. Scans that begin first win.
fn scans(
    mut rows: Vec<&OutsideRow>,
    ids: &BTreeMap<&str, ProcessId>,
) -> BTreeMap<String, Vec<Scan>> {
    let key = |row: &OutsideRow| (row.start_ns, row.end_ns, row.pid);
    rows.sort_by(|a, b| {
        a.host
            .cmp(&b.host)
            .then(key(a).cmp(&key(b)))
            .then(a.app.cmp(&b.app))
    });
    let mut scans: BTreeMap<String, Vec<Scan>> = BTreeMap::new();
    let same =
        |a: &&OutsideRow, b: &&OutsideRow| a.host == b.host && key(a) == key(b) && a.app == b.app;
    for rows in rows.chunk_by(same) {
        let span = Span {
            start: rows[0].start_ns,
            end: rows[0].end_ns,
        };
        let scans = scans.entry(rows[0].host.clone()).or_default();
        if scans.last().is_some_and(|last| span.start < last.span.end) {
            continue;
        }
        let mut used: HashMap<ProcessId, Amounts> = HashMap::new();
        for row in rows {
            if let Some(id) = ids.get(name(row).as_str()) {
                used.entry(*id)
                    .or_default()
                    .add(Amounts::from_row(row), 1.0);
            }
        }
        let mut used: Vec<_> = used.into_iter().collect();
        used.sort_by_key(|(id, _)| *id);
        scans.push(Scan { span, used });
    }
    scans
}

/// Divides external use among named processes, in proportion to what they used; the rest stays external. The sum is
/// that of the external use.
fn divide(
    external: KnownProcess,
    units: f64,
    named: impl Iterator<Item = (ProcessId, f64)> + Clone,
) -> Vec<(KnownProcess, f64)> {
    let used: f64 = named.clone().map(|(_, used)| used).sum();
    // Counters are not read at the same moment, and bytes are written to disks later.
    let scale = if used > units { units / used } else { 1.0 };
    let mut parts: Vec<_> = named
        .filter(|(_, used)| *used > 0.0)
        .map(|(id, used)| (KnownProcess::Outside(id), used * scale))
        .collect();
    let rest = units - parts.iter().map(|(_, units)| units).sum::<f64>();
    // The remainder of a difference of sums is rounding.
    if rest > units * 1e-9 {
        parts.push((external, rest));
    }
    parts
}

/// The name of a process: `postgres (pod billing-db)`, `stress-ng (user bob)`.
pub(super) fn name(row: &OutsideRow) -> String {
    let command = shown(&row.command);
    let home = match (command.as_str(), row.cgroup.as_deref()) {
        ("unfuse", _) => "profiler".to_owned(),
        (_, Some(path)) => home(path, row.container.as_deref())
            .unwrap_or_else(|| format!("user {}", shown(&row.user))),
        (_, None) => format!("user {}", shown(&row.user)),
    };
    let command = match command.as_str() {
        "" => "?",
        command => command,
    };
    let mut name = format!("{command} ({home}");
    if let Some((at, _)) = name.char_indices().nth(MOST_CHARACTERS) {
        name.truncate(at);
        name.push('…');
    }
    name.push(')');
    name
}

/// What a control group is called, if it says more than the user: a pod, a container or a service.
fn home(path: &str, container: Option<&str>) -> Option<String> {
    let container = container.map(shown).filter(|name| !name.is_empty());
    let last = path.rsplit('/').next().unwrap_or_default();
    if path.contains("kubepods") {
        let pod = container.or_else(|| {
            let (_, uid) = path.rsplit_once("pod")?;
            Some(shown(&uid.chars().take(8).collect::<String>()))
        })?;
        return Some(format!("pod {pod}"));
    }
    if CONTAINERS.iter().any(|word| path.contains(word)) {
        let mut parts = path.rsplit(['/', '-', '.', ':']);
        let is_id = |part: &&str| part.len() >= 32 && part.bytes().all(|b| b.is_ascii_hexdigit());
        let name = container.or_else(|| parts.find(is_id)?.get(..12).map(str::to_owned));
        return name.map(|name| format!("container {name}"));
    }
    let service = last.strip_suffix(".service")?;
    let is_session = service.starts_with("user@");
    (!is_session).then(|| format!("service {}", shown(service)))
}

/// A text that another user chose, without characters that change how a line looks.
fn shown(text: &str) -> String {
    let visible = |c: &char| {
        // Direction marks and other invisible characters; tags.
        !c.is_control()
            && !matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}')
    };
    text.chars().filter(visible).take(MOST_CHARACTERS).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const S: i64 = 1_000_000_000;

    fn row(command: &str, pid: u32, start: i64, end: i64, cpu_s: f64) -> OutsideRow {
        OutsideRow {
            host: "h".to_owned(),
            pid,
            start_ns: start * S,
            end_ns: end * S,
            command: command.to_owned(),
            user: "bob".to_owned(),
            cpu_s,
            ..OutsideRow::default()
        }
    }

    #[test]
    fn names_say_where_a_process_belongs() {
        let named = |command: &str, cgroup: &str, container: Option<&str>| {
            name(&OutsideRow {
                cgroup: Some(cgroup.to_owned()),
                container: container.map(str::to_owned),
                ..row(command, 1, 0, 1, 1.0)
            })
        };
        let id = "3f2a91b0c4d53f2a91b0c4d53f2a91b0c4d53f2a91b0c4d53f2a91b0c4d51234";
        let pod =
            format!("/kubepods.slice/kubepods-pod1a2b3c4d_5e.slice/cri-containerd-{id}.scope");
        assert_eq!(
            named("postgres", &pod, Some("billing-db")),
            "postgres (pod billing-db)"
        );
        assert_eq!(named("postgres", &pod, None), "postgres (pod 1a2b3c4d)");
        let docker = format!("/system.slice/docker-{id}.scope");
        assert_eq!(
            named("redis", &docker, None),
            "redis (container 3f2a91b0c4d5)"
        );
        assert_eq!(
            named("redis", &docker, Some("cache")),
            "redis (container cache)"
        );
        assert_eq!(
            named("nginx", "/system.slice/web.service", None),
            "nginx (service web)"
        );
        let session = "/user.slice/user-1000.slice/user@1000.service";
        assert_eq!(named("sh", session, None), "sh (user bob)");
        assert_eq!(named("unfuse", &docker, None), "unfuse (profiler)");
        assert_eq!(
            named("a\u{1b}[31m\n\u{202e}b", "/x", None),
            "a[31mb (user bob)"
        );
        assert_eq!(named("", "/x", None), "? (user bob)");
        assert_eq!(named("x", "/kubepods/pod", Some("\u{7}")), "x (pod )");
        assert!(named("ä", &pod, Some(&"ö".repeat(500))).chars().count() < 90);
    }

    #[test]
    fn profiled_jvms_are_no_neighbours_and_writers_count_once() {
        let jvm = |jvm, pid| OutsideRow {
            jvm: Some(jvm),
            ..row("java", pid, 0, 2, 1.0)
        };
        let profiled = HostRow {
            host: "h".to_owned(),
            pid: 7,
            ..HostRow::default()
        };
        let rows = [
            row("hog", 6, 0, 2, 2.0),
            jvm(7, 6),
            jvm(8, 6),
            // Another writer's.
            row("hog", 7, 1, 3, 2.0),
            row("hog", 7, 3, 5, 1.0),
        ];
        let neighbours = Neighbours::new(&rows, &[profiled]);
        let names: Vec<&str> = neighbours
            .names()
            .iter()
            .map(|row| row.name.as_str())
            .collect();
        assert_eq!(names, ["hog (user bob)", "java (user bob)"]);
        let windows = [0, 1, 2, 3, 4].map(|start| Span {
            start: start * S,
            end: (start + 1) * S,
        });
        let used = neighbours.during("h", &windows);
        let hog: Vec<f64> = used
            .iter()
            .map(|used| used.get(&ProcessId(0)).map_or(0.0, |of| of.cpu_s))
            .collect();
        assert_eq!(hog, [1.0, 1.0, 0.0, 0.5, 0.5]);
        assert!(
            neighbours
                .during("other", &windows)
                .iter()
                .all(BTreeMap::is_empty)
        );
    }

    #[test]
    fn only_the_largest_have_names() {
        let rows: Vec<_> = (0..1000)
            .map(|n| row(&format!("p{n:03}"), 1, 0, 1, f64::from(n)))
            .collect();
        let neighbours = Neighbours::new(&rows, &[]);
        assert_eq!(neighbours.names().len(), MOST_NAMES);
        assert_eq!(neighbours.names()[0].name, "p900 (user bob)");
    }

    proptest! {
        #[test]
        fn no_use_is_lost_or_counted_twice(units in 1e-6..1e9, used in prop::collection::vec(0.0..1e9, 0..6)) {
            let named = used.iter().enumerate().map(|(id, used)| (ProcessId(id as u32), *used));
            let parts = divide(KnownProcess::ExternalCpu, units, named.clone());
            let sum: f64 = parts.iter().map(|(_, units)| units).sum();
            prop_assert!((sum - units).abs() <= units * 1e-8, "{sum} {units}");
            for (process, part) in parts {
                prop_assert!(part > 0.0);
                if let KnownProcess::Outside(id) = process {
                    prop_assert!(part <= used[id.0 as usize] * (1.0 + 1e-9));
                }
            }
        }
    }
}
