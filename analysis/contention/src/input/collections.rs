//! Divides the CPU time of garbage collection among the stages whose objects fill the heap.
//!
//! A JVM collects whenever the free part of its heap is full, so it collects at the rate *allocated bytes a second ÷ free
//! bytes*. Of that rate, the part of a stage is what it allocates ÷ what all threads of the JVM allocate; and what a stage
//! holds makes the free part smaller, by held bytes ÷ free bytes. The sum of both is the weight of the stage. What threads
//! without a task allocate is the weight of no stage.

use std::collections::BTreeMap;

use unfuse_format::HostRow;

use super::hosts::{Processes, span};
use super::{Builder, position};
use crate::windows::spread;
use crate::{Executor, Kind, Span, StageId, TaskId};

/// The smallest free part of a heap that counts, as a part of the heap.
const LEAST_FREE: f64 = 0.02;

/// The part of a JVM's allocation that a task had in a span.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allocation {
    /// The task.
    pub(super) task: TaskId,
    /// When.
    pub(super) span: Span,
    /// The part (0 to 1) of all that the JVM's threads allocated × seconds.
    pub(super) part_s: f64,
}

/// What tasks allocate and hold, by executor.
#[derive(Default)]
pub(super) struct HeapUse(BTreeMap<Executor, Vec<Use>>);

struct Use {
    stage: StageId,
    span: Span,
    /// Part of the allocation × seconds.
    allocated: f64,
    /// Bytes × seconds.
    held: f64,
}

impl HeapUse {
    /// Takes the allocations of a builder, and reads what its tasks hold.
    pub(super) fn from_builder(builder: &mut Builder) -> Self {
        let mut by_executor = Self::default();
        let tables = &builder.tables;
        let allocated = std::mem::take(&mut builder.allocations);
        let allocated = allocated
            .into_iter()
            .map(|row| (row.task, row.span, row.part_s, 0.0));
        let is_memory = |kind| matches!(kind, Kind::ExecutionMemory | Kind::StorageMemory);
        let held = tables.intervals.iter().filter(|row| is_memory(row.kind));
        let held = held.map(|row| (row.task, row.span, 0.0, row.units));
        for (task, span, allocated, held) in allocated.chain(held) {
            let task = &tables.tasks[position(task)];
            by_executor.0.entry(task.executor).or_default().push(Use {
                stage: task.stage,
                span,
                allocated,
                held,
            });
        }
        by_executor
    }

    /// For each row of one host, the CPU seconds of its garbage collection by stage.
    pub(super) fn divide(
        &self,
        rows: &[&HostRow],
        executors: &Processes,
    ) -> Vec<Vec<(StageId, f64)>> {
        let mut of_jvms: BTreeMap<Executor, Vec<usize>> = BTreeMap::new();
        for (index, row) in rows.iter().enumerate() {
            if let Some(executor) = executors.get(&(row.app.clone(), row.host.clone(), row.pid)) {
                of_jvms.entry(*executor).or_default().push(index);
            }
        }
        let mut divided: Vec<Vec<(StageId, f64)>> = rows.iter().map(|_| Vec::new()).collect();
        for (executor, indices) in of_jvms {
            let Some(uses) = self.0.get(&executor) else {
                continue;
            };
            let windows: Vec<Span> = indices.iter().map(|index| span(rows[*index])).collect();
            let mut sums: Vec<Sums> = windows.iter().map(|_| Sums::default()).collect();
            for one in uses {
                for (at, part) in spread(&windows, one.span) {
                    let of_stage = sums[at].entry(one.stage).or_default();
                    of_stage.0 += one.allocated * part;
                    of_stage.1 += one.held * part;
                }
            }
            for (sums, index) in sums.iter().zip(indices) {
                divided[index] = shares(rows[index], sums);
            }
        }
        divided
    }
}

/// Allocation (part × seconds) and held memory (bytes × seconds) by stage.
type Sums = BTreeMap<StageId, (f64, f64)>;

/// The CPU seconds of garbage collection by stage, in one row of a JVM.
fn shares(row: &HostRow, sums: &Sums) -> Vec<(StageId, f64)> {
    let seconds = span(row).seconds();
    let allocated: f64 = sums
        .values()
        .map(|(allocated, _)| allocated / seconds)
        .sum();
    let held: f64 = sums.values().map(|(_, held)| held / seconds).sum();
    let per_byte = row
        .heap_bytes
        .zip(row.live_bytes)
        .map_or(0.0, |(heap, live)| {
            let (heap, live) = (heap as f64, live as f64);
            let free = (heap - live).max(LEAST_FREE * heap);
            // A part of what Spark counts may have become garbage, or be outside the heap.
            (live / held).min(1.0) / free
        });
    // Threads that have ended are not in the JVM's sum.
    let scale = 1.0 / seconds / allocated.max(1.0);
    let weight = |(allocated, held): &(f64, f64)| allocated * scale + held / seconds * per_byte;
    let of_stages: f64 = sums.values().map(weight).sum();
    let whole = of_stages + (1.0 - allocated).max(0.0);
    let of_stage =
        |(stage, one): (&StageId, &(f64, f64))| (*stage, row.gc_cpu_s * weight(one) / whole);
    let units = sums.iter().map(of_stage);
    units.filter(|(_, units)| *units > 0.0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::hosts;
    use crate::input::neighbours::Neighbours;
    use crate::{Blame, Culprit, KnownProcess, Options, QueryId, Workload};

    const S: i64 = 1_000_000_000;

    fn stage(query: u64) -> StageId {
        StageId {
            query: QueryId(query),
            stage: 0,
            attempt: 0,
        }
    }

    /// One row of two seconds, in which collectors used a second; a heap of 1,000 bytes.
    fn row(live_bytes: Option<u64>) -> HostRow {
        HostRow {
            end_ns: 2 * S,
            gc_cpu_s: 1.0,
            heap_bytes: Some(1000),
            live_bytes,
            ..HostRow::default()
        }
    }

    /// Checks the CPU seconds of queries 1 and 2.
    fn check(live_bytes: Option<u64>, sums: &Sums, expected: [f64; 2]) {
        let found = shares(&row(live_bytes), sums);
        let [(first, one), (second, other)] = found[..] else {
            panic!("{found:?}");
        };
        assert_eq!((first, second), (stage(1), stage(2)));
        let is_near = |found: f64, expected: f64| (found - expected).abs() < 1e-12;
        assert!(
            is_near(one, expected[0]) && is_near(other, expected[1]),
            "{found:?}"
        );
    }

    #[test]
    fn in_an_empty_heap_those_who_allocate_collect() {
        // A half of the time all allocation, and half of the allocation all the time.
        let sums = Sums::from([(stage(1), (1.0, 0.0)), (stage(2), (0.5, 0.0))]);
        check(None, &sums, [0.5, 0.25]);
    }

    #[test]
    fn in_a_full_heap_those_who_hold_it_collect() {
        // 600 bytes all the time, of 800 that survive: three times the free part.
        let sums = Sums::from([(stage(1), (2.0, 0.0)), (stage(2), (0.0, 1200.0))]);
        check(Some(800), &sums, [0.25, 0.75]);
        // More than survives: 200 of 200 bytes, a quarter of the free part.
        check(Some(200), &sums, [0.8, 0.2]);
    }

    /// A query that computes stands still while the JVM collects what another query allocates.
    #[test]
    fn a_pause_is_blamed_on_the_query_that_allocates() {
        let (mut builder, whole, tasks) = Builder::with_two_tasks();
        for (task, (part_s, paused)) in tasks.into_iter().zip([(0.0, S), (1.6, 0)]) {
            builder.interval(task, Kind::RunQueue, whole, 0.5, 0);
            builder.interval(task, Kind::Pause, whole, 0.0, paused);
            builder.allocations.push(Allocation {
                task,
                span: whole,
                part_s,
            });
        }
        let row = HostRow {
            host: "h".to_owned(),
            pid: 7,
            cpus: 2,
            cpu_s: 2.0,
            jvm_cpu_s: 2.0,
            ..row(None)
        };
        let executors = [((String::new(), "h".to_owned(), 7), Executor::default())].into();
        hosts::add(&mut builder, &[row], &executors, &Neighbours::default());
        let workload = Workload::new(builder.finish().tables).unwrap();
        let options = Options {
            victims: [QueryId(1)].into(),
            ..Options::default()
        };
        let mut paths = Blame::new(&workload, &options).explanations(&workload);
        paths.retain(|path| path.kind == Kind::Pause);
        let found: Vec<_> = paths
            .iter()
            .map(|path| (path.culprit, path.operator.as_deref(), path.seconds))
            .collect();
        let other = Culprit::Query(QueryId(2));
        let rest = Culprit::Known(KnownProcess::Gc);
        let [
            (first, Some("garbage collection"), most),
            (second, None, least),
        ] = found[..]
        else {
            panic!("{found:?}");
        };
        assert_eq!((first, second), (other, rest));
        assert!(
            (most - 0.8).abs() < 1e-9 && (least - 0.2).abs() < 1e-9,
            "{found:?}"
        );
    }

    #[test]
    fn parts_never_exceed_the_whole() {
        let sums = Sums::from([(stage(1), (6.0, 0.0)), (stage(2), (2.0, 1e30))]);
        for live in [None, Some(0), Some(1000), Some(u64::MAX)] {
            let units = shares(&row(live), &sums);
            let sum: f64 = units.iter().map(|(_, units)| units).sum();
            assert!((sum - 1.0).abs() < 1e-9, "{live:?}: {units:?}");
        }
        assert!(shares(&row(Some(1)), &Sums::new()).is_empty());
    }
}
