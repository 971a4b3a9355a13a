//! Generated stages with a known truth, and stages that make no sense.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;
use crate::RunningTask;

/// A stage without skew, and one of its tasks.
#[derive(Clone, Debug)]
struct Plain {
    tasks: Vec<Task>,
    chosen: usize,
}

const HOSTS: usize = 4;

/// Four waves of tasks that differ by up to a tenth, as their data does.
fn plain() -> impl Strategy<Value = Plain> {
    let noise = || prop::collection::vec(0.9..1.1, 160);
    let sizes = (
        // Each executor has at least one slot.
        2 * HOSTS..=40,
        200.0..5000.0,
        10.0..1e6,
        any::<prop::sample::Index>(),
    );
    (sizes, noise(), noise()).prop_map(|((wave, base, records, chosen), times, amounts)| {
        let n = 4 * wave;
        let task = |index: usize| {
            let ms = (base * times[index]) as u64;
            let records = (records * amounts[index]) as u64;
            Task {
                index: index as i32,
                task: index as i64,
                executor: Arc::from(format!("{}", index % (2 * HOSTS))),
                host: Arc::from(format!("host-{}", index % HOSTS)),
                locality: "NODE_LOCAL".into(),
                succeeded: true,
                run_ms: ms,
                cpu_ns: ms * 900_000,
                gc_ms: ms / 50,
                read_records: records,
                read_bytes: 80 * records,
                ..Task::default()
            }
        };
        Plain {
            tasks: (0..n).map(task).collect(),
            chosen: chosen.index(n),
        }
    })
}

/// A stage on as many slots as there are tasks in a wave.
fn stage(tasks: Vec<Task>, delays: &[i64]) -> Stage {
    let wave = tasks.len() / 4;
    on_slots(wave, tasks, delays)
}

/// The slots belong to the executors of the first tasks; each task gets the next free slot of its executor.
fn on_slots(slots: usize, mut tasks: Vec<Task>, delays: &[i64]) -> Stage {
    let of: Vec<Arc<str>> = tasks
        .iter()
        .take(slots)
        .map(|task| task.executor.clone())
        .collect();
    let mut free = vec![0; slots];
    for (index, task) in tasks.iter_mut().enumerate() {
        let its = (0..slots).filter(|slot| of[*slot] == task.executor);
        let slot = its.min_by_key(|slot| free[*slot]).unwrap_or(0);
        task.launched_ms = free[slot];
        let delay = delays.get(index).copied().unwrap_or(3);
        task.finished_ms = task.launched_ms + delay + task.run_ms as i64;
        free[slot] = task.finished_ms;
    }
    let mut stage = Stage {
        attempts: tasks,
        ..Stage::default()
    };
    stage.mark_first();
    stage
}

/// The stage must be skewed for this reason, with these tasks the slowest.
fn found(stage: &Stage, cause: Cause, tasks: &[usize]) -> Result<(), TestCaseError> {
    let finding = detect(stage, &Options::default());
    prop_assert_eq!(finding.verdict, Verdict::Skewed(cause), "{:?}", &finding);
    prop_assert!(finding.sure > 0.9, "{:?}", &finding);
    prop_assert!(finding.saved_ms > 0.0 && finding.saved_ms < finding.stage_ms);
    for index in tasks {
        let slow = finding
            .tasks
            .iter()
            .find(|task| task.index == *index as i32);
        prop_assert!(
            slow.is_some_and(|slow| slow.parts[0].cause == cause),
            "{:?}",
            &finding
        );
    }
    prop_assert!(
        tasks.contains(&(finding.tasks[0].index as usize)),
        "{:?}",
        &finding
    );
    Ok(())
}

proptest! {
    // Among enough stages, chance produces every outcome, so the cases are the same each time.
    #![proptest_config(ProptestConfig { cases: 100, max_shrink_iters: 20, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    #[test]
    fn tasks_that_differ_by_chance_are_even(plain in plain()) {
        let finding = detect(&stage(plain.tasks, &[]), &Options::default());
        prop_assert_eq!(finding.verdict, Verdict::Even, "{:?}", &finding);
        prop_assert_eq!(finding.sure, 0.0);
    }

    #[test]
    fn more_data_in_proportion_is_data_skew(plain in plain(), times in 8u64..30) {
        let mut tasks = plain.tasks;
        let task = &mut tasks[plain.chosen];
        task.run_ms *= times;
        task.gc_ms *= times;
        task.read_records *= times;
        task.read_bytes *= times;
        found(&stage(tasks, &[]), Cause::Data, &[plain.chosen])?;
    }

    #[test]
    fn as_much_data_and_more_time_is_computation_skew(plain in plain(), times in 8u64..30, cpu in any::<bool>()) {
        let mut tasks = plain.tasks;
        let task = &mut tasks[plain.chosen];
        task.run_ms *= times;
        task.cpu_ns *= if cpu { times } else { 1 };
        found(&stage(tasks, &[]), Cause::Computation, &[plain.chosen])?;
    }

    #[test]
    fn twice_the_data_does_not_excuse_much_more_time(plain in plain(), times in 16u64..50) {
        let mut tasks = plain.tasks;
        let task = &mut tasks[plain.chosen];
        task.run_ms *= times;
        task.read_records *= 2;
        task.read_bytes *= 2;
        found(&stage(tasks, &[]), Cause::Computation, &[plain.chosen])?;
    }

    #[test]
    fn without_counted_data_it_is_left_open(plain in plain(), times in 8u64..30) {
        let mut tasks = plain.tasks;
        tasks[plain.chosen].run_ms *= times;
        for task in &mut tasks {
            (task.read_records, task.read_bytes) = (0, 0);
        }
        found(&stage(tasks, &[]), Cause::DataOrComputation, &[plain.chosen])?;
    }

    #[test]
    fn measured_waits_are_told_as_such(plain in plain(), times in 8u64..30, which in 0..4) {
        let mut tasks = plain.tasks;
        let mut delays = vec![3; tasks.len()];
        let task = &mut tasks[plain.chosen];
        let more = task.run_ms * (times - 1);
        let cause = match which {
            0 => { task.gc_ms += more; Cause::GarbageCollection }
            1 => { task.fetch_wait_ms += more; Cause::FetchWait }
            2 => { task.shuffle_write_ns += more * 1_000_000; Cause::ShuffleWrite }
            _ => { delays[plain.chosen] += more as i64; Cause::Start }
        };
        if cause != Cause::Start {
            task.run_ms += more;
        }
        found(&stage(tasks, &delays), cause, &[plain.chosen])?;
    }

    #[test]
    fn tasks_that_spill_are_told(plain in plain(), times in 8u64..30) {
        let mut tasks = plain.tasks;
        let task = &mut tasks[plain.chosen];
        task.spilled_bytes = task.run_ms * times * SLOW_DISK;
        task.run_ms *= times;
        found(&stage(tasks, &[]), Cause::Spill, &[plain.chosen])?;
    }

    #[test]
    fn a_slow_host_is_told_from_its_tasks(plain in plain(), times in 3u64..6) {
        let mut tasks = plain.tasks;
        let slow: Vec<usize> = (0..tasks.len()).filter(|index| index % HOSTS == 1).collect();
        for index in &slow {
            tasks[*index].run_ms *= times;
        }
        found(&stage(tasks, &[]), Cause::Host, &slow)?;
    }

    #[test]
    fn first_tasks_that_take_longer_are_warm_up(plain in plain(), times in prop::collection::vec(8u64..12, 160)) {
        let mut tasks = plain.tasks;
        let first: Vec<usize> = (0..tasks.len() / 4).collect();
        for index in &first {
            tasks[*index].run_ms *= times[*index];
        }
        found(&stage(tasks, &[]), Cause::WarmUp, &first)?;
    }

    #[test]
    fn a_slow_task_is_found_where_all_are_first(plain in plain(), times in 8u64..30) {
        let mut tasks = plain.tasks;
        tasks[plain.chosen].run_ms *= times;
        let slots = tasks.len();
        let stage = on_slots(slots, tasks, &[]);
        prop_assert!(stage.attempts.iter().all(|task| task.first));
        found(&stage, Cause::Computation, &[plain.chosen])?;
    }

    #[test]
    fn a_slow_first_task_is_no_warm_up_if_its_like_are_not_slow(plain in plain(), times in 8u64..30) {
        let mut tasks = plain.tasks;
        let wave = tasks.len() / 4;
        let chosen = plain.chosen % wave;
        tasks[chosen].run_ms *= times;
        found(&stage(tasks, &[]), Cause::Computation, &[chosen])?;
    }

    #[test]
    fn a_slow_first_task_is_no_warm_up_if_its_like_warm_up_for_less(
        plain in plain(), warm_up in prop::collection::vec(11u64..14, 160), times in 12u64..30
    ) {
        let mut tasks = plain.tasks;
        let wave = tasks.len() / 4;
        for (task, tenths) in tasks[..wave].iter_mut().zip(warm_up) {
            task.run_ms = task.run_ms * tenths / 10;
        }
        let chosen = plain.chosen % wave;
        tasks[chosen].run_ms *= times;
        found(&stage(tasks, &[]), Cause::Computation, &[chosen])?;
    }

    #[test]
    fn remote_data_is_told_from_its_tasks(plain in plain(), times in 8u64..12) {
        let mut tasks = plain.tasks;
        // Some on every host.
        let far: Vec<usize> = (0..tasks.len()).filter(|index| (index / HOSTS) % 4 == 1).collect();
        for index in &far {
            tasks[*index].run_ms *= times;
            tasks[*index].locality = "ANY".into();
        }
        found(&stage(tasks, &[]), Cause::Locality, &far)?;
    }

    #[test]
    fn the_order_of_attempts_and_those_that_failed_do_not_matter(plain in plain(), times in 8u64..30) {
        let mut tasks = plain.tasks;
        tasks[plain.chosen].run_ms *= times;
        let one = stage(tasks, &[]);
        let mut other = one.clone();
        other.attempts.reverse();
        let failed = Task { succeeded: false, task: 9999, run_ms: 1 << 30, ..one.attempts[0].clone() };
        other.attempts.push(failed);
        let (one, other) = (detect(&one, &Options::default()), detect(&other, &Options::default()));
        prop_assert_eq!(other.uncounted, 1);
        prop_assert_eq!(one, Finding { uncounted: 0, ..other });
    }

    #[test]
    fn whatever_is_told_of_tasks_makes_numbers(rows in prop::collection::vec(any::<[u64; 12]>(), 0..40), small in any::<bool>()) {
        let bound = |number: u64| if small { number % 5 } else { number };
        let task = |row: &[u64; 12]| Task {
            index: bound(row[0]) as i32,
            task: row[1] as i64,
            executor: format!("{}", row[1] % 3).into(),
            host: format!("{}", row[1] % 2).into(),
            locality: if row[2].is_multiple_of(2) { "ANY" } else { "" }.into(),
            succeeded: !row[2].is_multiple_of(5),
            launched_ms: bound(row[3]) as i64,
            finished_ms: bound(row[4]) as i64,
            run_ms: bound(row[5]),
            cpu_ns: bound(row[6]),
            gc_ms: bound(row[7]),
            fetch_wait_ms: bound(row[8]),
            shuffle_write_ns: bound(row[9]),
            read_bytes: bound(row[10]),
            read_records: bound(row[11]),
            spilled_bytes: bound(row[0]),
            ..Task::default()
        };
        let running = |row: &[u64; 12]| RunningTask { index: row[4] as i32, launched_ms: bound(row[5]) as i64, ..RunningTask::default() };
        let mut stage = Stage {
            attempts: rows.iter().map(task).collect(),
            running: rows.iter().map(running).collect(),
            now_ms: rows.first().map_or(0, |row| bound(row[6]) as i64),
            ..Stage::default()
        };
        stage.mark_first();
        let finding = detect(&stage, &Options::default());
        let of_tasks = finding.tasks.iter().flat_map(|task| {
            let parts = task.parts.iter().map(|part| part.ms);
            parts.chain([task.duration_ms, task.slower_ms, task.slower_cpu_ms, task.sure])
        });
        let all = of_tasks
            .chain(finding.parts.iter().map(|part| part.ms))
            .chain(finding.hanging.iter().flat_map(|task| [task.running_ms, task.times_typical]))
            .chain([finding.sure, finding.stage_ms, finding.saved_ms, finding.typical_ms, finding.slowest_ms]);
        for number in all {
            prop_assert!(number.is_finite());
        }
    }
}

/// Speed of a slow but possible disk, bytes/ms.
const SLOW_DISK: u64 = 50_000;

#[test]
fn few_tasks_are_too_few() {
    let task = |index: i32, run_ms: u64| Task {
        index,
        task: index.into(),
        succeeded: true,
        run_ms,
        finished_ms: run_ms as i64,
        ..Task::default()
    };
    let verdict = |times: &[u64]| {
        let attempts = times.iter().enumerate();
        let stage = Stage {
            attempts: attempts
                .map(|(index, ms)| task(index as i32, *ms))
                .collect(),
            ..Stage::default()
        };
        detect(&stage, &Options::default()).verdict
    };
    assert_eq!(verdict(&[]), Verdict::TooFew);
    assert_eq!(verdict(&[9, 9000]), Verdict::TooFew);
    assert_eq!(verdict(&[90, 100, 110, 900]), Verdict::TooFew);
    assert_eq!(verdict(&[100, 100, 100, 101]), Verdict::Even);
    assert_eq!(verdict(&[0; 30]), Verdict::Even);
}

#[test]
fn a_longer_run_of_some_ms_is_no_skew() {
    // Times in whole ms of tasks that take half a ms.
    let tasks: Vec<Task> = (0..100)
        .map(|index| Task {
            index,
            task: index.into(),
            succeeded: true,
            launched_ms: 0,
            finished_ms: i64::from(index % 2),
            ..Task::default()
        })
        .collect();
    let stage = Stage {
        attempts: tasks,
        ..Stage::default()
    };
    assert_eq!(detect(&stage, &Options::default()).verdict, Verdict::Even);
}

/// A stage that Spark ran: 12 slots on three executors that had run other stages before. The first tasks wait for the
/// compilation of its code and take seconds, the other 188 a few ms.
fn with_slow_first_tasks() -> Vec<Task> {
    let task = |index: i32| Task {
        index,
        task: index.into(),
        executor: format!("{}", index % 3).into(),
        host: format!("host-{}", index % 3).into(),
        locality: "PROCESS_LOCAL".into(),
        succeeded: true,
        run_ms: match index {
            0..12 => 4650 + 11 * (index as u64 % 7),
            _ => 55 + (index as u64 * 37) % 23,
        },
        cpu_ns: 40_000_000,
        read_records: 500 + (index as u64 * 13) % 9,
        ..Task::default()
    };
    (0..200).map(task).collect()
}

#[test]
fn the_first_tasks_of_a_stage_are_no_computation_skew() {
    let found = detect(
        &on_slots(12, with_slow_first_tasks(), &[]),
        &Options::default(),
    );
    assert_eq!(found.verdict, Verdict::Skewed(Cause::WarmUp), "{found:#?}");
    assert_eq!(found.tasks.len(), 12, "{found:#?}");
}

#[test]
fn a_slow_record_is_told_from_warm_up() {
    let mut tasks = with_slow_first_tasks();
    tasks[5].run_ms = 60_000;
    let found = detect(&on_slots(12, tasks, &[]), &Options::default());
    let cause = Verdict::Skewed(Cause::Computation);
    assert_eq!((found.verdict, found.tasks[0].index), (cause, 5));
    let parts: Vec<Cause> = found.tasks[0].parts.iter().map(|part| part.cause).collect();
    assert_eq!(parts[..2], [Cause::Computation, Cause::WarmUp]);
}

/// 99 tasks of a second that ended, and one that was launched with the first.
fn with_a_running_task(now_ms: i64) -> Stage {
    let ended = (0..99).map(|index| Task {
        index,
        task: index.into(),
        succeeded: true,
        run_ms: 970 + (index as u64 * 37) % 60,
        ..Task::default()
    });
    let mut stage = on_slots(8, ended.collect(), &[]);
    stage.running.push(RunningTask {
        index: 99,
        executor: "1".into(),
        host: "host-1".into(),
        ..RunningTask::default()
    });
    stage.now_ms = now_ms;
    stage
}

#[test]
fn a_task_that_runs_for_much_longer_than_those_that_ended_is_told() {
    let hanging = |stage: &Stage| detect(stage, &Options::default()).hanging;
    let mut stage = with_a_running_task(3_595_000);
    let found = hanging(&stage);
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].index, &*found[0].executor, &*found[0].host),
        (99, "1", "host-1")
    );
    assert_eq!(found[0].running_ms, 3_595_000.0);
    assert!((3400.0..3800.0).contains(&found[0].times_typical));
    // Its copy has ended.
    stage.attempts[7].index = 99;
    assert_eq!(hanging(&stage), []);
    assert_eq!(hanging(&with_a_running_task(1_020)), []);
}
