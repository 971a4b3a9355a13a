//! Capacities of hosts, and their use outside tasks and JVMs.

use std::collections::{BTreeMap, BTreeSet};

use unfuse_format::HostRow;

use super::collections::HeapUse;
use super::disks::{self, Delegated, DelegatedRead};
use super::limits::cpus;
use super::neighbours::Neighbours;
use super::{Builder, position};
use crate::windows::spread;
use crate::workload::{UNITS, is_amount};
use crate::{
    Capacity, Executor, Heartbeat, HostId, Interval, Kind, KnownProcess, KnownUse, Resource, Span,
    StageId, Tables,
};

/// Executors by application, host and process id.
pub(super) type Processes = BTreeMap<(String, String, u32), Executor>;

/// Adds capacities, use by known processes and heartbeats; scales the bytes that tasks read to those that came from
/// disks.
///
/// The use of others is computed for each whole row of a host: for the finer windows between, the host's use is unknown
/// and may be less or more than that of tasks.
pub(super) fn add(
    builder: &mut Builder,
    rows: &[HostRow],
    executors: &Processes,
    neighbours: &Neighbours,
) {
    let by_host = by_host(rows);
    let ids: Vec<HostId> = by_host.keys().map(|name| builder.host(name)).collect();
    let heap_use = HeapUse::from_builder(builder);
    let Builder {
        tables,
        delegated_reads,
        ..
    } = builder;
    let mut of_tasks: BTreeMap<HostId, Vec<Interval>> = BTreeMap::new();
    for row in tables.intervals.drain(..) {
        let host = tables.tasks[position(row.task)].host;
        of_tasks.entry(host).or_default().push(row);
    }
    let mut delegated: BTreeMap<HostId, Vec<DelegatedRead>> = BTreeMap::new();
    for read in delegated_reads.drain(..) {
        let host = tables.tasks[position(read.task)].host;
        delegated.entry(host).or_default().push(read);
    }
    tables.processes.extend_from_slice(neighbours.names());
    for (host, (name, rows)) in ids.into_iter().zip(&by_host) {
        let whole = one_after_the_other(rows);
        capacities(tables, host, rows, executors);
        let jvms = Jvms::from_rows(&whole, rows, &heap_use.divide(rows, executors));
        let of_tasks = of_tasks.entry(host).or_default();
        let first = tables.known.len();
        let delegated = delegated.entry(host).or_default();
        known(tables, of_tasks, delegated, host, &whole, &jvms);
        let of_host = tables.known.split_off(first);
        tables.known.extend(neighbours.name_external(name, of_host));
    }
    tables.intervals.extend(of_tasks.into_values().flatten());
}

/// The writer of every JVM reports the whole host. Selects rows that do not overlap; rows that begin first win.
pub(super) fn one_after_the_other<'a>(rows: &[&'a HostRow]) -> Vec<&'a HostRow> {
    let mut whole: Vec<&HostRow> = Vec::new();
    for row in rows {
        if whole.last().is_none_or(|last| last.end_ns <= row.start_ns) {
            whole.push(row);
        }
    }
    whole
}

pub(super) fn span(row: &HostRow) -> Span {
    Span {
        start: row.start_ns.max(0),
        end: row.end_ns.max(0),
    }
}

/// Drops the row in which a JVM enters, leaves or changes a group, which others of its rows have: the group's use in it is
/// unknown. If a JVM was outside groups for longer, the next row does not describe a group either.
pub(super) fn drop_gaps(rows: &mut Vec<HostRow>, has_group: impl Fn(&HostRow) -> bool) {
    let key = |row: &HostRow, time| (row.app.clone(), row.host.clone(), row.pid, time);
    let grouped = || rows.iter().filter(|row| has_group(row));
    let starts: BTreeSet<_> = grouped().map(|row| key(row, row.start_ns)).collect();
    let ends: BTreeSet<_> = grouped().map(|row| key(row, row.end_ns)).collect();
    rows.retain(|row| {
        has_group(row)
            || !(starts.contains(&key(row, row.end_ns)) || ends.contains(&key(row, row.start_ns)))
    });
}

/// The busy part of the hosts' CPUs, whoever used them.
#[derive(Default)]
pub(super) struct BusyCpus(BTreeMap<HostId, (Vec<Span>, Vec<f64>)>);

impl BusyCpus {
    pub(super) fn from_rows(builder: &mut Builder, rows: &[HostRow]) -> Self {
        let hosts = by_host(rows).into_iter().map(|(name, rows)| {
            let whole = one_after_the_other(&rows);
            let part = |row: &&HostRow| {
                let possible = cpus(row) * span(row).seconds();
                (row.cpu_s / possible).clamp(0.0, 1.0)
            };
            let whole: Vec<_> = whole.into_iter().filter(|row| row.cpus > 0).collect();
            let windows = whole.iter().map(|row| span(row)).collect();
            (
                builder.host(name),
                (windows, whole.iter().map(part).collect()),
            )
        });
        Self(hosts.collect())
    }

    /// Mean over a span, 0 to 1; 0 without data.
    pub(super) fn part(&self, host: HostId, span: Span) -> f64 {
        let Some((windows, busy)) = self.0.get(&host) else {
            return 0.0;
        };
        let (mut known, mut sum) = (0.0, 0.0);
        for (index, part) in spread(windows, span) {
            known += part;
            sum += part * busy[index];
        }
        if known > 0.0 { sum / known } else { 0.0 }
    }
}

pub(super) fn by_host(rows: &[HostRow]) -> BTreeMap<&str, Vec<&HostRow>> {
    let mut by_host: BTreeMap<&str, Vec<&HostRow>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.start_ns < row.end_ns) {
        by_host.entry(&row.host).or_default().push(row);
    }
    for rows in by_host.values_mut() {
        rows.sort_by_key(|row| (row.start_ns, row.pid));
    }
    by_host
}

fn capacities(tables: &mut Tables, host: HostId, rows: &[&HostRow], executors: &Processes) {
    let cpus = rows.iter().map(|row| cpus(row)).fold(0.0, f64::max);
    let network = rows.iter().filter_map(|row| row.network_bytes_per_s).max();
    let all = Executor::default();
    let of_all = [
        (Resource::Cpu, all, cpus),
        (Resource::Network, all, network.unwrap_or(0) as f64),
    ];
    let memory = memory(rows, executors).into_iter();
    let memory = memory.map(|(executor, bytes)| (Resource::Memory, executor, bytes as f64));
    for (resource, executor, per_second) in of_all
        .into_iter()
        .chain(memory)
        .filter(|(.., amount)| *amount > 0.0)
    {
        tables.capacities.push(Capacity {
            host,
            executor,
            resource,
            per_second,
        });
    }
}

/// The maximum memory that Spark manages in each executor, bytes.
fn memory(rows: &[&HostRow], executors: &Processes) -> BTreeMap<Executor, u64> {
    let mut memory: BTreeMap<Executor, u64> = BTreeMap::new();
    for row in rows {
        if let Some(executor) = executors.get(&(row.app.clone(), row.host.clone(), row.pid)) {
            let most = memory.entry(*executor).or_default();
            *most = row.memory_bytes.unwrap_or(0).max(*most);
        }
    }
    memory
}

/// The use of all profiled JVMs of a host, in each of its rows.
struct Jvms {
    cpu_s: Vec<f64>,
    gc_s: Vec<f64>,
    /// The parts of it that were necessary for stages.
    gc_for_s: Vec<BTreeMap<StageId, f64>>,
    jit_s: Vec<f64>,
    read_bytes: Vec<f64>,
    write_bytes: Vec<f64>,
}

impl Jvms {
    /// `collected` are the CPU seconds of garbage collection for stages, for each of `rows`.
    fn from_rows(whole: &[&HostRow], rows: &[&HostRow], collected: &[Vec<(StageId, f64)>]) -> Self {
        let windows: Vec<Span> = whole.iter().map(|row| span(row)).collect();
        let none = vec![0.0; windows.len()];
        let mut jvms = Self {
            cpu_s: none.clone(),
            gc_s: none.clone(),
            gc_for_s: vec![BTreeMap::new(); windows.len()],
            jit_s: none.clone(),
            read_bytes: none.clone(),
            write_bytes: none,
        };
        for (row, collected) in rows.iter().zip(collected) {
            for (index, part) in spread(&windows, span(row)) {
                for (stage, units) in collected {
                    *jvms.gc_for_s[index].entry(*stage).or_default() += units * part;
                }
                jvms.cpu_s[index] += row.jvm_cpu_s * part;
                jvms.gc_s[index] += row.gc_cpu_s * part;
                jvms.jit_s[index] += row.jit_cpu_s.unwrap_or(0.0) * part;
                jvms.read_bytes[index] += row.jvm_disk_read_bytes as f64 * part;
                jvms.write_bytes[index] += row.jvm_disk_write_bytes as f64 * part;
            }
        }
        jvms
    }

    /// The bytes that they read from disks beside what their tasks asked for.
    fn read_bytes_beside(&self, asked: &[f64]) -> Vec<f64> {
        let both = self.read_bytes.iter().zip(asked);
        both.map(|(read, asked)| (read - asked).max(0.0)).collect()
    }
}

/// The use of a host's tasks, in each of its rows.
struct TaskUsage {
    cpu_s: Vec<f64>,
    read_bytes: Vec<f64>,
    fetched_bytes: Vec<f64>,
}

impl TaskUsage {
    fn from_rows(rows: &[Interval], windows: &[Span]) -> Self {
        let none = vec![0.0; windows.len()];
        let mut used = Self {
            cpu_s: none.clone(),
            read_bytes: none.clone(),
            fetched_bytes: none,
        };
        for row in rows.iter().filter(|row| row.units > 0.0) {
            let sums = match row.kind {
                Kind::RunQueue => &mut used.cpu_s,
                Kind::IoRead => &mut used.read_bytes,
                Kind::NetworkFetch => &mut used.fetched_bytes,
                _ => continue,
            };
            for (index, part) in spread(windows, row.span) {
                sums[index] += row.units * part;
            }
        }
        used
    }
}

/// Most reads of tasks are served by the page cache and use no disk: their bytes are scaled to those that the kernel
/// counts as read from disks for their JVMs.
fn scale_reads(rows: &mut [Interval], windows: &[Span], factors: &[f64]) {
    for row in rows.iter_mut().filter(|row| row.kind == Kind::IoRead) {
        let (mut inside, mut scaled) = (0.0, 0.0);
        for (index, part) in spread(windows, row.span) {
            inside += part;
            scaled += factors[index] * part;
        }
        let units = row.units * (scaled + (1.0_f64 - inside).max(0.0));
        row.units = if is_amount(units) { units } else { 0.0 };
    }
}

fn known(
    tables: &mut Tables,
    of_tasks: &mut Vec<Interval>,
    delegated: &[DelegatedRead],
    host: HostId,
    whole: &[&HostRow],
    jvms: &Jvms,
) {
    let windows: Vec<Span> = whole.iter().map(|row| span(row)).collect();
    let asked = TaskUsage::from_rows(of_tasks, &windows);
    let factors: Vec<f64> = asked
        .read_bytes
        .iter()
        .zip(&jvms.read_bytes)
        .map(|(asked, read)| if asked > read { read / asked } else { 1.0 })
        .collect();
    scale_reads(of_tasks, &windows, &factors);
    let mut by_others = jvms.read_bytes_beside(&asked.read_bytes);
    let delegated = Delegated::divide(delegated, &windows, &mut by_others);
    of_tasks.extend(delegated.from_disks);
    let waited_s = disks::waited_s(of_tasks, &delegated.from_cache, &windows);
    // Bytes that JVMs wrote into the page cache and that are not on the disks yet.
    let mut unwritten = 0.0;
    for (index, row) in whole.iter().enumerate() {
        unwritten += jvms.write_bytes[index];
        let own_writes = unwritten.min(row.disk_write_bytes as f64);
        unwritten -= own_writes;
        let for_stages =
            |(stage, units): (&StageId, &f64)| (KnownProcess::GcFor(*stage), Resource::Cpu, *units);
        let gc_for: Vec<_> = jvms.gc_for_s[index].iter().map(for_stages).collect();
        let gc_for_s: f64 = gc_for.iter().map(|(_, _, units)| units).sum();
        for (process, resource, units) in [
            (KnownProcess::Gc, Resource::Cpu, jvms.gc_s[index] - gc_for_s),
            (KnownProcess::Jit, Resource::Cpu, jvms.jit_s[index]),
            (
                KnownProcess::Jvm,
                Resource::Cpu,
                jvms.cpu_s[index] - jvms.gc_s[index] - jvms.jit_s[index] - asked.cpu_s[index],
            ),
            (KnownProcess::Jvm, Resource::Io, by_others[index]),
            (
                KnownProcess::ExternalCpu,
                Resource::Cpu,
                row.cpu_s - jvms.cpu_s[index],
            ),
            (
                KnownProcess::ExternalIo,
                Resource::Io,
                (row.disk_read_bytes as f64 - jvms.read_bytes[index]).max(0.0)
                    + (row.disk_write_bytes as f64 - own_writes),
            ),
            (
                KnownProcess::ExternalNetwork,
                Resource::Network,
                row.network_in_bytes as f64 - asked.fetched_bytes[index],
            ),
        ]
        .into_iter()
        .chain(gc_for)
        {
            if UNITS.contains(&units) {
                tables.known.push(KnownUse {
                    host,
                    process,
                    resource,
                    span: windows[index],
                    units,
                });
            }
        }
        let idle = disks::idle(host, windows[index], row, waited_s[index]);
        tables.idle.extend(idle);
        tables.heartbeats.push(Heartbeat {
            host,
            at: windows[index].end,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    fn row(pid: u32, start: i64, end: i64) -> HostRow {
        HostRow {
            host: "h".to_owned(),
            pid,
            start_ns: start * S,
            end_ns: end * S,
            cpus: 4,
            memory_bytes: Some(100),
            ..HostRow::default()
        }
    }

    #[test]
    fn jvms_that_follow_each_other_cover_the_host() {
        let rows = [
            row(1, 0, 2),
            row(1, 2, 4),
            row(2, 3, 5),
            row(2, 5, 7),
            row(3, 7, 9),
        ];
        let rows: Vec<&HostRow> = rows.iter().collect();
        let whole: Vec<i64> = one_after_the_other(&rows)
            .iter()
            .map(|row| row.start_ns / S)
            .collect();
        assert_eq!(whole, [0, 2, 5, 7]);
    }

    /// In profiles of earlier versions compilation is a part of `JVM`.
    #[test]
    fn compilation_is_a_culprit_of_its_own() {
        for (jit_cpu_s, expected) in [(Some(0.5), [0.5, 0.25]), (None, [0.0, 0.75])] {
            let mut builder = Builder::default();
            let host = builder.host("h");
            let row = HostRow {
                cpu_s: 2.0,
                jvm_cpu_s: 2.0,
                gc_cpu_s: 0.25,
                jit_cpu_s,
                ..row(1, 0, 2)
            };
            let whole = span(&row);
            let task = builder.query_with_task(1, host, whole);
            builder.interval(task, Kind::RunQueue, whole, 1.0, 0);
            add(
                &mut builder,
                &[row],
                &Processes::new(),
                &Neighbours::default(),
            );
            let used = |process| -> f64 {
                let known = builder.tables.known.iter();
                let rows = known.filter(|row| row.process == process);
                rows.map(|row| row.units).sum()
            };
            let found = [KnownProcess::Jit, KnownProcess::Jvm].map(used);
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn each_jvm_has_its_own_memory() {
        let mut builder = Builder::default();
        let [first, second] = [1, 2].map(|number| Executor {
            application: 0,
            number,
        });
        let key = |pid| (String::new(), "h".to_owned(), pid);
        let executors = [(key(1), first), (key(2), second)].into();
        let larger = HostRow {
            memory_bytes: Some(300),
            ..row(2, 0, 2)
        };
        // The third process is not an executor.
        add(
            &mut builder,
            &[row(1, 0, 2), larger, row(3, 0, 2)],
            &executors,
            &Neighbours::default(),
        );
        let capacities = builder.tables.capacities.iter();
        let memory = capacities.filter(|row| row.resource == Resource::Memory);
        let memory: Vec<_> = memory.map(|row| (row.executor, row.per_second)).collect();
        assert_eq!(memory, [(first, 100.0), (second, 300.0)]);
    }

    #[test]
    fn a_burst_of_a_task_is_not_put_down_to_others() {
        let mut builder = Builder::default();
        let host = builder.host("h");
        let stage = crate::StageId {
            query: crate::QueryId(1),
            stage: 0,
            attempt: 0,
        };
        let task = builder.task(stage, host, Executor::default(), true);
        let second = |at: i64| Span {
            start: at * S,
            end: (at + 1) * S,
        };
        builder.interval(task, Kind::RunQueue, second(0), 1.0, 0);
        builder.interval(task, Kind::RunQueue, second(1), 0.1, 0);
        let row = HostRow {
            cpu_s: 1.3,
            jvm_cpu_s: 1.1,
            disk_write_bytes: 50,
            jvm_disk_write_bytes: 80,
            ..row(1, 0, 2)
        };
        add(
            &mut builder,
            &[row],
            &Processes::new(),
            &Neighbours::default(),
        );
        let found: Vec<_> = builder
            .tables
            .known
            .iter()
            .map(|known| (known.process, (known.units * 1e6).round() / 1e6))
            .collect();
        assert_eq!(found, [(KnownProcess::ExternalCpu, 0.2)]);
    }
}
