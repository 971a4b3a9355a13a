use std::path::Path;
use std::sync::Arc;

use unfuse_eventlog::{
    ApplicationStart, Environment, Event, ExecutorAdded, ExecutorRemoved, JobEnd, JobStart,
    Outcome, Stage as StageInfo, Task, TaskEnd, TaskMetrics,
};

use super::GivenValues;
use super::builder::Builder;
use crate::{Category, Run};

fn application(settings: &[(&str, &str)]) -> Vec<Event> {
    let start = ApplicationStart {
        id: None,
        attempt: None,
        name: "job".into(),
        user: "u".into(),
        time_ms: 0,
    };
    let spark = settings
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let environment = Environment {
        spark: spark.collect(),
        java_version: "17".into(),
    };
    vec![
        Event::Environment(environment),
        Event::ApplicationStart(start),
    ]
}

fn executor(name: &str, cores: u32, time_ms: i64) -> Event {
    Event::ExecutorAdded(ExecutorAdded {
        executor: name.into(),
        host: "h".into(),
        cores,
        time_ms,
    })
}

/// A job with stages, each of which has parents and tasks of (launch, end) in ms.
type Tasks<'a> = &'a [(i64, i64)];

fn job(events: &mut Vec<Event>, job: i64, from: i64, to: i64, stages: &[(i32, &[i32], Tasks)]) {
    let ids = stages.iter().map(|(stage, ..)| *stage).collect();
    let start = JobStart {
        job,
        time_ms: from,
        stages: ids,
        infos: Vec::new(),
        properties: Default::default(),
    };
    events.push(Event::JobStart(start));
    for (stage, parents, tasks) in stages {
        events.push(Event::StageSubmitted(StageInfo {
            stage: *stage,
            name: format!("step at /home/u/job{job}.py:1"),
            details: "org.apache.spark.ml.clustering.KMeans.fit".into(),
            parents: parents.to_vec(),
            submitted_ms: tasks.iter().map(|(launched, _)| *launched).min(),
            ..StageInfo::default()
        }));
        for (index, (launched, finished)) in tasks.iter().enumerate() {
            events.push(task(
                *stage,
                index as i32,
                *launched,
                *finished,
                Outcome::Success,
            ));
        }
    }
    events.push(Event::JobEnd(JobEnd {
        job,
        time_ms: to,
        failure: None,
    }));
}

fn task(stage: i32, index: i32, launched_ms: i64, finished_ms: i64, outcome: Outcome) -> Event {
    let text = |text: &str| -> Arc<str> { text.into() };
    let task = Task {
        stage,
        stage_attempt: 0,
        task: 0,
        index,
        partition: Some(index),
        attempt: 0,
        executor: text("1"),
        host: text("h"),
        locality: text("ANY"),
        speculative: false,
        launched_ms,
    };
    let run_ms = (finished_ms - launched_ms - 50) as u64;
    let metrics = TaskMetrics {
        run_ms,
        fetch_wait_ms: 30,
        shuffle_write_ns: 20_000_000,
        input_bytes: 1000,
        ..TaskMetrics::default()
    };
    Event::TaskEnd(Box::new(TaskEnd {
        task,
        kind: text("ResultTask"),
        finished_ms,
        getting_result_ms: None,
        outcome,
        message: String::new(),
        metrics: Some(metrics),
    }))
}

fn finish(mut events: Vec<Event>, end_ms: i64) -> Result<(Run, Vec<String>), String> {
    events.push(Event::ApplicationEnd(end_ms));
    let mut builder = Builder::default();
    for event in events {
        builder.add(event);
    }
    builder.finish(Path::new("log"), &GivenValues::default())
}

#[test]
fn phases_slots_and_size_are_read() {
    let mut events = application(&[("spark.task.cpus", "2")]);
    events.push(executor("1", 4, 100));
    events.push(executor("2", 9, 100));
    job(
        &mut events,
        0,
        2000,
        4000,
        &[(0, &[], &[(2000, 3000), (2000, 4000)])],
    );
    events.push(Event::ExecutorRemoved(ExecutorRemoved {
        executor: "2".into(),
        reason: "idle".into(),
        time_ms: 3000,
    }));
    events.push(task(0, 0, 2000, 2500, Outcome::Killed));
    events.push(task(0, 1, 2000, 2500, Outcome::Exception));
    let (run, notes) = finish(events, 5000).expect("a run");
    // Two slots all the time, and four for the first half.
    assert_eq!(
        (run.at.slots, run.at.iterations, run.at.bytes),
        (4.0, 1.0, 2000.0)
    );
    assert_eq!((run.seconds, run.phases.preparation), (5.0, 2.0));
    let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
    near(run.phases.sharing, 0.1);
    near(run.phases.communication, 0.1);
    near(run.phases.execution, 2.8);
    assert_eq!(run.category, Category::MLlib);
    assert!(run.stages[0].class.starts_with("step at job0.py:1"));
    assert!(
        notes
            .iter()
            .any(|note| note.contains("executors came and went")),
        "{notes:?}"
    );
    assert!(
        notes
            .iter()
            .any(|note| note.starts_with("1 task and 0 stages failed")),
        "{notes:?}"
    );
}

#[test]
fn stages_wait_for_parents_and_for_jobs_before() {
    let mut events = application(&[
        ("spark.unfuse.iterations", "3"),
        ("spark.unfuse.bytes", "5e9"),
    ]);
    events.push(executor("1", 2, 0));
    job(
        &mut events,
        0,
        0,
        1000,
        &[(0, &[], &[(0, 500)]), (1, &[0], &[(500, 1000)])],
    );
    // Two jobs at once, then one that needs both; its first stage was skipped.
    job(&mut events, 1, 1100, 2000, &[(2, &[], &[(1100, 2000)])]);
    job(&mut events, 2, 1150, 2500, &[(3, &[], &[(1150, 2500)])]);
    job(
        &mut events,
        3,
        2600,
        3000,
        &[(4, &[], &[]), (5, &[4], &[(2600, 3000)])],
    );
    let (run, _) = finish(events, 3100).expect("a run");
    let after: Vec<&[usize]> = run
        .stages
        .iter()
        .map(|stage| stage.after.as_slice())
        .collect();
    assert_eq!(after, [&[][..], &[0], &[1], &[1], &[2, 3]]);
    assert_eq!((run.at.iterations, run.at.bytes), (3.0, 5e9));
}

#[test]
fn logs_that_are_no_run_say_why() {
    let whole = |settings: &[(&str, &str)]| {
        let mut events = application(settings);
        events.push(executor("1", 2, 0));
        job(&mut events, 0, 0, 1000, &[(0, &[], &[(0, 500)])]);
        events
    };
    let says = |events: Vec<Event>, words: &str| {
        let why = finish(events, 2000).expect_err("no run");
        assert!(why.contains(words), "{why}");
    };
    assert!(finish(whole(&[]), 2000).is_ok());
    says(
        whole(&[("spark.unfuse.iterations", "ten")]),
        "spark.unfuse.iterations is \"ten\", and must be a number above zero",
    );
    says(
        whole(&[("spark.unfuse.bytes", "-1")]),
        "must be a number above zero",
    );
    says(
        whole(&[("spark.task.cpus", "4")]),
        "the number of slots is unknown",
    );
    says(application(&[]), "no task in it succeeded");
    let without = |what: fn(&Event) -> bool| {
        let mut events = whole(&[]);
        events.retain(|event| !what(event));
        events
    };
    says(
        without(|event| matches!(event, Event::JobEnd(_))),
        "job 0 has no end",
    );
    says(
        without(|event| matches!(event, Event::ExecutorAdded(_))),
        "no executor with cores",
    );
    says(
        without(|event| matches!(event, Event::ApplicationStart(_))),
        "no start of the application",
    );
    assert!(
        finish(whole(&[]), 0)
            .expect_err("no run")
            .contains("ends before it starts")
    );
}
