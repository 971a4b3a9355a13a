//! Waits that no neighbour caused, and neighbours with names.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use unfuse_format::{
    CpuWaitRow, Frame, FrameKind, HostRow, IntervalRow, OutsideRow, ProcessRow, ProfileDir,
    SampleRow, SegmentWriter, StackRow, StageRow, Table,
};
use unfuse_postprocess::Profile;

use super::*;

fn runs(tables: &mut Tables, task: u64, span: Span, units: f64, blocked_ns: i64) {
    tables.intervals.push(Interval {
        task: TaskId(task),
        kind: Kind::RunQueue,
        span,
        units,
        blocked_ns,
    });
}

fn withheld(process: KnownProcess, span: Span, part: f64) -> Withheld {
    Withheld {
        host: HostId(0),
        executor: None,
        process,
        span,
        part,
        units: 0.0,
    }
}

/// Query 1 waits 8 of 10 s for CPUs that query 2 uses.
fn waiting() -> Tables {
    let mut tables = Tables::default();
    for id in [1, 2] {
        query(&mut tables, id, &[(0, &[], span(0, 10))]);
        task(&mut tables, id, stage(id, 0), 0, span(0, 10));
    }
    runs(&mut tables, 1, span(0, 10), 2.0, 8 * S);
    runs(&mut tables, 2, span(0, 10), 8.0, 0);
    tables
}

fn culprits(tables: Tables) -> BTreeMap<String, f64> {
    culprits_by(tables, false)
}

fn culprits_by(tables: Tables, weighted: bool) -> BTreeMap<String, f64> {
    let workload = Workload::new(tables).unwrap();
    let options = Options {
        victims: [QueryId(1)].into(),
        weighted,
        ..Options::default()
    };
    let mut sums = BTreeMap::new();
    for path in Blame::new(&workload, &options).explanations(&workload) {
        let name = match path.culprit {
            Culprit::Query(query) => format!("query {}", query.0),
            Culprit::Known(process) => workload.process_name(process).to_owned(),
            Culprit::Unknown => "Unknown".to_owned(),
        };
        *sums.entry(name).or_default() += path.seconds;
    }
    sums
}

#[test]
fn neighbours_get_what_limit_and_hypervisor_leave() {
    let mut tables = waiting();
    tables.withheld = vec![
        // Of the 4 s that are left.
        withheld(KnownProcess::Hypervisor, span(0, 10), 0.25),
        withheld(KnownProcess::OwnLimit, span(0, 10), 0.5),
    ];
    let found = culprits(tables);
    for (name, seconds) in [("Own limit", 4.0), ("Hypervisor", 1.0), ("query 2", 3.0)] {
        close(found[name], seconds);
    }
    assert_eq!(found.len(), 3, "{found:?}");
}

#[test]
fn a_limit_holds_back_its_own_executor_only() {
    let mut tables = waiting();
    let other = Executor {
        application: 0,
        number: 1,
    };
    tables.withheld = vec![Withheld {
        executor: Some(other),
        ..withheld(KnownProcess::OwnLimit, span(0, 10), 0.5)
    }];
    assert!(!culprits(tables.clone()).contains_key("Own limit"));
    tables.tasks[0].executor = other;
    close(culprits(tables)["Own limit"], 4.0);
}

#[test]
fn a_limit_counts_while_it_held_back() {
    let mut tables = waiting();
    // 8 s of waits over 10 s, so 4 s until the middle.
    tables.withheld = vec![withheld(KnownProcess::OwnLimit, span(0, 5), 1.0)];
    let found = culprits(tables);
    close(found["Own limit"], 4.0);
    close(found["query 2"], 4.0);
}

#[test]
fn stolen_time_is_no_capacity_of_unknown_users() {
    let mut tables = waiting();
    tables.capacities.push(Capacity {
        host: HostId(0),
        executor: Executor::default(),
        resource: Resource::Cpu,
        per_second: 2.0,
    });
    // 20 CPU seconds: 10 of tasks, 10 of nobody known.
    assert!(culprits(tables.clone())["Unknown"] > 1.0);
    tables.withheld = vec![Withheld {
        units: 10.0,
        ..withheld(KnownProcess::Hypervisor, span(0, 10), 0.5)
    }];
    let found = culprits(tables);
    close(found["Hypervisor"], 4.0);
    close(found["query 2"], 4.0);
}

/// Of query 1, which waits 8 s.
fn behind(source: Source, seconds: f64) -> Queued {
    Queued {
        task: TaskId(1),
        span: span(0, 10),
        source,
        seconds,
    }
}

#[test]
fn counted_waits_are_not_shared_out() {
    let mut tables = waiting();
    query(&mut tables, 3, &[(0, &[], span(0, 10))]);
    task(&mut tables, 3, stage(3, 0), 0, span(0, 10));
    runs(&mut tables, 3, span(0, 10), 8.0, 0);
    // By use, queries 2 and 3 are equal.
    close(culprits(tables.clone())["query 3"], 4.0);
    let by = |query| Source::Stage(stage(query, 0));
    let jit = Source::Known(KnownProcess::Jit);
    tables.queued = vec![behind(by(2), 5.0), behind(jit, 1.0)];
    let found = culprits(tables.clone());
    // The 2 s that were not counted are shared out by use.
    for (name, seconds) in [("query 2", 6.0), ("query 3", 1.0), ("JIT", 1.0)] {
        close(found[name], seconds);
    }
    // Clocks differ: not more than the wait.
    tables.queued = vec![behind(by(2), 9.0), behind(jit, 9.0)];
    let found = culprits(tables.clone());
    close(found["query 2"], 4.0);
    close(found["JIT"], 4.0);
    // Twice the right to the CPU, which the victim loses all the same.
    tables.queries[1].weight = 2.0;
    close(culprits(tables.clone())["query 2"], 4.0);
    close(culprits_by(tables, true)["query 2"], 8.0 / 3.0);
}

#[test]
fn time_behind_the_collector_goes_to_those_who_made_garbage() {
    let mut tables = waiting();
    tables.queued = vec![behind(Source::Known(KnownProcess::Gc), 8.0)];
    close(culprits(tables.clone())["GC_Q"], 8.0);
    for (process, units) in [
        (KnownProcess::GcFor(stage(2, 0)), 3.0),
        (KnownProcess::Gc, 1.0),
    ] {
        tables.known.push(KnownUse {
            host: HostId(0),
            process,
            resource: Resource::Cpu,
            span: span(0, 10),
            units,
        });
    }
    let found = culprits(tables);
    close(found["query 2"], 6.0);
    close(found["GC_Q"], 2.0);
}

#[test]
fn the_graph_knows_which_seconds_were_counted() {
    let mut tables = waiting();
    tables.queued = vec![behind(Source::Stage(stage(2, 0)), 5.0)];
    let workload = Workload::new(tables).unwrap();
    let of = |own_tasks| {
        let options = Options {
            victims: [QueryId(1)].into(),
            own_tasks,
            ..Options::default()
        };
        let counted = Blame::new(&workload, &options).counted;
        counted.into_iter().collect::<Vec<_>>()
    };
    let key = (QueryId(1), Culprit::Query(QueryId(2)));
    assert_eq!(of(true), [(key, 5.0)]);
    assert_eq!(of(false), []);
}

#[test]
fn impossible_parts_are_refused() {
    for part in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
        let mut tables = waiting();
        tables.withheld = vec![withheld(KnownProcess::OwnLimit, span(0, 5), part)];
        assert!(Workload::new(tables).is_err(), "{part}");
    }
}

prop_compose! {
    fn rows()(
        process in prop_oneof![Just(KnownProcess::OwnLimit), Just(KnownProcess::Hypervisor)],
        start in 0..10i64,
        length in 1..10i64,
        part in prop_oneof![Just(0.0), Just(1.0), 0.0..1.0],
        units in 0.0..5.0,
        whole: bool,
    ) -> Withheld {
        Withheld {
            executor: whole.then(Executor::default),
            units,
            ..withheld(process, span(start, start + length), part)
        }
    }
}

proptest! {
    /// Rows that overlap, which no profile has, change who is to blame and not for how much.
    #[test]
    fn no_blamed_second_is_lost_or_counted_twice(
        withheld in prop::collection::vec(rows(), 0..5),
        queued in prop::collection::vec((1..3u64, 0..10i64, 1..10i64, 0.0..4.0, 0..4u8), 0..5),
        tasks in prop::collection::vec((1..3u64, 0..8i64, 1..5i64, 0.0..4.0, 0..=4i64), 1..6),
        beats in prop::collection::vec(0..10i64, 0..4),
        by_window: bool,
        own_tasks: bool,
    ) {
        let mut tables = waiting();
        for (number, (of, start, length, units, quarters)) in tasks.into_iter().enumerate() {
            let (id, life) = (10 + number as u64, span(start, start + length));
            task(&mut tables, id, stage(of, 0), 0, life);
            runs(&mut tables, id, life, units, length * S / 4 * quarters);
        }
        tables.withheld = withheld;
        tables.queued = queued
            .into_iter()
            .map(|(task, start, length, seconds, by)| {
                let source = match by {
                    0 => Source::Known(KnownProcess::Gc),
                    1 => Source::Known(KnownProcess::ExternalCpu),
                    of => Source::Stage(stage(u64::from(of - 1), 0)),
                };
                Queued { task: TaskId(task), span: span(start, start + length), source, seconds }
            })
            .collect();
        tables.heartbeats = beats
            .into_iter()
            .map(|at| Heartbeat { host: HostId(0), at: at * S })
            .collect();
        let workload = Workload::new(tables).unwrap();
        let split = if by_window { Split::ByWindow } else { Split::Pooled };
        let options = Options { split, own_tasks, ..Options::default() };
        let (blame, times) = Blame::with_timelines(&workload, &options, 3);
        let mut found: BTreeMap<QueryId, f64> = BTreeMap::new();
        for path in blame.explanations(&workload) {
            prop_assert!(path.seconds >= 0.0 && path.seconds.is_finite());
            *found.entry(path.victim).or_default() += path.seconds;
        }
        for victim in blame.victims().iter().copied() {
            let rows = workload.tables().intervals.iter();
            let rows = rows.filter(|row| workload.task(row.task).unwrap().stage.query == victim);
            let blocked: f64 = rows.map(|row| row.blocked_ns as f64 / 1e9).sum();
            close(found.get(&victim).copied().unwrap_or(0.0), blocked);
            let slices = times.get(&victim).into_iter().flat_map(|time| &time.slices);
            close(slices.flat_map(|slice| slice.seconds.values()).sum(), blocked);
        }
    }
}

fn write<T: Table>(dir: &ProfileDir, rows: Vec<T>) {
    let mut writer = SegmentWriter::new(dir, "test");
    rows.into_iter().for_each(|row| writer.push(row));
    writer.flush().unwrap();
}

/// An application whose only task got 1 of 10 s of CPU time, and waited in the run queue for the other 9.
fn profile(host: HostRow, outside: Vec<OutsideRow>) -> (tempfile::TempDir, ProfileDir) {
    let home = tempfile::tempdir().unwrap();
    let dir = ProfileDir::create(&home.path().join("profile")).unwrap();
    let app = "a".to_owned();
    let name = "h".to_owned();
    let end_ns = 10 * S;
    write(
        &dir,
        vec![ProcessRow {
            app: app.clone(),
            host: name.clone(),
            executor: "1".to_owned(),
            pid: 7,
            ..ProcessRow::default()
        }],
    );
    write(
        &dir,
        vec![StageRow {
            app: app.clone(),
            execution: Some(1),
            tasks: 1,
            submitted_ms: Some(0),
            completed_ms: Some(10_000),
            ..StageRow::default()
        }],
    );
    write(
        &dir,
        vec![IntervalRow {
            app: app.clone(),
            host: name.clone(),
            executor: "1".to_owned(),
            kind: "cpu".to_owned(),
            end_ns,
            units: 1.0,
            ..IntervalRow::default()
        }],
    );
    let stack = StackRow::from_frames(vec![Frame {
        kind: FrameKind::Wait,
        method: "[run queue]".to_owned(),
        ..Frame::default()
    }]);
    let wait = SampleRow {
        app: app.clone(),
        host: name.clone(),
        executor: "1".to_owned(),
        pid: 7,
        stage: Some(0),
        stage_attempt: Some(0),
        task: Some(0),
        end_ns,
        kind: unfuse_format::SampleKind::OffCpu,
        stack: stack.stack,
        count: 1,
        weight_ns: 9_000_000_000,
        ..SampleRow::default()
    };
    write(&dir, vec![stack]);
    write(&dir, vec![wait]);
    write(
        &dir,
        vec![HostRow {
            app: app.clone(),
            host: name.clone(),
            pid: 7,
            end_ns,
            cpus: 2,
            jvm_cpu_s: 1.0,
            ..host
        }],
    );
    beside(&dir, outside);
    (home, dir)
}

/// Adds what processes beside the JVM used in these 10 s.
fn beside(dir: &ProfileDir, outside: Vec<OutsideRow>) {
    let outside = outside.into_iter().map(|row| OutsideRow {
        app: "a".to_owned(),
        host: "h".to_owned(),
        pid: 7,
        end_ns: 10 * S,
        user: "bob".to_owned(),
        ..row
    });
    write(dir, outside.collect());
}

/// Who is to blame in a profile, s.
fn of_profile(dir: &ProfileDir, blocked: BlockedTime) -> BTreeMap<String, f64> {
    let profile = Profile::open(dir.path()).unwrap();
    let input = from_profile(&profile, blocked).unwrap();
    culprits(input.tables)
}

#[test]
fn a_profile_names_its_neighbours() {
    let process = |command: &str, jvm, cpu_s| OutsideRow {
        command: command.to_owned(),
        jvm,
        cpu_s,
        ..OutsideRow::default()
    };
    // 19 CPU seconds outside the JVM: 12 of a hog, 3 of another one, 4 of processes without rows.
    let outside = vec![
        process("hog", None, 12.0),
        process("cc1plus", None, 3.0),
        process("java", Some(7), 1.0),
    ];
    let used = HostRow {
        cpu_s: 20.0,
        ..HostRow::default()
    };
    let (_home, dir) = profile(used, outside);
    let found = of_profile(&dir, BlockedTime::Measured);
    let names: BTreeSet<&str> = found.keys().map(String::as_str).collect();
    let expected = ["External-CPU", "cc1plus (user bob)", "hog (user bob)"];
    assert_eq!(names, expected.into(), "{found:?}");
    close(found["hog (user bob)"], 9.0 * 12.0 / 19.0);
    close(found["cc1plus (user bob)"], 9.0 * 3.0 / 19.0);
    close(found["External-CPU"], 9.0 * 4.0 / 19.0);
    close(found.values().sum(), 9.0);
}

/// Two processes use as much; the kernel says that only one of them had the task's CPU.
#[test]
fn a_profile_tells_who_had_the_cpu() {
    let process = |command: &str| OutsideRow {
        command: command.to_owned(),
        cpu_s: 9.0,
        ..OutsideRow::default()
    };
    let used = HostRow {
        cpu_s: 19.0,
        ..HostRow::default()
    };
    let (_home, dir) = profile(used, vec![process("hog"), process("pinned")]);
    let shared = of_profile(&dir, BlockedTime::Measured);
    close(shared["hog (user bob)"], shared["pinned (user bob)"]);
    let row = |behind: &str, command: Option<&str>, waited_s: i64| CpuWaitRow {
        app: "a".to_owned(),
        host: "h".to_owned(),
        executor: "1".to_owned(),
        end_ns: 10 * S,
        waited_ns: waited_s * S,
        behind: behind.to_owned(),
        command: command.map(str::to_owned),
        user: command.map(|_| "bob".to_owned()),
        ..CpuWaitRow::default()
    };
    let child = CpuWaitRow {
        behind_jvm: Some(7),
        ..row("process", Some("java"), 5)
    };
    let lost = CpuWaitRow {
        behind_stage: Some(99),
        behind_attempt: Some(0),
        ..row("task", None, 5)
    };
    let impossible = row("jvm", None, -5);
    let rows = vec![
        row("process", Some("hog"), 7),
        row("process", Some("unnamed"), 1),
        row("jvm", None, 1),
        child,
        lost,
        impossible,
    ];
    write(&dir, rows);
    let found = of_profile(&dir, BlockedTime::Measured);
    for (name, seconds) in [("hog (user bob)", 7.0), ("External-CPU", 1.0), ("JVM", 1.0)] {
        close(found[name], seconds);
    }
    close(found.values().sum(), 9.0);
    assert_eq!(found.len(), 3, "{found:?}");
}

#[test]
fn a_profile_tells_limit_and_hypervisor() {
    let host = HostRow {
        cpu_s: 1.0,
        cpu_limit: Some(0.1),
        cpu_group: Some("/a#1".to_owned()),
        group_cpu_s: Some(1.0),
        throttled_part: Some(0.9),
        throttled_s: Some(9.0),
        ..HostRow::default()
    };
    let (_home, dir) = profile(host.clone(), Vec::new());
    let found = of_profile(&dir, BlockedTime::Measured);
    close(found["Own limit"], 9.0);
    // The paper counts the running time as blocked.
    assert!(!of_profile(&dir, BlockedTime::Paper).contains_key("Own limit"));
    // A profile of an earlier version has neither column.
    let earlier = HostRow {
        throttled_s: None,
        ..host
    };
    let (_home, dir) = profile(earlier, Vec::new());
    assert!(!of_profile(&dir, BlockedTime::Measured).contains_key("Own limit"));
    let stolen = HostRow {
        cpu_s: 5.0,
        stolen_cpu_s: Some(15.0),
        ..HostRow::default()
    };
    let (_home, dir) = profile(stolen, Vec::new());
    let found = of_profile(&dir, BlockedTime::Measured);
    close(found["Hypervisor"], 9.0 * 15.0 / 20.0);
    close(found.values().sum(), 9.0);
}
