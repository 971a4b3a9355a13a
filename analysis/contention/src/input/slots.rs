//! Waiting for task slots: the slots that others held while a stage had tasks that could not start.
//!
//! Adding up the waiting time of each task would count a stage of a thousand tasks a thousand times. Others took at
//! most the slots that they held, so this counts: at any time the smaller of two numbers, waiting tasks and slots of
//! others, on the hosts of these slots. Others are queries of the same application: the stage could not have used
//! another application's slots.
//!
//! While all CPUs of a host are busy, another slot would not help, and a query that holds one without computing blocks
//! nobody. So only the idle part of the CPUs makes it a wait for slots; the rest is a wait for the CPU.

use std::collections::BTreeMap;

use super::Builder;
use super::hosts::BusyCpus;
use super::profile::application;
use crate::{Executor, HostId, Kind, QueryId, Span, StageId};

/// Waits are summed in buckets of this length, ns.
const BUCKET: i64 = 2_000_000_000;

/// When tasks could have run, and when they ran.
#[derive(Default)]
pub(super) struct PendingTasks {
    changes: Vec<(i64, Change)>,
    /// By host, the difference from the driver's clock, ns.
    clocks: BTreeMap<HostId, i64>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    Submitted(StageId, u32),
    Started(StageId, HostId),
    Ended(StageId, HostId),
    Completed(StageId),
}

impl PendingTasks {
    /// Adds the submission of a stage with a number of tasks.
    pub(super) fn submitted(&mut self, stage: StageId, at: i64, tasks: u32) {
        self.changes.push((at, Change::Submitted(stage, tasks)));
    }

    /// Adds the completion of a stage.
    pub(super) fn completed(&mut self, stage: StageId, at: i64) {
        self.changes.push((at, Change::Completed(stage)));
    }

    /// Adds a task that ran, in its host's clock.
    pub(super) fn ran(&mut self, stage: StageId, host: HostId, span: Span, clock: i64) {
        self.clocks.insert(host, clock);
        self.changes
            .push((span.start - clock, Change::Started(stage, host)));
        self.changes
            .push((span.end - clock, Change::Ended(stage, host)));
    }
}

/// Adds the slots of running tasks and the blocked time of waiting ones.
pub(super) fn add(builder: &mut Builder, pending: &PendingTasks, busy: &BusyCpus) {
    let running: Vec<_> = builder
        .tables
        .tasks
        .iter()
        .filter(|task| task.runs && task.span.start < task.span.end)
        .map(|task| (task.id, task.span))
        .collect();
    for (task, span) in running {
        builder.interval(task, Kind::Slot, span, span.seconds(), 0);
    }
    let by_host = |(stage, hosts): (StageId, ByHost)| {
        let hosts = (0..).map(HostId).zip(hosts);
        hosts.map(move |(host, buckets)| (stage, host, buckets))
    };
    for (stage, host, buckets) in waited(pending).into_iter().flat_map(by_host) {
        let clock = pending.clocks.get(&host).copied().unwrap_or(0);
        let mut waiting = Vec::new();
        for (_, SlotWait { span, mut seconds }) in buckets {
            let span = Span {
                start: span.start + clock,
                end: span.end + clock,
            };
            let busy = busy.part(host, span);
            // Each waiting task can wait for the whole span at most.
            let mut index = 0;
            while seconds > 1e-9 {
                if index == waiting.len() {
                    let application = application(stage.query);
                    let executor = Executor {
                        application,
                        number: 0,
                    };
                    waiting.push(builder.task(stage, host, executor, false));
                }
                let blocked = seconds.min(span.seconds());
                for (kind, part) in [(Kind::Slot, 1.0 - busy), (Kind::SlotOnBusyCpu, busy)] {
                    let blocked_ns = (blocked * part * 1e9) as i64;
                    if blocked_ns > 0 {
                        builder.interval(waiting[index], kind, span, 0.0, blocked_ns);
                    }
                }
                seconds -= blocked;
                index += 1;
            }
        }
    }
}

/// The wait of a stage for slots of a host in one bucket.
#[derive(Clone, Copy, Debug, PartialEq)]
struct SlotWait {
    /// From the first wait to the last.
    span: Span,
    /// Slot seconds.
    seconds: f64,
}

/// The waits of a stage for slots, by host and bucket.
type ByHost = Vec<Vec<(i64, SlotWait)>>;

/// Slots that others held while a stage had tasks to run, by host and bucket.
fn waited(pending: &PendingTasks) -> BTreeMap<StageId, ByHost> {
    let mut changes = pending.changes.clone();
    changes.sort_unstable();
    let mut waiting: BTreeMap<StageId, u32> = BTreeMap::new();
    let mut running: BTreeMap<u32, Vec<RunningTasks>> = BTreeMap::new();
    let mut waited: BTreeMap<StageId, ByHost> = BTreeMap::new();
    let mut at = changes.first().map_or(0, |(at, _)| *at);
    for (next, change) in changes {
        if next > at {
            for (stage, tasks) in waiting.iter().filter(|(_, tasks)| **tasks > 0) {
                let hosts = running.get(&application(stage.query));
                let hosts = hosts.map_or(&[][..], Vec::as_slice);
                let others = |running: &RunningTasks| running.of_others(stage.query);
                let all: u32 = hosts.iter().map(others).sum();
                if all == 0 {
                    continue;
                }
                let part = f64::from((*tasks).min(all)) / f64::from(all);
                let by_host = waited.entry(*stage).or_default();
                by_host.resize_with(by_host.len().max(hosts.len()), Vec::new);
                for (buckets, running) in by_host.iter_mut().zip(hosts) {
                    let slots = others(running);
                    if slots > 0 {
                        add_to(buckets, at, next, f64::from(slots) * part);
                    }
                }
            }
            at = next;
        }
        match change {
            Change::Submitted(stage, tasks) => *waiting.entry(stage).or_default() += tasks,
            Change::Started(stage, host) => {
                if let Some(tasks) = waiting.get_mut(&stage) {
                    *tasks = tasks.saturating_sub(1);
                }
                on_host(&mut running, stage, host).start(stage.query);
            }
            Change::Ended(stage, host) => on_host(&mut running, stage, host).end(stage.query),
            Change::Completed(stage) => {
                waiting.remove(&stage);
            }
        }
    }
    waited
}

/// Adds a wait for `slots` slots from `start` to `end`, which must not be before the last one added.
fn add_to(buckets: &mut Vec<(i64, SlotWait)>, start: i64, end: i64, slots: f64) {
    for (bucket, span) in in_buckets(start, end) {
        let seconds = slots * span.seconds();
        match buckets.last_mut() {
            Some((last, waited)) if *last == bucket => {
                waited.span = waited.span.hull(span);
                waited.seconds += seconds;
            }
            _ => buckets.push((bucket, SlotWait { span, seconds })),
        }
    }
}

/// The running tasks of a stage's application on a host. Hosts are numbered from 0.
fn on_host(
    running: &mut BTreeMap<u32, Vec<RunningTasks>>,
    stage: StageId,
    host: HostId,
) -> &mut RunningTasks {
    let hosts = running.entry(application(stage.query)).or_default();
    let index = host.0 as usize;
    hosts.resize_with(hosts.len().max(index + 1), RunningTasks::default);
    &mut hosts[index]
}

/// The running tasks of an application on a host.
#[derive(Default)]
struct RunningTasks {
    all: u32,
    of: BTreeMap<QueryId, u32>,
}

impl RunningTasks {
    /// Slots that other queries hold.
    fn of_others(&self, query: QueryId) -> u32 {
        self.all - self.of.get(&query).copied().unwrap_or(0)
    }

    fn start(&mut self, query: QueryId) {
        self.all += 1;
        *self.of.entry(query).or_default() += 1;
    }

    fn end(&mut self, query: QueryId) {
        if let Some(tasks) = self.of.get_mut(&query) {
            self.all -= 1;
            *tasks -= 1;
            if *tasks == 0 {
                self.of.remove(&query);
            }
        }
    }
}

/// The parts of a span in each bucket.
fn in_buckets(start: i64, end: i64) -> impl Iterator<Item = (i64, Span)> {
    let last = (end - 1).div_euclid(BUCKET);
    (start.div_euclid(BUCKET)..=last).map(move |bucket| {
        let part = Span {
            start: start.max(bucket * BUCKET),
            end: end.min((bucket + 1) * BUCKET),
        };
        (bucket, part)
    })
}

#[cfg(test)]
mod tests {
    use unfuse_format::HostRow;

    use super::*;
    use crate::input::profile::PER_APPLICATION;

    const S: i64 = 1_000_000_000;

    /// The waits of a query's stage for slots of the only host.
    fn waits_of(query: u64, pending: &PendingTasks) -> Vec<SlotWait> {
        let waited = waited(pending);
        let buckets = waited.get(&stage(query)).into_iter().flatten().flatten();
        buckets.map(|(_, wait)| *wait).collect()
    }

    fn seconds(query: u64, pending: &PendingTasks) -> f64 {
        waits_of(query, pending)
            .iter()
            .map(|wait| wait.seconds)
            .sum()
    }

    fn stage(query: u64) -> StageId {
        StageId {
            query: QueryId(query),
            stage: 0,
            attempt: 0,
        }
    }

    fn ran(pending: &mut PendingTasks, query: u64, start: i64, end: i64) {
        let span = Span {
            start: start * S,
            end: end * S,
        };
        pending.ran(stage(query), HostId(0), span, 0);
    }

    #[test]
    fn what_others_hold_counts_once() {
        // From second 0 on, query 1 has 10 tasks to run; query 2 holds two slots until second 4.
        let mut pending = PendingTasks::default();
        pending.submitted(stage(1), 0, 10);
        pending.submitted(stage(2), 0, 2);
        ran(&mut pending, 2, 0, 4);
        ran(&mut pending, 2, 0, 4);
        for at in 0..5 {
            ran(&mut pending, 1, 4 + at, 5 + at);
            ran(&mut pending, 1, 4 + at, 5 + at);
        }
        assert_eq!(seconds(1, &pending), 8.0);
        assert_eq!(waits_of(2, &pending), []);
    }

    #[test]
    fn no_more_is_missing_than_there_are_tasks() {
        let mut pending = PendingTasks::default();
        pending.submitted(stage(1), 0, 1);
        for _ in 0..5 {
            ran(&mut pending, 2, 0, 3);
        }
        pending.completed(stage(1), 2 * S);
        assert_eq!(seconds(1, &pending), 2.0);
    }

    #[test]
    fn slots_of_another_application_are_not_missed() {
        let of_other = PER_APPLICATION + 2;
        let mut pending = PendingTasks::default();
        pending.submitted(stage(1), 0, 5);
        ran(&mut pending, of_other, 0, 4);
        assert!(waited(&pending).is_empty());
        ran(&mut pending, 2, 1, 3);
        assert_eq!(seconds(1, &pending), 2.0);
    }

    #[test]
    fn waits_lie_where_they_were() {
        let mut pending = PendingTasks::default();
        pending.submitted(stage(1), 3 * S / 2, 1);
        ran(&mut pending, 2, 0, 3);
        ran(&mut pending, 1, 3, 4);
        let waits: Vec<(i64, i64, f64)> = waits_of(1, &pending)
            .iter()
            .map(|wait| (wait.span.start, wait.span.end, wait.seconds))
            .collect();
        assert_eq!(waits, [(3 * S / 2, 2 * S, 0.5), (2 * S, 3 * S, 1.0)]);
    }

    #[test]
    fn while_the_cpus_are_busy_a_slot_helps_nobody() {
        let mut builder = Builder::default();
        let host = builder.host("h");
        let mut pending = PendingTasks::default();
        pending.submitted(stage(1), 0, 1);
        ran(&mut pending, 2, 0, 4);
        let row = |start_ns, end_ns, cpu_s| HostRow {
            host: "h".to_owned(),
            start_ns: start_ns * S,
            end_ns: end_ns * S,
            cpus: 2,
            cpu_s,
            ..HostRow::default()
        };
        let busy = BusyCpus::from_rows(&mut builder, &[row(0, 2, 4.0), row(2, 4, 1.0)]);
        assert_eq!(busy.part(HostId(7), Span { start: 0, end: S }), 0.0);
        add(&mut builder, &pending, &busy);
        let blocked = |kind| -> i64 {
            let rows = builder.tables.intervals.iter();
            rows.filter(|row| row.kind == kind)
                .map(|row| row.blocked_ns)
                .sum()
        };
        assert_eq!(host, HostId(0));
        assert_eq!(blocked(Kind::SlotOnBusyCpu), 2_500_000_000);
        assert_eq!(blocked(Kind::Slot), 1_500_000_000);
    }
}
