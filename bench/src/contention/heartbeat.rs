//! How much the result of a run changes with longer heartbeats (figure 13).

use std::collections::BTreeMap;

use anyhow::Result;
use unfuse_contention::{
    Blame, Culprit, Heartbeat, HostId, Interval, Kind, Options, QueryId, Span, Tables, TaskId,
    Workload,
};

/// The tables as if rows had been cut only at these heartbeats and, with
/// `at_tasks`, at starts and ends of the host's tasks.
fn coarser(tables: &Tables, heartbeat_ns: i64, at_tasks: bool) -> Tables {
    let cuts = cuts(tables, heartbeat_ns, at_tasks);
    let tasks: BTreeMap<TaskId, (HostId, Span)> = tables
        .tasks
        .iter()
        .map(|task| (task.id, (task.host, task.span)))
        .collect();
    let mut kept: Vec<Interval> = Vec::new();
    let mut sums: BTreeMap<(TaskId, Kind, i64), (Span, f64, f64)> = BTreeMap::new();
    for row in &tables.intervals {
        let Some((host, life)) = tasks.get(&row.task).filter(|_| !row.kind.is_for_slots()) else {
            // Rows about slots come from the scheduler's events, not from heartbeats.
            kept.push(row.clone());
            continue;
        };
        let length = (row.span.end - row.span.start) as f64;
        for piece in pieces(&cuts[host], *life) {
            if let Some(both) = row.span.intersection(piece) {
                let part = (both.end - both.start) as f64 / length;
                let sum = sums
                    .entry((row.task, row.kind, piece.start))
                    .or_insert((piece, 0.0, 0.0));
                sum.1 += row.units * part;
                sum.2 += row.blocked_ns as f64 * part;
            }
        }
    }
    kept.extend(
        sums.into_iter()
            .map(|((task, kind, _), (span, units, blocked))| Interval {
                task,
                kind,
                span,
                units,
                blocked_ns: (blocked as i64).min(span.end - span.start),
            }),
    );
    let beats = cuts
        .iter()
        .flat_map(|(host, cuts)| cuts.iter().map(|at| (*host, *at)));
    Tables {
        intervals: kept,
        heartbeats: beats.map(|(host, at)| Heartbeat { host, at }).collect(),
        ..tables.clone()
    }
}

/// The times at which rows of each host are cut, ns.
fn cuts(tables: &Tables, heartbeat_ns: i64, at_tasks: bool) -> BTreeMap<HostId, Vec<i64>> {
    let mut cuts: BTreeMap<HostId, Vec<i64>> = BTreeMap::new();
    let mut ends: BTreeMap<HostId, Span> = BTreeMap::new();
    for task in &tables.tasks {
        let own = cuts.entry(task.host).or_default();
        if at_tasks {
            own.extend([task.span.start, task.span.end]);
        }
        let whole = ends.entry(task.host).or_insert(task.span);
        *whole = whole.hull(task.span);
    }
    for (host, whole) in ends {
        let own = cuts.entry(host).or_default();
        let beats = (whole.end - whole.start) / heartbeat_ns;
        own.extend((1..=beats).map(|beat| whole.start + beat * heartbeat_ns));
        own.sort_unstable();
        own.dedup();
    }
    cuts
}

/// The pieces of a task's life between cuts.
fn pieces(cuts: &[i64], life: Span) -> impl Iterator<Item = Span> {
    let first = cuts.partition_point(|at| *at <= life.start);
    let last = cuts.partition_point(|at| *at < life.end);
    let bounds = std::iter::once(life.start)
        .chain(cuts[first..last.max(first)].iter().copied())
        .chain([life.end]);
    let bounds: Vec<i64> = bounds.collect();
    (1..bounds.len()).map(move |index| Span {
        start: bounds[index - 1],
        end: bounds[index],
    })
}

/// The DOR of each culprit for each victim.
fn responsibilities(workload: &Workload) -> BTreeMap<QueryId, BTreeMap<Culprit, f64>> {
    let mut victims: BTreeMap<QueryId, BTreeMap<Culprit, f64>> = BTreeMap::new();
    for path in Blame::new(workload, &Options::default()).explanations(workload) {
        let culprits = victims.entry(path.victim).or_default();
        *culprits.entry(path.culprit).or_default() += path.weight;
    }
    victims
}

/// Mean Euclidean distance between the DORs of each victim from the recorded rows and from coarser ones.
pub fn distance(tables: &Tables, heartbeat_ns: i64, at_tasks: bool) -> Result<f64> {
    let exact = responsibilities(&Workload::new(tables.clone())?);
    let coarse = responsibilities(&Workload::new(coarser(tables, heartbeat_ns, at_tasks))?);
    let nothing = BTreeMap::new();
    let distances = exact.iter().map(|(victim, culprits)| {
        let other = coarse.get(victim).unwrap_or(&nothing);
        let new = other.keys().filter(|name| !culprits.contains_key(name));
        let of =
            |culprits: &BTreeMap<Culprit, f64>, name| culprits.get(name).copied().unwrap_or(0.0);
        let squares = culprits
            .keys()
            .chain(new)
            .map(|name| (of(culprits, name) - of(other, name)).powi(2));
        squares.sum::<f64>().sqrt()
    });
    Ok(distances.sum::<f64>() / exact.len().max(1) as f64)
}

#[cfg(test)]
mod tests {
    use unfuse_contention::{Executor, Host, Query, Stage, StageId, Task};

    use super::*;

    const S: i64 = 1_000_000_000;

    #[test]
    fn amounts_stay_when_rows_are_cut_elsewhere() {
        let stage = StageId {
            query: QueryId(1),
            stage: 0,
            attempt: 0,
        };
        let span = |start, end| Span {
            start: start * S,
            end: end * S,
        };
        let mut tables = Tables::default();
        tables.hosts.push(Host {
            id: HostId(0),
            name: "h".into(),
        });
        tables.queries.push(Query {
            id: QueryId(1),
            name: "q".into(),
            application: String::new(),
            label: "q".into(),
            user: String::new(),
            pool: String::new(),
            weight: 1.0,
        });
        tables.stages.push(Stage {
            id: stage,
            parents: vec![],
            span: span(0, 10),
        });
        for (id, life) in [(1, span(0, 10)), (2, span(3, 5))] {
            tables.tasks.push(Task {
                id: TaskId(id),
                stage,
                host: HostId(0),
                executor: Executor::default(),
                span: life,
                runs: true,
            });
            for second in life.start / S..life.end / S {
                tables.intervals.push(Interval {
                    task: TaskId(id),
                    kind: Kind::RunQueue,
                    span: span(second, second + 1),
                    units: second as f64,
                    blocked_ns: S / 2,
                });
            }
        }
        for (at_tasks, rows) in [(false, 3 + 2), (true, 5 + 2)] {
            let coarse = coarser(&tables, 4 * S, at_tasks);
            assert_eq!(coarse.intervals.len(), rows, "{:?}", coarse.intervals);
            let sum = |tables: &Tables| -> (f64, i64) {
                let rows = tables.intervals.iter();
                (
                    rows.clone().map(|row| row.units).sum(),
                    rows.map(|row| row.blocked_ns).sum(),
                )
            };
            assert_eq!(sum(&coarse), sum(&tables));
            Workload::new(coarse).expect("rows that can be");
        }
    }
}
