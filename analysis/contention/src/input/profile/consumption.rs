//! Use of resources by tasks, and their blocked time.

use std::collections::{BTreeMap, BTreeSet};

use unfuse_format::{EVENT_LOG, IntervalRow};
use unfuse_postprocess::{TaskInterval, WaitReason};

use super::Reader;
use super::held::UnnamedLocks;
use super::recorded::RecordedRows;
use crate::input::BlockedTime;
use crate::input::collections::Allocation;
use crate::input::disks::DelegatedRead;
use crate::workload::is_amount;
use crate::{Kind, Resource, Span, TaskId};

/// The word of rows with a task's part of the allocation of its JVM × seconds.
const ALLOCATION: &str = "allocation";

/// Maximum CPU time that a single sample stands for, ns.
const LONGEST_SAMPLE: i64 = 20_000_000;

/// The source of blocked time that is used in the end.
pub(super) enum BlockedTimeSource {
    Measured,
    Paper,
    /// No waits were recorded.
    Substitute,
}

impl Reader<'_> {
    /// Measured waits, if there are any.
    pub(super) fn possible(
        &mut self,
        recorded: &RecordedRows,
        blocked: BlockedTime,
    ) -> BlockedTimeSource {
        let mut processes = self.index.profile.processes.iter();
        let is_log = processes.any(|process| process.source == EVENT_LOG);
        if recorded.intervals.is_empty() {
            self.builder.notes.push(
                "no task reported its use of resources (heartbeat=off, or an earlier version): CPU time is that of samples, and bytes and \
                 memory are unknown"
                    .to_owned(),
            );
        }
        if self.index.hosts.is_empty() && !is_log {
            self.builder.notes.push(
                "the hosts' counters were not recorded (heartbeat=off, or an earlier version): what processes outside Spark \
                 used counts as unknown"
                    .to_owned(),
            );
        }
        let counted: BTreeSet<&str> = self
            .index
            .hosts
            .iter()
            .map(|row| row.host.as_str())
            .collect();
        let hosts = self.builder.tables.hosts.iter().map(|host| &host.name);
        let uncounted: Vec<String> = hosts
            .filter(|name| !counted.is_empty() && !counted.contains(name.as_str()))
            .cloned()
            .collect();
        if !uncounted.is_empty() {
            self.builder.notes.push(format!(
                "the counters of {} were not recorded: what processes outside Spark used there counts as unknown",
                uncounted.join(", ")
            ));
        }
        let partial = self
            .index
            .profile
            .processes
            .iter()
            .any(|process| process.task_fraction.is_some_and(|fraction| fraction < 1.0));
        if partial {
            self.builder.notes.push(
                "only waits of a part of the tasks were recorded (option tasks); each stands for several, so blocked times of single stages \
                 are rough"
                    .to_owned(),
            );
        }
        if blocked == BlockedTime::Measured && recorded.sampled.iter().all(|s| s.waiting.is_none())
        {
            let note = if is_log {
                "an event log has no waits: blocked times are those of Spark's metrics. Blocked for the CPU is the wall time less those \
                 and less the running time, so it has waits for disks, locks and Python too. Processes outside Spark are unknown"
            } else {
                "no waits were recorded (they need perf_event, see `unfuse doctor`): blocked times are those of Spark's metrics. Blocked for the CPU is the wall time less those and less the running time"
            };
            self.builder.notes.push(note.to_owned());
            return BlockedTimeSource::Substitute;
        }
        match blocked {
            BlockedTime::Measured => BlockedTimeSource::Measured,
            BlockedTime::Paper => BlockedTimeSource::Paper,
        }
    }

    /// Adds the use of resources by tasks. Without a meter's CPU time, samples replace it.
    pub(super) fn used(&mut self, recorded: &RecordedRows) {
        let mut metered: BTreeSet<TaskId> = BTreeSet::new();
        for row in &recorded.intervals {
            let task = self.known_task(&row.app, row.task);
            metered.insert(task);
            if row.kind == ALLOCATION {
                self.builder.allocations.push(Allocation {
                    task,
                    span: span(row),
                    part_s: if is_amount(row.units) { row.units } else { 0.0 },
                });
                continue;
            }
            // Ignore kinds of newer versions.
            let Some(kind) = Kind::from_word(&row.kind) else {
                continue;
            };
            self.builder.interval(task, kind, span(row), row.units, 0);
        }
        let mut sampled = BTreeSet::new();
        for interval in recorded.sampled.iter().filter(|s| s.waiting.is_none()) {
            let task = self.known_task(&interval.app, interval.task);
            if !metered.contains(&task) {
                sampled.insert(task);
            }
            if !metered.contains(&task) || interval.in_python {
                let units = interval.ns as f64 / 1e9;
                self.builder
                    .interval(task, Kind::RunQueue, sampled_span(interval), units, 0);
            }
        }
        self.delegated_reads(recorded);
        if !metered.is_empty() && !sampled.is_empty() {
            self.builder.notes.push(format!(
                "{} of {} tasks did not report their use of resources: their CPU time is that of samples, and they are blamed \
                 for nothing else",
                sampled.len(),
                metered.len() + sampled.len()
            ));
        }
    }

    /// Adds the waits for threads that read from disks for tasks.
    fn delegated_reads(&mut self, recorded: &RecordedRows) {
        let delegated = recorded.sampled.iter().filter(|interval| {
            interval.by_another_thread && interval.waiting == Some(WaitReason::DiskRead)
        });
        for interval in delegated {
            let task = self.known_task(&interval.app, interval.task);
            self.builder.delegated_reads.push(DelegatedRead {
                task,
                span: sampled_span(interval),
                seconds: interval.ns as f64 / 1e9,
            });
        }
    }

    /// Adds blocked time from the kernel and the stacks. If most waits have no stack, Spark's metrics replace the waits
    /// for disks and the network.
    pub(super) fn measured(&mut self, recorded: &RecordedRows) {
        let seconds = |of: fn(WaitReason) -> bool| -> f64 {
            let intervals = recorded.sampled.iter();
            let waits = intervals.filter(|interval| interval.waiting.is_some_and(of));
            waits.map(|interval| interval.ns as f64 / 1e9).sum()
        };
        let all = seconds(|waiting| waiting != WaitReason::RunQueue);
        let unknown = seconds(|waiting| matches!(waiting, WaitReason::Unknown | WaitReason::Other));
        let without_stack = seconds(|waiting| waiting == WaitReason::Unknown);
        let by_metrics = without_stack > all / 2.0;
        if by_metrics {
            self.builder.notes.push(
                "most waits have no stack, because context switches cannot be sampled here (see `unfuse doctor`): waits for disks and the \
                 network are those of Spark's metrics"
                    .to_owned(),
            );
            for row in &recorded.intervals {
                if let Some(kind) = Kind::from_word(&row.kind).filter(|kind| in_metrics(*kind)) {
                    let task = self.known_task(&row.app, row.task);
                    self.builder
                        .interval(task, kind, span(row), 0.0, row.blocked_ns);
                }
            }
        } else if unknown > all / 10.0 {
            self.builder.notes.push(format!(
                "{unknown:.1} s of {all:.1} s in which tasks waited (not for a CPU) have no known cause, and are attributed to no culprit"
            ));
        }
        let mut unnamed = self.unnamed_locks(recorded);
        for interval in &recorded.sampled {
            self.unnamed_lock(interval, &mut unnamed);
            if let Some(kind) =
                blocked_for(interval).filter(|kind| !(by_metrics && in_metrics(*kind)))
            {
                let task = self.known_task(&interval.app, interval.task);
                let ns = i64::try_from(interval.ns).unwrap_or(i64::MAX);
                self.builder
                    .interval(task, kind, sampled_span(interval), 0.0, ns);
            }
        }
    }

    /// Adds a wait without a known reason as far as it was for a lock. Returns the task and the time, ns.
    fn unnamed_lock(
        &mut self,
        interval: &TaskInterval,
        unnamed: &mut UnnamedLocks,
    ) -> Option<(TaskId, i64)> {
        let unknown = [Some(WaitReason::Other), Some(WaitReason::Unknown)];
        if !unknown.contains(&interval.waiting) || blocked_for(interval).is_some() {
            return None;
        }
        let task = self.known_task(&interval.app, interval.task);
        let span = sampled_span(interval);
        let ns = unnamed.take(task, span, interval.ns);
        if ns > 0 {
            self.builder.interval(task, Kind::Lock, span, 0.0, ns);
        }
        (ns > 0).then_some((task, ns))
    }

    /// Adds blocked time as in section 5.2: what Spark measures, and for the CPU the rest of the wall time, which the
    /// paper counts together with the running time. Locks are not among Spark's metrics and stay measured.
    pub(super) fn as_in_the_paper(&mut self, recorded: &RecordedRows, without_running: bool) {
        let mut locks: BTreeMap<TaskId, f64> = BTreeMap::new();
        let mut unnamed = self.unnamed_locks(recorded);
        for interval in &recorded.sampled {
            if let Some((task, ns)) = self.unnamed_lock(interval, &mut unnamed) {
                *locks.entry(task).or_default() += ns as f64;
            }
            if blocked_for(interval) == Some(Kind::Lock) {
                let task = self.known_task(&interval.app, interval.task);
                let ns = i64::try_from(interval.ns).unwrap_or(i64::MAX);
                *locks.entry(task).or_default() += ns as f64;
                self.builder
                    .interval(task, Kind::Lock, sampled_span(interval), 0.0, ns);
            }
        }
        let mut rest: BTreeMap<(TaskId, Span), i64> = BTreeMap::new();
        for row in &recorded.intervals {
            let task = self.known_task(&row.app, row.task);
            let span = span(row);
            let left = rest.entry((task, span)).or_insert(span.end - span.start);
            *left = left.saturating_sub(row.blocked_ns);
            if without_running && row.kind == Kind::RunQueue.word() {
                *left = left.saturating_sub((row.units * 1e9) as i64);
            }
            if let Some(kind) = Kind::from_word(&row.kind) {
                self.builder.interval(task, kind, span, 0.0, row.blocked_ns);
            }
        }
        let mut wholes: BTreeMap<TaskId, f64> = BTreeMap::new();
        for ((task, _), left) in &rest {
            *wholes.entry(*task).or_default() += (*left).max(0) as f64;
        }
        for ((task, span), left) in rest {
            // Locks in proportion: their intervals and these spans have different bounds.
            let lock = locks.get(&task).copied().unwrap_or(0.0) / wholes[&task].max(1.0);
            let left = left.max(0) as f64 * (1.0 - lock.min(1.0));
            self.builder
                .interval(task, Kind::RunQueue, span, 0.0, left as i64);
        }
    }
}

/// The kind of a blocked interval; `None` if the task ran, or waited for something that no neighbour uses.
fn blocked_for(interval: &TaskInterval) -> Option<Kind> {
    if interval.for_memory && interval.waiting != Some(WaitReason::RunQueue) {
        return Some(Kind::ExecutionMemory);
    }
    match interval.waiting? {
        WaitReason::RunQueue => Some(Kind::RunQueue),
        WaitReason::Lock => Some(Kind::Lock),
        WaitReason::Safepoint => Some(Kind::Pause),
        WaitReason::DiskRead => Some(Kind::IoRead),
        WaitReason::DiskWrite => Some(Kind::IoWrite),
        WaitReason::ShuffleFetch | WaitReason::Network => Some(Kind::NetworkFetch),
        WaitReason::Memory => Some(Kind::ExecutionMemory),
        WaitReason::Python
        | WaitReason::Sleep
        | WaitReason::Idle
        | WaitReason::Other
        | WaitReason::Unknown => None,
    }
}

/// Whether Spark measures such waits.
fn in_metrics(kind: Kind) -> bool {
    matches!(kind.resource(), Resource::Io | Resource::Network)
}

fn span(row: &IntervalRow) -> Span {
    Span {
        start: row.start_ns.max(0),
        end: row.end_ns.max(row.start_ns).max(0),
    }
}

/// A single sample has a time and no length. It gets the length of its CPU time, up to that of one sample: if only a
/// part of the tasks is sampled, it stands for other tasks too.
pub(super) fn sampled_span(interval: &TaskInterval) -> Span {
    let ns = i64::try_from(interval.ns)
        .unwrap_or(i64::MAX)
        .min(LONGEST_SAMPLE);
    let start = match interval.start_ns < interval.end_ns {
        true => interval.start_ns,
        false => interval.end_ns.saturating_sub(ns),
    };
    Span {
        start: start.max(0),
        end: interval.end_ns.max(0),
    }
}
