//! What the disks of a host could have done beside what they did, and reads of other threads for tasks.

use std::collections::{BTreeMap, BTreeSet};

use unfuse_format::HostRow;

use crate::windows::spread;
use crate::workload::UNITS;
use crate::{HostId, Idle, Interval, Kind, Resource, Span, TaskId};

/// A task that was blocked for this part of a row's span waited for one request after the other.
const WHOLE: f64 = 0.95;

/// The bytes that the disks could have moved in their idle time, at the rate of their busy time.
///
/// The kernel counts a disk as busy while it has a request. Requests that a control group's limit, or a layer above the disk, holds
/// back are not yet at the disk, and tasks wait for them all the same: for `waited_s` the disks were not idle either.
pub(super) fn idle(host: HostId, span: Span, row: &HostRow, waited_s: f64) -> Option<Idle> {
    let moved = row.disk_read_bytes as f64 + row.disk_write_bytes as f64;
    let busy_s = row.disk_busy_s.max(waited_s);
    let units = moved / busy_s * (span.seconds() - busy_s);
    UNITS.contains(&units).then_some(Idle {
        host,
        resource: Resource::Io,
        span,
        units,
    })
}

/// The time in each of the windows, s, in which at least one task waited for a disk. The windows follow each other.
/// Waits of `from_cache` were for no disk.
pub(super) fn waited_s(
    of_tasks: &[Interval],
    from_cache: &BTreeSet<(TaskId, Span)>,
    windows: &[Span],
) -> Vec<f64> {
    let is_for_disks = |row: &&Interval| matches!(row.kind, Kind::IoRead | Kind::IoWrite);
    // Of other rows it is not known when in their span the task waited.
    let is_whole = |row: &&Interval| {
        row.blocked_ns > 0 && row.blocked_ns as f64 / 1e9 >= WHOLE * row.span.seconds()
    };
    let is_cached = |row: &&Interval| from_cache.contains(&(row.task, row.span));
    let rows = of_tasks.iter().filter(is_for_disks).filter(is_whole);
    let rows = rows.filter(|row| !is_cached(row));
    let mut spans: Vec<Span> = rows.map(|row| row.span).collect();
    spans.sort_by_key(|span| span.start);
    let mut waited = vec![0.0; windows.len()];
    let mut until = i64::MIN;
    for span in spans {
        let rest = Span {
            start: span.start.max(until),
            end: span.end,
        };
        if rest.start < rest.end {
            until = rest.end;
            for (index, part) in spread(windows, rest) {
                waited[index] += part * rest.seconds();
            }
        }
    }
    waited
}

/// A wait of a task for another thread that reads a file for it, as vectored reads of Parquet do. Neither Spark nor Linux
/// counts these bytes for the task.
#[derive(Clone, Copy, Debug)]
pub(super) struct DelegatedRead {
    /// The task.
    pub(super) task: TaskId,
    /// When.
    pub(super) span: Span,
    /// How long it waited, s.
    pub(super) seconds: f64,
}

/// If other threads read fewer bytes than this from disks for each second of waiting, the files were in the page cache.
const LEAST_FROM_DISK: f64 = (1 << 20) as f64;

/// Where the bytes of delegated reads came from.
pub(super) struct Delegated {
    /// The bytes that came from disks, as use by the tasks that waited for them.
    pub(super) from_disks: Vec<Interval>,
    /// The waits that were for no disk.
    pub(super) from_cache: BTreeSet<(TaskId, Span)>,
}

impl Delegated {
    /// Divides the bytes that threads without a task read from disks in each window among the tasks that waited for such
    /// threads, in proportion to their waits. Subtracts what it divides.
    pub(super) fn divide(reads: &[DelegatedRead], windows: &[Span], bytes: &mut [f64]) -> Self {
        let mut waits: BTreeMap<(usize, TaskId), (Span, f64)> = BTreeMap::new();
        let mut sums = vec![0.0; windows.len()];
        for read in reads {
            for (index, part) in spread(windows, read.span) {
                let seconds = read.seconds * part;
                let start = read.span.start.max(windows[index].start);
                let end = read.span.end.min(windows[index].end);
                let entry = waits.entry((index, read.task));
                let (span, waited) = entry.or_insert((Span { start, end }, 0.0));
                span.start = span.start.min(start);
                span.end = span.end.max(end);
                *waited += seconds;
                sums[index] += seconds;
            }
        }
        let of_disk: Vec<bool> = bytes
            .iter()
            .zip(&sums)
            .map(|(bytes, sum)| *sum > 0.0 && *bytes >= LEAST_FROM_DISK * sum)
            .collect();
        let mut from_disks = Vec::new();
        for ((index, task), (span, waited)) in waits {
            let units = bytes[index] * waited / sums[index];
            if of_disk[index] && UNITS.contains(&units) {
                from_disks.push(Interval {
                    task,
                    kind: Kind::IoRead,
                    span,
                    units,
                    blocked_ns: 0,
                });
            }
        }
        let is_cached =
            |read: &&DelegatedRead| !spread(windows, read.span).any(|(index, _)| of_disk[index]);
        let from_cache = reads.iter().filter(is_cached);
        let from_cache = from_cache.map(|read| (read.task, read.span)).collect();
        for (bytes, of_disk) in bytes.iter_mut().zip(of_disk) {
            if of_disk {
                *bytes = 0.0;
            }
        }
        Self {
            from_disks,
            from_cache,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::neighbours::Neighbours;
    use super::super::{Builder, hosts};
    use super::*;
    use crate::Blame;

    const S: i64 = 1_000_000_000;

    fn row() -> HostRow {
        HostRow {
            host: "h".to_owned(),
            pid: 1,
            start_ns: 0,
            end_ns: 2 * S,
            cpus: 4,
            memory_bytes: Some(100),
            ..HostRow::default()
        }
    }

    fn add(builder: &mut Builder, row: HostRow) {
        let (executors, neighbours) = (hosts::Processes::new(), Neighbours::default());
        hosts::add(builder, &[row], &executors, &neighbours);
    }

    /// A disk with little load slows nobody down: a process that reads one byte is not the culprit of all waits.
    #[test]
    fn what_an_idle_disk_could_have_done_is_nobodys() {
        let (mut builder, whole, tasks) = Builder::with_two_tasks();
        for (task, waited) in tasks.into_iter().zip([S, S / 2]) {
            builder.interval(task, Kind::IoRead, whole, 50.0, waited);
        }
        let row = HostRow {
            disk_read_bytes: 100,
            jvm_disk_read_bytes: 100,
            disk_busy_s: 0.5,
            ..row()
        };
        add(&mut builder, row);
        assert_eq!(builder.tables.idle[0].units, 300.0);
        let workload = crate::Workload::new(builder.finish().tables).unwrap();
        let options = crate::Options {
            victims: [crate::QueryId(1)].into(),
            ..crate::Options::default()
        };
        let paths = Blame::new(&workload, &options).explanations(&workload);
        let of = |culprit| -> f64 {
            let its = paths.iter().filter(|path| path.culprit == culprit);
            its.map(|path| path.seconds).sum()
        };
        let (other, nobody) = (
            of(crate::Culprit::Query(crate::QueryId(2))),
            of(crate::Culprit::Unknown),
        );
        assert!((nobody / other - 6.0).abs() < 1e-9, "{nobody} to {other}");
        assert!((nobody + other - 1.0).abs() < 1e-9);
    }

    /// Two queries read as much, at most 100 bytes a second by a limit of their control group: the disk is seldom busy.
    #[test]
    fn reads_that_a_limit_holds_back_have_no_idle_disk() {
        let (mut builder, whole, tasks) = Builder::with_two_tasks();
        for task in tasks {
            builder.interval(task, Kind::IoRead, whole, 100.0, 0);
            for quarter in 0..4 {
                let span = Span {
                    start: quarter * S / 2,
                    end: (quarter + 1) * S / 2 - S / 10,
                };
                builder.interval(task, Kind::IoRead, span, 0.0, 2 * S / 5);
            }
        }
        let row = HostRow {
            disk_read_bytes: 200,
            jvm_disk_read_bytes: 200,
            disk_busy_s: 0.1,
            ..row()
        };
        add(&mut builder, row);
        // They waited 1.6 of 2 s, both at the same time.
        let idle = builder.tables.idle[0].units;
        assert!((idle - 50.0).abs() < 1e-6, "{idle}");
    }

    /// Two tasks wait 0.5 and 1.5 s for other threads, which read these bytes from the disk in 0.5 s. The bytes of each task,
    /// of the JVM, and those that the disk could have moved while nothing waited for it.
    fn delegated(bytes: u32) -> [f64; 4] {
        let (mut builder, _, tasks) = Builder::with_two_tasks();
        for (task, end) in tasks.into_iter().zip([S / 2, 3 * S / 2]) {
            let span = Span { start: 0, end };
            builder.interval(task, Kind::IoRead, span, 0.0, end);
            builder.delegated_reads.push(DelegatedRead {
                task,
                span,
                seconds: span.seconds(),
            });
        }
        let row = HostRow {
            disk_read_bytes: bytes.into(),
            jvm_disk_read_bytes: bytes.into(),
            disk_busy_s: 0.5,
            ..row()
        };
        add(&mut builder, row);
        let tables = &builder.tables;
        let [first, second] = tasks.map(|task| -> f64 {
            let rows = tables.intervals.iter().filter(|row| row.task == task);
            rows.map(|row| row.units).sum()
        });
        let of_jvm = tables
            .known
            .iter()
            .filter(|row| row.resource == Resource::Io);
        [
            first,
            second,
            of_jvm.map(|row| row.units).sum(),
            tables.idle.iter().map(|row| row.units).sum(),
        ]
    }

    /// Neither the meter nor Linux counts the bytes of vectored reads for the tasks that wait for them.
    #[test]
    fn bytes_that_other_threads_read_belong_to_the_tasks_that_waited() {
        assert_eq!(delegated(12 << 20), [3, 9, 0, 4].map(mib));
    }

    /// Threads that copy from the page cache use no disk, and the JVM reads a little for itself.
    #[test]
    fn waits_for_the_page_cache_are_for_no_disk() {
        assert_eq!(delegated(1 << 20), [0, 0, 1, 3].map(mib));
    }

    fn mib(number: u32) -> f64 {
        f64::from(number << 20)
    }
}
