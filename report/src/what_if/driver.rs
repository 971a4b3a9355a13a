//! How much longer the driver takes because of others: it plans and schedules between a query's stages, and waits for CPUs too.

use std::collections::{BTreeMap, BTreeSet};

use unfuse_contention::{
    Culprit, Executor, Kind, KnownProcess, QueryId, Resource, Source, Span, Workload,
};

/// A larger share of its time is never attributed.
const MOST: f64 = 0.9;
/// A shorter time says too little about the neighbours, s.
const SHORTEST_S: f64 = 0.1;

/// The driver of a query, while none of the query's tasks ran.
#[derive(Debug, Default)]
pub(crate) struct Driver {
    /// Seconds without a task of the query, from its first stage to its last.
    idle_s: f64,
    /// CPUs of the host.
    cpus: f64,
    /// CPU time of the JVM outside tasks during the query, s.
    cpu_s: f64,
    /// Runnable threads of each culprit meanwhile, on average.
    runnable: BTreeMap<Culprit, f64>,
}

impl Driver {
    /// Looks at the host on which the JVM of the driver used most CPU time.
    pub(crate) fn new(workload: &Workload, victim: QueryId) -> Self {
        Self::find(workload, victim).unwrap_or_default()
    }

    fn find(workload: &Workload, victim: QueryId) -> Option<Self> {
        let tables = workload.tables();
        let whole = workload.span_of(victim)?;
        let own = workload.tasks_of_queries(&BTreeSet::from([victim]));
        let seconds = |spans: &[Span]| spans.iter().map(|span| span.seconds()).sum::<f64>();
        let mut idle = without(whole, own.map(|task| task.span).collect());
        if seconds(&idle) < SHORTEST_S {
            // The neighbours are as busy at other times.
            idle = vec![whole];
        }
        let idle_s = seconds(&idle);
        let cpu = tables
            .known
            .iter()
            .filter(|row| row.resource == Resource::Cpu);
        // The share of a row that is in spans, which do not overlap and are in order.
        let during = |row: Span, spans: &[Span]| -> f64 {
            let first = spans.partition_point(|span| span.end <= row.start);
            let near = spans[first..]
                .iter()
                .take_while(|span| span.start < row.end);
            let parts = near.filter_map(|span| row.intersection(*span));
            parts.map(Span::seconds).sum::<f64>() / row.seconds().max(1e-9)
        };
        let mut by_host: BTreeMap<_, f64> = BTreeMap::new();
        for row in cpu.clone().filter(|row| row.process == KnownProcess::Jvm) {
            *by_host.entry(row.host).or_default() += row.units * during(row.span, &[whole]);
        }
        let (host, cpu_s) = by_host.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
        let cpus = workload.capacity(host, Executor::default(), Resource::Cpu)?;
        if idle_s <= 0.0 {
            return None;
        }
        let mut runnable: BTreeMap<Culprit, f64> = BTreeMap::new();
        for row in cpu.filter(|row| row.host == host && row.process != KnownProcess::Jvm) {
            let culprit = Source::Known(row.process).culprit();
            *runnable.entry(culprit).or_default() += row.units * during(row.span, &idle) / idle_s;
        }
        for row in tables
            .intervals
            .iter()
            .filter(|row| row.kind == Kind::RunQueue)
        {
            let part = during(row.span, &idle);
            let Some(task) = workload
                .task(row.task)
                .filter(|task| part > 0.0 && task.host == host)
            else {
                continue;
            };
            let seconds = row.units + row.blocked_ns as f64 / 1e9;
            let culprit = Culprit::Query(task.stage.query);
            *runnable.entry(culprit).or_default() += seconds * part / idle_s;
        }
        Some(Self {
            idle_s,
            cpus,
            cpu_s,
            runnable,
        })
    }

    /// The share of its time that would not be without a culprit, 0 to 1. It runs on one CPU, which the scheduler divides evenly
    /// among runnable threads; while it does not compute, nobody slows it down.
    pub(crate) fn share(&self, culprit: Culprit) -> f64 {
        let all: f64 = self.runnable.values().sum();
        let own = self.runnable.get(&culprit).copied().unwrap_or(0.0);
        if own <= 0.0 || self.idle_s <= 0.0 {
            return 0.0;
        }
        let speed = |others: f64| (self.cpus / (others.max(0.0) + 1.0)).min(1.0);
        let (now, then) = (speed(all), speed(all - own));
        let computes_s = self.cpu_s.min(self.idle_s * now);
        let saved_s = computes_s * (1.0 / now - 1.0 / then);
        (saved_s / self.idle_s).clamp(0.0, MOST)
    }
}

/// CPUs that each culprit used on all hosts while a query ran, on average.
pub(super) fn used_cpus(workload: &Workload, victim: QueryId) -> BTreeMap<Culprit, f64> {
    let mut used: BTreeMap<Culprit, f64> = BTreeMap::new();
    let Some(whole) = workload.span_of(victim).filter(|span| span.seconds() > 0.0) else {
        return used;
    };
    let tables = workload.tables();
    let mut add = |culprit: Culprit, span: Span, seconds: f64| {
        let both = span.intersection(whole).map_or(0.0, Span::seconds);
        let part = both / span.seconds().max(1e-9);
        *used.entry(culprit).or_default() += seconds * part / whole.seconds();
    };
    for row in tables
        .known
        .iter()
        .filter(|row| row.resource == Resource::Cpu)
    {
        add(Source::Known(row.process).culprit(), row.span, row.units);
    }
    let of_tasks = tables.intervals.iter();
    for row in of_tasks.filter(|row| row.kind == Kind::RunQueue) {
        if let Some(task) = workload.task(row.task) {
            add(Culprit::Query(task.stage.query), row.span, row.units);
        }
    }
    used
}

/// The parts of a span in which none of the others is.
fn without(whole: Span, mut others: Vec<Span>) -> Vec<Span> {
    others.sort_unstable_by_key(|span| span.start);
    let (mut parts, mut from) = (Vec::new(), whole.start);
    for other in others {
        if other.start > from {
            parts.push(Span {
                start: from,
                end: other.start.min(whole.end),
            });
        }
        from = from.max(other.end);
        if from >= whole.end {
            return parts;
        }
    }
    parts.push(Span {
        start: from,
        end: whole.end,
    });
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn driver(cpu_s: f64, threads: f64) -> Driver {
        Driver {
            idle_s: 9.0,
            cpus: 2.0,
            cpu_s,
            runnable: BTreeMap::from([
                (Culprit::Query(QueryId(1)), threads),
                (Culprit::Unknown, 0.0),
            ]),
        }
    }

    #[test]
    fn a_driver_that_computes_waits_for_its_share_of_the_cpus() {
        let neighbour = Culprit::Query(QueryId(1));
        // Eight threads and the driver on two CPUs: it would need 2 s instead of 9 s.
        let share = driver(100.0, 8.0).share(neighbour);
        assert!((share - 7.0 / 9.0).abs() < 1e-9, "{share}");
        // One thread leaves it a CPU.
        assert!(driver(100.0, 1.0).share(neighbour) < 1e-9);
        // It computes for 1 s of 9 s, and that took 4.5 s.
        let share = driver(1.0, 8.0).share(neighbour);
        assert!((share - 3.5 / 9.0).abs() < 1e-9, "{share}");
        assert!(driver(0.0, 8.0).share(neighbour) < 1e-9);
        assert!(driver(100.0, 8.0).share(Culprit::Unknown) < 1e-9);
        assert!(Driver::default().share(neighbour) < 1e-9);
    }

    #[test]
    fn gaps_are_where_no_task_is() {
        let span = |start, end| Span { start, end };
        let tasks = vec![span(5, 8), span(2, 6), span(12, 30)];
        assert_eq!(without(span(0, 20), tasks), [span(0, 2), span(8, 12)]);
        assert_eq!(without(span(0, 20), Vec::new()), [span(0, 20)]);
    }
}
