//! The first answers of the report: names and families of queries, the verdict, the cost of a row.

mod profile_builder;
mod properties;

use std::collections::BTreeMap;

use profile_builder::{COLLECTOR, DESERIALIZATION, DISK_READ, JIT, PAUSE, ProfileBuilder, SORT};
use unfuse_format::ProcessRow;
use unfuse_postprocess::LONGEST_NAME;
use unfuse_report::{Block, Blocks, Report, SentenceKind, Verdict};

const S: u64 = 1_000_000_000;

fn verdict(builder: ProfileBuilder) -> Verdict {
    let (_home, profile) = builder.open();
    let report = Report::new(&profile).expect("a report");
    report.summary_with_verdict().expect("a verdict").verdict
}

fn sentences(verdict: &Verdict, kind: SentenceKind) -> Vec<&str> {
    let of_kind = verdict
        .sentences
        .iter()
        .filter(|sentence| sentence.kind == kind);
    of_kind.map(|sentence| sentence.text.as_str()).collect()
}

#[test]
fn the_parts_are_the_slots_and_what_ran_beside_them() {
    let mut builder = ProfileBuilder::new();
    builder.tasks.pop();
    builder.samples.clear();
    builder.cpu(7, SORT, 5 * S);
    builder.cpu(7, DESERIALIZATION, S);
    builder.wait(7, DISK_READ, 3 * S);
    builder.beside(JIT, 5 * S);
    builder.tasks[0].run_ms = 9_500;
    let verdict = verdict(builder);
    // Of the task's 10 s, 9 s were sampled; it ran 9.5 s. The other slot was idle for 10 s.
    let parts: Vec<(&str, u64)> = verdict
        .parts
        .iter()
        .map(|part| (part.name.as_str(), part.ns))
        .collect();
    assert_eq!(
        parts,
        [
            ("operators", 5 * S),
            ("deserialization", S),
            ("disk read", 3 * S),
            ("time without samples", S / 2),
            ("starting tasks and fetching results", S / 2),
            ("JIT compilation", 5 * S),
            ("idle slots", 10 * S),
        ]
    );
    assert_eq!((verdict.whole_ns, verdict.slots), (25 * S, Some(2.0)));
    assert_eq!(
        sentences(&verdict, SentenceKind::Time),
        [
            "The application ran 10 s on 2 slots: 20% CPU in operators, 4% CPU in other work of tasks (deserialization 4%), \
             12% waiting (disk read 12%), 2% time without samples, 2% starting tasks and fetching results, \
             20% JIT compilation, 40% idle slots.",
            "100% is 25 s: the time of all task slots, and the CPU time of other threads.",
        ]
    );
}

#[test]
fn an_operator_is_named_with_what_is_known_of_it() {
    let verdict = verdict(ProfileBuilder::new());
    assert_eq!(
        sentences(&verdict, SentenceKind::Operator),
        [
            "Sort (node 0 of “the query”) used 100.0% (99.8 to 100.0%) of the CPU time, 16.0 ms per input row; \
          hottest method (sorting): `UnsafeExternalRowSorter.sort` (100%)."
        ]
    );
    let operator = verdict
        .sentences
        .iter()
        .find(|sentence| sentence.kind == SentenceKind::Operator);
    let evidence = operator
        .and_then(|sentence| sentence.evidence.as_ref())
        .expect("a place");
    assert_eq!(
        (evidence.query, evidence.tab.as_str(), evidence.node),
        (Some(0), "plan", Some(0))
    );
    let next = verdict
        .sentences
        .last()
        .and_then(|sentence| sentence.command.as_deref());
    assert!(
        next.is_some_and(|command| command.ends_with("--by line --query 7")),
        "{next:?}"
    );
}

#[test]
fn nothing_stands_out_where_nothing_does() {
    let verdict = verdict(ProfileBuilder::new());
    assert_eq!(
        sentences(&verdict, SentenceKind::Unusual),
        ["Nothing else stands out."]
    );
    assert!(sentences(&verdict, SentenceKind::Certainty).is_empty());
    let mut many = ProfileBuilder::new();
    many.samples.clear();
    for query in 10..50 {
        many.query(query, &format!("query number {query}"), 100);
        many.cpu(query, SORT, S / 4);
    }
    let verdict = self::verdict(many);
    let said = sentences(&verdict, SentenceKind::Operator);
    assert!(
        said[0].starts_with("No operator stands out: the most that one used is 2.5% ("),
        "{said:?}"
    );
}

type Change = fn(&mut ProfileBuilder);

/// The names of the rules, their kinds, and a change to the common profile that makes each apply.
const RULES: [(&str, SentenceKind, Change); 13] = [
    (
        "The profile has only 1 CPU sample, so",
        SentenceKind::Certainty,
        |builder| {
            builder.samples.clear();
            builder.cpu(7, SORT, 1);
        },
    ),
    (
        "The kernel dropped 50% of the samples",
        SentenceKind::Certainty,
        |builder| {
            builder.processes[0].lost_samples = 2000;
        },
    ),
    (
        "For 10 s of the tasks' time, 50% of all, there are neither",
        SentenceKind::Certainty,
        |builder| {
            builder.samples.clear();
            builder.cpu(7, SORT, 9 * S);
            builder.wait(7, DISK_READ, S);
        },
    ),
    (
        "The query “the query” failed.",
        SentenceKind::Unusual,
        |builder| {
            builder.executions[0].error = Some("out of memory".to_owned());
        },
    ),
    (
        "Failed task attempts took 10 s, 50% of the tasks' time.",
        SentenceKind::Unusual,
        |builder| {
            builder.tasks[0].status = "FAILED".to_owned();
        },
    ),
    (
        "Garbage collection took 4.0 s, 18% of all time.",
        SentenceKind::Unusual,
        |builder| {
            builder.wait(7, PAUSE, 2 * S);
            builder.beside(COLLECTOR, 2 * S);
        },
    ),
    (
        "Tasks waited 4.0 s for reads from disk, 20% of all time.",
        SentenceKind::Unusual,
        |builder| {
            builder.wait(7, DISK_READ, 4 * S);
        },
    ),
    (
        "Tasks spilled 3.0 GiB to disk, 300% of what they read.",
        SentenceKind::Unusual,
        |builder| {
            builder.tasks[0].disk_spilled_bytes = 3 << 30;
            builder.tasks[1].input_bytes = 1 << 30;
        },
    ),
    (
        "Sort (node 0) put out 40 times as many rows as it got.",
        SentenceKind::Unusual,
        |builder| {
            builder.stages[0]
                .accumulators
                .push(unfuse_format::Accumulator {
                    id: 70,
                    value: "40000".to_owned(),
                });
        },
    ),
    (
        "The slowest run of “the query” took 3.0 times as long as the median.",
        SentenceKind::Unusual,
        |builder| {
            builder.query(8, "the query", 9_000);
            builder.query(9, "the query", 27_000);
        },
    ),
    (
        "The JVM used 5.0 s of CPU time for JIT compilation, 20% of all time.",
        SentenceKind::Unusual,
        |builder| {
            builder.beside(JIT, 5 * S);
        },
    ),
    (
        "Tasks used 4.0 s of CPU time to deserialize",
        SentenceKind::Unusual,
        |builder| {
            builder.cpu(7, DESERIALIZATION, 4 * S);
        },
    ),
    (
        "The slots had no task for 20 s, 50% of all time.",
        SentenceKind::Unusual,
        |builder| {
            builder.application[1].ended_ms = Some(20_000);
        },
    ),
];

/// Each rule applies to the profile with its change, and not to the common profile.
#[test]
fn every_rule_says_what_it_finds() {
    let usual = verdict(ProfileBuilder::new());
    for (text, kind, change) in RULES {
        let mut builder = ProfileBuilder::new();
        change(&mut builder);
        let verdict = verdict(builder);
        let said = sentences(&verdict, kind);
        assert!(
            said.iter().any(|said| said.starts_with(text)),
            "{text}: {said:?}"
        );
        let said = sentences(&usual, kind);
        assert!(
            !said.iter().any(|said| said.starts_with(text)),
            "{text}: {said:?}"
        );
    }
}

#[test]
fn tasks_that_wait_to_start_are_said() {
    let mut builder = ProfileBuilder::new();
    for task in &mut builder.tasks {
        task.run_ms = 8_000;
    }
    let verdict = verdict(builder);
    let said = sentences(&verdict, SentenceKind::Unusual);
    assert_eq!(
        said,
        ["Tasks took 4.0 s to start and to return their results, 20% of all time."]
    );
}

#[test]
fn slow_tasks_are_said_where_they_were_found() {
    let (_home, profile) = ProfileBuilder::new().open();
    let block = || Block::new(&"skew").expect("a block");
    let skew = Blocks {
        all: block(),
        queries: BTreeMap::from([(0, block())]),
    };
    let report = Report::new(&profile).expect("a report").with_skew(skew);
    let verdict = report.summary_with_verdict().expect("a verdict").verdict;
    assert_eq!(
        sentences(&verdict, SentenceKind::Unusual),
        ["The query “the query” had tasks or records that took much longer than their like."]
    );
    let command = verdict
        .sentences
        .last()
        .and_then(|sentence| sentence.command.as_deref());
    assert!(
        command.is_some_and(|command| command.starts_with("unfuse skew ")),
        "{command:?}"
    );
}

#[test]
fn a_profile_with_unreadable_files_says_so() {
    let (home, profile) = ProfileBuilder::new().open();
    let damaged = profile.path().join("samples/test-2-00000.parquet");
    std::fs::write(damaged, b"PAR1 and no more").expect("written");
    let profile = unfuse_postprocess::Profile::open(profile.path()).expect("a profile");
    let report = Report::new(&profile).expect("a report");
    let verdict = report.summary_with_verdict().expect("a verdict").verdict;
    let said = sentences(&verdict, SentenceKind::Certainty);
    assert_eq!(
        said,
        ["All numbers are too low: 1 file of the profile cannot be read."]
    );
    drop(home);
}

#[test]
fn a_profile_without_spark_has_its_cpu_time() {
    let mut builder = ProfileBuilder {
        processes: vec![ProcessRow {
            samples: 400,
            ..ProcessRow::default()
        }],
        ..ProfileBuilder::default()
    };
    builder.beside(&["my.Main.main"], 3 * S);
    builder.beside(JIT, S);
    for sample in &mut builder.samples {
        sample.app.clear();
    }
    let verdict = verdict(builder);
    assert_eq!(
        sentences(&verdict, SentenceKind::Time)[0],
        "The JVMs used 4.0 s of CPU time: 75% CPU of other threads (outside tasks 75%), 25% JIT compilation."
    );
    assert_eq!(
        sentences(&verdict, SentenceKind::Operator),
        ["No SQL operator used CPU time."]
    );
}

#[test]
fn a_job_without_sql_has_its_tasks() {
    let mut builder = ProfileBuilder::new();
    (builder.executions, builder.plans) = Default::default();
    builder.stages[0].execution = None;
    builder.samples.clear();
    builder.cpu(
        7,
        &[
            "org.apache.spark.rdd.MapPartitionsRDD.compute",
            "my.Job.parse",
        ],
        19 * S,
    );
    builder.wait(7, &["my.Job.parse", "java.io.FileInputStream.readBytes"], S);
    let verdict = verdict(builder);
    assert_eq!(
        sentences(&verdict, SentenceKind::Time)[0],
        "The application ran 10 s on 2 slots: 95% CPU in other work of tasks (user code 95%), 5% waiting (disk read 5%)."
    );
    assert_eq!(
        sentences(&verdict, SentenceKind::Operator),
        ["No SQL operator used CPU time."]
    );
    let command = verdict
        .sentences
        .last()
        .and_then(|sentence| sentence.command.as_deref());
    assert!(
        command.is_some_and(|command| command.ends_with("--by line")),
        "{command:?}"
    );
}

#[test]
fn names_are_bounded_whatever_the_query_says() {
    let mut builder = ProfileBuilder::new();
    let long = "SELECT ".to_owned() + &"x, ".repeat(33_000);
    for (query, text) in [
        (8, long.as_str()),
        (9, "a\u{1b}[2J\u{202e}b"),
        (10, ""),
        (11, "save at X.java:0"),
    ] {
        builder.query(query, text, 100);
    }
    let (_home, profile) = builder.open();
    let report = Report::new(&profile).expect("a report");
    let queries = &report.summary().queries;
    for query in queries {
        assert!(
            query.name.chars().count() <= LONGEST_NAME && !query.name.is_empty(),
            "{}",
            query.name
        );
        assert!(
            !query
                .name
                .contains(|c: char| c.is_control() || c == '\u{202e}'),
            "{}",
            query.name
        );
    }
    let name = |id: i64| {
        queries
            .iter()
            .find(|query| query.query == Some(id))
            .map(|query| query.name.as_str())
    };
    assert_eq!(name(7), Some("the query"));
    assert_eq!(name(11), Some("parquet"));
    assert_eq!(name(10), name(11));
}
