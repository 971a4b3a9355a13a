//! Schedules that can be checked by hand, and properties of all.

use std::fmt::Write;
use std::io::Cursor;
use std::path::Path;

use proptest::prelude::*;
use unfuse_eventlog::EventLog;

use super::*;

const GC: usize = 0;
const DISK: usize = 1;

fn parts() -> Vec<Part> {
    vec![Part::new(PartKind::Gc), Part::new(PartKind::Disk)]
}

fn task(launched: f64, finished: f64, parts: &[f64]) -> RecordedTask {
    RecordedTask {
        launched,
        finished,
        parts: parts.to_vec(),
    }
}

fn stage(stage: i32, submitted: f64, parents: &[i32], tasks: Vec<RecordedTask>) -> RecordedStage {
    RecordedStage {
        stage,
        group: Group::Query(1),
        own: true,
        parents: parents.to_vec(),
        submitted: Some(submitted),
        tasks,
        ..RecordedStage::default()
    }
}

fn recorded(seconds: f64, slots: usize, stages: Vec<RecordedStage>) -> Recorded {
    Recorded {
        cpus: None,
        seconds,
        spread: 0.0,
        slots,
        executors: 1,
        parts: parts(),
        stages,
    }
}

/// 1 s of planning, two stages that run together, 0.5 s of the driver, a stage of both, 0.25 s at the end.
fn join() -> Recorded {
    recorded(
        7.75,
        2,
        vec![
            stage(0, 1.0, &[], vec![task(1.0, 3.0, &[0.5, 1.0])]),
            stage(
                1,
                1.0,
                &[],
                vec![task(1.0, 2.0, &[]), task(2.0, 5.0, &[0.0, 1.0])],
            ),
            stage(
                2,
                5.5,
                &[0, 1],
                vec![task(5.5, 7.5, &[0.5, 0.0]), task(5.5, 6.5, &[])],
            ),
        ],
    )
}

fn then(recorded: &Recorded, changes: &[&str]) -> f64 {
    let changes: Vec<Change> = changes
        .iter()
        .map(|text| text.parse().expect("a change"))
        .collect();
    let model = Model::new(recorded);
    model.seconds(&model.scenario(&changes))
}

#[track_caller]
fn assert_near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
}

#[test]
fn stages_wait_for_each_other_and_for_the_driver() {
    let join = join();
    let model = Model::new(&join);
    assert_near(model.now(), 7.75);
    assert_near(model.error(), 0.0);
    // 1 + (2 + 1 + 3) + 0.5 + (2 + 1) + 0.25
    assert_near(then(&join, &["slots=1"]), 10.75);
    // The second stage begins at once: 1 + 3 + 0.5 + 2 + 0.25.
    assert_near(then(&join, &["slots=3"]), 6.75);
    assert_near(then(&join, &["cores=inf"]), 6.75);
    // One executor has two slots.
    assert_near(then(&join, &["executors=2"]), 6.75);
}

#[test]
fn time_is_taken_out_of_tasks_where_it_was() {
    let join = join();
    // The first stages take 1.5 (2 without gc), 1 and 3; the last one 1.5.
    assert_near(then(&join, &["gc=0"]), 1.0 + 4.0 + 0.5 + 1.5 + 0.25);
    // 1, and 1 and 2 on the other slot.
    assert_near(then(&join, &["disk=inf"]), 1.0 + 3.0 + 0.5 + 2.0 + 0.25);
    assert_near(
        then(&join, &["disk=inf", "gc=0", "slots=1"]),
        1.0 + 0.5 + 1.0 + 2.0 + 0.5 + 1.5 + 1.0 + 0.25,
    );
    // The last stage has 1.5 and 1.5; the second 2 and 2, one beside the first.
    assert_near(then(&join, &["skew=0"]), 1.0 + 4.0 + 0.5 + 1.5 + 0.25);
}

#[test]
fn floors_are_those_of_the_schedule() {
    let join = join();
    let model = Model::new(&join);
    let floor = |floor| model.seconds(&model.floor(floor));
    assert_near(floor(Floor::DriverOnly), 1.75);
    assert_near(floor(Floor::PerfectParallelism), 1.75 + 9.0 / 2.0);
    assert_near(floor(Floor::EndlessSlots), 6.75);
    assert_near(floor(Floor::EndlessSlotsNoSkew), 1.75 + 2.0 + 1.5);
}

#[test]
fn launches_take_as_long_as_they_took() {
    let run = recorded(
        5.0,
        1,
        vec![stage(
            0,
            0.0,
            &[],
            // The driver prepares the stage for half a second; the next task comes 0.2 s after its slot was free, and the
            // last one before the driver knew that it was.
            vec![
                task(0.5, 1.5, &[]),
                task(1.7, 2.7, &[]),
                task(2.69, 4.0, &[]),
            ],
        )],
    );
    let model = Model::new(&run);
    assert_near(model.now(), 5.0);
    // 0.5 for the stage; 1, 0.2 + 1 and 1.3 side by side; 1 at the end.
    assert_near(then(&run, &["cores=inf"]), 0.5 + 1.3 + 1.0);
    assert_near(then(&run, &["skew=0"]), 5.0);
}

#[test]
fn tasks_that_are_gone_wait_for_no_launch() {
    let mut run = recorded(
        3.2,
        1,
        vec![stage(
            0,
            0.0,
            &[],
            vec![
                task(0.0, 1.0, &[0.5]),
                task(1.2, 2.2, &[0.5]),
                task(2.4, 3.2, &[0.8]),
            ],
        )],
    );
    run.parts = vec![Part::new(PartKind::Other)];
    let without = |run: &Recorded| {
        let model = Model::new(run);
        model.seconds(&model.without(0))
    };
    assert_near(without(&run), 0.5 + 0.2 + 0.5 + 0.2);
    run.parts[0].takes_launches = true;
    assert_near(without(&run), 0.5 + 0.1 + 0.5);
}

#[test]
fn a_stage_that_reads_from_no_other_waits_for_the_one_that_ended_before_it() {
    // A broadcast: the plan's second stage needs the first, and only time shows it.
    let run = recorded(
        4.0,
        4,
        vec![
            stage(0, 0.0, &[], vec![task(0.0, 2.0, &[0.0, 1.0])]),
            stage(1, 2.5, &[], vec![task(2.5, 4.0, &[])]),
        ],
    );
    assert_near(then(&run, &["disk=inf"]), 3.0);
    // Of another query in the same application: the one before.
    let mut two = run.clone();
    two.stages[1].group = Group::Query(2);
    assert_near(then(&two, &["disk=inf"]), 3.0);
    // What began while the other ran waited for nothing.
    let mut beside = run;
    beside.stages[1] = stage(1, 1.0, &[], vec![task(1.0, 4.0, &[])]);
    assert_near(then(&beside, &["disk=inf"]), 4.0);
}

/// 4 s on two slots, of which query 7 has one for 3 s: a task before the other, whose parts are given.
fn beside_query_7(of_second: &[f64]) -> Recorded {
    let other = RecordedStage {
        own: false,
        group: Group::Query(7),
        ..stage(9, 0.0, &[], vec![task(0.0, 3.0, &[])])
    };
    let own = vec![task(0.0, 2.0, &[]), task(2.0, 4.0, of_second)];
    recorded(4.0, 2, vec![other, stage(0, 0.0, &[], own)])
}

#[test]
fn tasks_of_other_queries_keep_their_slots_unless_the_query_is_absent() {
    let run = beside_query_7(&[]);
    assert_near(Model::new(&run).now(), 4.0);
    assert_near(then(&run, &["without-query=7"]), 2.0);
    assert_near(then(&run, &["without-query=8"]), 4.0);
    assert_near(then(&run, &["slots=3"]), 2.0);
}

#[test]
fn a_neighbour_takes_its_waits_and_its_slots_with_it() {
    // The second task waits for one second because of the neighbour, and for a slot.
    let mut run = beside_query_7(&[1.0]);
    let mut without = |part, kind, frees_slots| {
        run.parts = vec![Part {
            frees_slots,
            ..Part::new(kind)
        }];
        let model = Model::new(&run);
        model.seconds(&model.without(part))
    };
    assert_near(without(0, PartKind::Other, true), 3.0);
    assert_near(without(0, PartKind::Query(7), true), 2.0);
    assert_near(without(0, PartKind::Query(7), false), 3.0);
    // The run has no part 1.
    assert_near(without(1, PartKind::Query(7), true), 4.0);
    // A change is the same.
    assert_near(then(&run, &["without-query=7"]), 2.0);
    run.parts[0].frees_slots = false;
    assert_near(then(&run, &["without-query=7"]), 3.0);
}

#[test]
fn on_more_slots_spark_cuts_some_inputs_into_more_tasks() {
    // As recorded, one large task and a small one.
    let own = stage(0, 0.0, &[], vec![task(0.0, 3.0, &[]), task(3.0, 4.0, &[])]);
    let mut run = recorded(4.0, 1, vec![own]);
    assert_near(then(&run, &["slots=2"]), 3.0);
    run.stages[0].splits = true;
    assert_near(then(&run, &["slots=2"]), 2.0);
    assert_near(then(&run, &["slots=4"]), 1.0);
    // The critical path is that of the recorded tasks.
    assert_near(then(&run, &["cores=inf"]), 3.0);
    let model = Model::new(&run);
    let change = "slots=2".parse().expect("a change");
    let estimate = model.estimate(&model.scenario(&[change]));
    assert!(estimate.then_high_s >= 3.0, "{estimate:?}");
}

/// A stage of tasks of 1 s, which has some slots for 4 s, and a pool of its own with the weight for that.
fn for_4_s(query: i64, slots: usize, parts: &[f64]) -> RecordedStage {
    let begins = (0..4 * slots).map(|at| (at / slots) as f64);
    RecordedStage {
        own: false,
        group: Group::Query(query),
        pool: Pool {
            name: query.to_string(),
            weight: slots as f64,
        },
        ..stage(
            9,
            0.0,
            &[],
            begins.map(|from| task(from, from + 1.0, parts)).collect(),
        )
    }
}

/// Tasks of 1 s of CPU time, one after the other on the only slot that others leave.
fn on_one_slot(slots: usize, others: Vec<RecordedStage>) -> Recorded {
    let own = RecordedStage {
        own: true,
        ..for_4_s(1, 1, &[0.0, 1.0])
    };
    let stages = others.into_iter().chain([own]).collect();
    let mut run = recorded(4.0, slots, stages);
    run.parts = vec![Part::new(PartKind::Query(7)), Part::new(PartKind::Cpu)];
    run
}

#[test]
fn tasks_that_get_the_slots_of_a_neighbour_wait_for_each_other() {
    let mut run = on_one_slot(4, vec![for_4_s(7, 3, &[0.0, 1.0 / 3.0])]);
    assert_near(Model::new(&run).now(), 4.0);
    assert_near(then(&run, &["without-query=7"]), 1.0);
    // Two CPUs cannot do the work of four tasks in less than 2 s.
    run.cpus = Some(SharedCpus {
        count: 2.0,
        others: 1.0,
    });
    assert_near(then(&run, &["without-query=7"]), 2.0);
    // Nor if it keeps its slots, but then one task runs at once.
    let mut keeps = run.clone();
    keeps.parts[0].frees_slots = false;
    assert_near(then(&keeps, &["without-query=7"]), 4.0);
    // No other change is limited by that.
    let mut scan = run.clone();
    scan.parts.push(Part::new(PartKind::ScanWait(3)));
    let cached = Change::CachedScan {
        node: 3,
        remaining: 0.0,
    };
    let model = Model::new(&scan);
    assert!(model.scenario(&[cached]).crowding.is_none());
    // Others use one of three CPUs: four of five parts are for the tasks.
    run.cpus = Some(SharedCpus {
        count: 3.0,
        others: 2.0,
    });
    assert_near(then(&run, &["without-query=7"]), 5.0 / 3.0);
}

#[test]
fn another_query_that_waits_for_slots_takes_its_share_of_those_that_become_free() {
    let run = on_one_slot(6, vec![for_4_s(7, 4, &[]), for_4_s(8, 1, &[])]);
    assert_near(Model::new(&run).now(), 4.0);
    // Three of six slots.
    assert_near(then(&run, &["without-query=7"]), 2.0);
    // All six slots compute then, three of them for the own tasks: four CPUs do their work in 3 s.
    let mut busy = run.clone();
    busy.cpus = Some(SharedCpus {
        count: 4.0,
        others: 0.0,
    });
    busy.stages[1].runnable = Some(1.0);
    assert_near(Model::new(&busy).now(), 4.0);
    assert_near(then(&busy, &["without-query=7"]), 3.0);
    busy.stages[1].runnable = Some(0.0);
    assert_near(then(&busy, &["without-query=7"]), 2.0);
    // Nothing takes longer than recorded.
    busy.stages[1].runnable = Some(1.0);
    busy.cpus = Some(SharedCpus {
        count: 2.0,
        others: 0.0,
    });
    assert_near(then(&busy, &["without-query=7"]), 4.0);
    // One that has no more tasks does not.
    let mut long = for_4_s(8, 1, &[]);
    long.tasks = vec![task(0.0, 4.0, &[])];
    let run = on_one_slot(6, vec![for_4_s(7, 4, &[]), long]);
    assert_near(then(&run, &["without-query=7"]), 1.0);
}

#[test]
fn a_neighbour_takes_its_share_of_the_drivers_time_with_it() {
    let mut run = join();
    run.parts = vec![Part {
        driver: 0.8,
        ..Part::new(PartKind::Other)
    }];
    for stage in &mut run.stages {
        stage.tasks.iter_mut().for_each(|task| task.parts.clear());
    }
    let model = Model::new(&run);
    assert_near(model.seconds(&model.scenario(&[])), 7.75);
    // 1.75 s without a task: 1, 0.5 and 0.25.
    assert_near(model.seconds(&model.without(0)), 6.0 + 0.2 * 1.75);
}

#[test]
fn an_operator_is_known_as_well_as_its_samples() {
    let mut run = recorded(
        10.0,
        1,
        vec![stage(
            0,
            0.0,
            &[],
            vec![task(0.0, 5.0, &[4.0]), task(5.0, 10.0, &[4.0])],
        )],
    );
    run.parts = vec![Part {
        kind: PartKind::Operator(3),
        range: (0.5, 1.0),
        samples: vec![400],
        ..Part::new(PartKind::Other)
    }];
    let model = Model::new(&run);
    let change: Change = "operator:3=2x".parse().expect("a change");
    let found = model.estimate(&model.scenario(&[change]));
    assert_near(found.then_s, 6.0);
    assert_near(found.saves_s, 4.0);
    // Half as much, less two times 5% of sampling error.
    assert!((1.2..1.8).contains(&found.saves_low_s), "{found:?}");
    assert!((4.2..4.8).contains(&found.saves_high_s), "{found:?}");
    assert_eq!(found, model.estimate(&model.scenario(&[change])));
    let other: Change = "operator:4=2x".parse().expect("a change");
    assert_near(model.seconds(&model.scenario(&[other])), 10.0);
}

#[test]
fn an_interval_holds_what_runs_differ_by() {
    let run = recorded(
        4.0,
        1,
        vec![stage(0, 0.0, &[], vec![task(0.0, 4.0, &[2.0])])],
    );
    let with = |spread| {
        let run = Recorded {
            spread,
            ..run.clone()
        };
        let model = Model::new(&run);
        model.estimate(&model.scenario(&[Change::NoGc]))
    };
    assert_near(with(0.0).then_high_s, 2.0);
    assert_near(with(0.1).then_high_s, 2.0 + 1.96 * 0.2);
    assert_near(with(0.1).then_low_s, 2.0 - 1.96 * 0.2);
    assert_near(with(0.1).then_s, 2.0);
}

#[test]
fn fewer_slots_may_end_the_waits_for_a_cpu() {
    let mut run = recorded(
        2.0,
        2,
        vec![stage(
            0,
            0.0,
            &[],
            vec![task(0.0, 2.0, &[0.5]), task(0.0, 2.0, &[0.5])],
        )],
    );
    run.parts = vec![Part::new(PartKind::CpuWait)];
    let model = Model::new(&run);
    let found = model.estimate(&model.scenario(&["slots=1".parse().expect("a change")]));
    assert_near(found.then_s, 4.0);
    assert_near(found.then_low_s, 3.0);
    assert!(found.then_high_s < 4.1, "{found:?}");
}

/// An application of two queries on an executor with two cores.
fn application() -> Application {
    let task = |launched_ms, finished_ms| Task {
        launched_ms,
        finished_ms,
        parts: vec![0.0],
        ..Task::default()
    };
    let stage = |stage, query, submitted_ms, tasks: Vec<Task>| Stage {
        stage,
        group: Group::Query(query),
        submitted_ms: Some(submitted_ms),
        tasks,
        ..Stage::default()
    };
    let query = |started_ms, ended_ms: i64| Query {
        started_ms: Some(started_ms),
        ended_ms: Some(ended_ms),
        ..Query::default()
    };
    Application {
        cpus: None,
        id: "app".into(),
        started_ms: Some(0),
        ended_ms: Some(12_000),
        task_cpus: 1,
        executors: vec![Executor {
            id: "1".into(),
            cores: 2,
            ..Executor::default()
        }],
        queries: [(1, query(1_000, 5_000)), (2, query(4_000, 9_000))].into(),
        parts: vec![Part {
            samples: vec![5, 0, 9],
            ..Part::new(PartKind::Gc)
        }],
        stages: vec![
            stage(0, 1, 1_000, vec![task(1_000, 5_000)]),
            stage(1, 1, 1_000, vec![]),
            stage(2, 2, 4_500, vec![task(4_500, 8_000), task(5_000, 9_000)]),
        ],
    }
}

#[test]
fn a_query_has_its_stages_and_the_slots_that_others_left() {
    let application = application();
    let (recorded, notes) = application.recorded(Some(2)).expect("a query");
    assert_eq!((recorded.seconds, recorded.slots), (5.0, 2));
    assert_eq!(recorded.stages.len(), 2, "without the empty one");
    assert_eq!(recorded.parts[0].samples, [5, 9]);
    let of_other = &recorded.stages[0].tasks[0];
    assert_eq!((of_other.launched, of_other.finished), (0.0, 1.0));
    assert!(notes[0].contains("1 task of other queries"), "{notes:?}");
    assert_near(Model::new(&recorded).now(), 5.0);
    let (all, notes) = application.recorded(None).expect("all");
    assert_eq!(notes, [""; 0]);
    assert_near(Model::new(&all).now(), 12.0);
}

#[test]
fn what_did_not_end_well_is_refused() {
    let mut application = application();
    let refused = |application: &Application, query| {
        application.recorded(query).expect_err("nothing to replay")
    };
    assert!(refused(&application, Some(3)).contains("it has 1, 2"));
    let query = application.queries.get_mut(&1).expect("a query");
    query.error = Some("boom\nat line 1".into());
    assert!(refused(&application, Some(1)).contains("failed (boom)"));
    application.queries.get_mut(&2).expect("a query").ended_ms = None;
    assert!(refused(&application, Some(2)).contains("did not end"));
    application.queries.clear();
    assert!(refused(&application, Some(2)).contains("has no SQL"));
    application.stages.clear();
    assert!(refused(&application, None).contains("no task"));
}

#[test]
fn an_event_log_has_stages_queries_and_what_spark_measures() {
    let mut text = "{\"Event\":\"SparkListenerLogStart\",\"Spark Version\":\"4.0.0\"}\n".to_owned();
    let mut event = |name: &str, rest: &str| {
        writeln!(text, r#"{{"Event":"{name}",{rest}}}"#).expect("a text");
    };
    event(
        "SparkListenerApplicationStart",
        r#""App Name":"a","App ID":"app-1","Timestamp":0,"User":"u""#,
    );
    event(
        "SparkListenerExecutorAdded",
        r#""Timestamp":0,"Executor ID":"1","Executor Info":{"Host":"h","Total Cores":2}"#,
    );
    event(
        "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart",
        r#""executionId":4,"description":"q","details":"","physicalPlanDescription":"","time":500"#,
    );
    event(
        "SparkListenerStageSubmitted",
        r#""Stage Info":{"Stage ID":0,"Stage Attempt ID":0,"Stage Name":"s","Number of Tasks":1,"RDD Info":[],"Parent IDs":[],"Details":"","Submission Time":1000},"Properties":{"spark.sql.execution.id":"4"}"#,
    );
    event(
        "SparkListenerTaskEnd",
        r#""Stage ID":0,"Stage Attempt ID":0,"Task Type":"ResultTask","Task End Reason":{"Reason":"Success"},"Task Info":{"Task ID":0,"Index":0,"Attempt":0,"Launch Time":1000,"Finish Time":3000,"Executor ID":"1","Host":"h","Locality":"ANY"},"Task Metrics":{"Executor Run Time":1900,"JVM GC Time":400,"Shuffle Read Metrics":{"Fetch Wait Time":300}}"#,
    );
    event(
        "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd",
        r#""executionId":4,"time":3500"#,
    );
    event("SparkListenerApplicationEnd", r#""Timestamp":4000"#);
    let mut log = EventLog::from_reader(Cursor::new(text), Path::new("log")).expect("a log");
    let (application, notes) = from_event_log(&mut log);
    assert_eq!(notes, [""; 0]);
    let (recorded, notes) = application.recorded(Some(4)).expect("the query");
    assert_eq!(notes, [""; 0]);
    assert_eq!(
        (recorded.seconds, recorded.slots, recorded.executors),
        (3.0, 2, 1)
    );
    assert_near(then(&recorded, &[]), 3.0);
    assert_near(then(&recorded, &["gc=0"]), 2.6);
    assert_near(then(&recorded, &["gc=0", "network=inf"]), 2.3);
    let (all, _) = application.recorded(None).expect("all");
    assert_near(then(&all, &[]), 4.0);
}

prop_compose! {
    /// A run that a scheduler could have made: its stages in a row, each task with a delay; or some side by side, without. Delays
    /// of tasks of two stages change which of them gets a slot, and a schedule may take any time after that (Graham 1969): this is
    /// what an answer that is not reliable means.
    fn any_run_with(side_by_side: bool)(
        slots in 1usize..6,
        stages in prop::collection::vec((prop::collection::vec((0.0f64..5.0, 0.0f64..1.0, 0.0f64..1.0, 0.0f64..0.05), 1..12), any::<bool>(), 0.0f64..1.0), 1..6),
        tail in 0.0f64..1.0,
    ) -> Recorded {
        let mut free = vec![0.0f64; slots];
        let (mut all, mut last, mut before) = (Vec::new(), 0.0f64, 0.0f64);
        for (number, (tasks, beside, gap)) in stages.into_iter().enumerate() {
            let submitted = if side_by_side && beside && number > 0 { before } else { last + gap };
            before = submitted;
            let tasks: Vec<RecordedTask> = tasks
                .into_iter()
                .map(|(seconds, gc, disk, delay)| {
                    free.sort_by(f64::total_cmp);
                    let delay = if side_by_side { 0.0 } else { delay };
                    let launched = free[0].max(submitted) + delay;
                    free[0] = launched + seconds;
                    last = last.max(free[0]);
                    task(launched, launched + seconds, &[gc * seconds / 2.0, disk * seconds / 2.0])
                })
                .collect();
            all.push(stage(number as i32, submitted, &[], tasks));
        }
        recorded(last + tail, slots, all)
    }
}

fn any_run() -> impl Strategy<Value = Recorded> {
    prop_oneof![any_run_with(false), any_run_with(true)]
}

prop_compose! {
    /// Tasks of one stage that do not depend on each other.
    fn independent_tasks()(slots in 1usize..6, seconds in prop::collection::vec(0.0f64..5.0, 1..30)) -> Recorded {
        let mut free = vec![0.0f64; slots];
        let tasks: Vec<RecordedTask> = seconds
            .into_iter()
            .map(|seconds| {
                free.sort_by(f64::total_cmp);
                let launched = free[0];
                free[0] += seconds;
                task(launched, launched + seconds, &[])
            })
            .collect();
        let last = free.into_iter().fold(0.0, f64::max);
        recorded(last, slots, vec![stage(0, 0.0, &[], tasks)])
    }
}

proptest! {
    #[test]
    fn no_change_gives_the_recorded_time(run in any_run()) {
        let now = Model::new(&run).now();
        prop_assert!((now - run.seconds).abs() <= 0.02 * run.seconds + 0.1, "{now}, not {}", run.seconds);
    }

    #[test]
    fn more_slots_are_never_slower_for_independent_tasks(run in independent_tasks(), more in 1usize..6) {
        let model = Model::new(&run);
        let more = model.seconds(&model.scenario(&[Change::Slots(run.slots + more)]));
        let endless = model.seconds(&model.scenario(&[Change::EndlessSlots]));
        prop_assert!(more <= model.now() + 1e-9);
        prop_assert!(endless <= more + 1e-9);
        let one = model.seconds(&model.scenario(&[Change::Slots(1)]));
        prop_assert!(model.now() <= one + 1e-9);
        let sum: f64 = run.stages[0].tasks.iter().map(RecordedTask::seconds).sum();
        prop_assert!((one - sum).abs() < 1e-6, "{one}, not {sum}");
    }

    /// On one slot, and on endless slots, a schedule has no anomalies (Graham 1969): with less to do it ends earlier.
    #[test]
    fn time_that_is_taken_out_never_makes_it_slower(run in any_run(), one in any::<bool>()) {
        let model = Model::new(&run);
        let slots = if one { Change::Slots(1) } else { Change::EndlessSlots };
        let with = |changes: &[Change]| {
            let all: Vec<Change> = changes.iter().copied().chain([slots]).collect();
            model.seconds(&model.scenario(&all))
        };
        let unchanged = with(&[]);
        for changes in [&[Change::NoGc][..], &[Change::EndlessDisk], &[Change::NoGc, Change::EndlessDisk]] {
            prop_assert!(with(changes) <= unchanged + 1e-9, "{changes:?}");
        }
    }

    #[test]
    fn an_interval_holds_its_estimate_and_nothing_impossible(run in any_run(), change in 0usize..6, slots in 1usize..8) {
        let model = Model::new(&run);
        let change = [
            Change::NoGc, Change::EndlessDisk, Change::NoSkew, Change::EndlessSlots, Change::Slots(slots), Change::Executors(slots),
        ][change];
        let found = model.estimate(&model.scenario(&[change]));
        prop_assert!(found.saves_low_s <= found.saves_s && found.saves_s <= found.saves_high_s, "{found:?}");
        prop_assert!(found.then_low_s <= found.then_s && found.then_s <= found.then_high_s, "{found:?}");
        prop_assert!(found.then_low_s >= 0.0 && (found.then_s + found.saves_s - model.now()).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn no_floor_is_below_the_driver_alone(run in any_run()) {
        let model = Model::new(&run);
        let alone = model.seconds(&model.floor(Floor::DriverOnly));
        for floor in Floor::ALL {
            prop_assert!(model.seconds(&model.floor(floor)) >= alone - 1e-9, "{floor:?}");
        }
        prop_assert!(model.seconds(&model.floor(Floor::EndlessSlots)) <= model.now() + 1e-6);
    }
}

#[test]
fn odd_times_do_no_harm() {
    let odd = [
        task(f64::MAX, f64::MIN, &[f64::INFINITY]),
        task(-1e300, 1e300, &[-1.0, 1e300]),
        task(0.0, 0.0, &[]),
    ];
    let mut run = recorded(0.0, 0, vec![stage(0, 1e300, &[0, 7, 0], odd.to_vec())]);
    run.stages.push(stage(0, -5.0, &[0], Vec::new()));
    let model = Model::new(&run);
    for change in ["slots=1", "cores=inf", "skew=0", "gc=0", "executors=3"] {
        let scenario = model.scenario(&[change.parse().expect("a change")]);
        let _ = model.estimate(&scenario);
    }
    for floor in Floor::ALL {
        let _ = model.seconds(&model.floor(floor));
    }
    assert_eq!((GC, DISK), (0, 1));
}

#[test]
fn waits_for_a_cpu_of_an_operator_are_taken_out_once() {
    let mut run = recorded(
        10.0,
        1,
        vec![stage(0, 0.0, &[], vec![task(0.0, 10.0, &[5.0, 2.0, 2.0])])],
    );
    run.parts = vec![
        Part::new(PartKind::CpuWait),
        Part::new(PartKind::Operator(3)),
        Part::new(PartKind::OperatorCpuWait(3)),
    ];
    assert_near(then(&run, &["operator:3=2x"]), 8.0);
    assert_near(then(&run, &["cpu-wait=0"]), 5.0);
    assert_near(then(&run, &["cpu-wait=0", "operator:3=2x"]), 4.0);
    assert_near(then(&run, &["operator:3=inf", "cpu-wait=0"]), 3.0);
}
