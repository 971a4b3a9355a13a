//! Planted skew in real runs (analysis/eventlog/tests/fixtures/job.py) is found, and nothing else.

use std::fs;
use std::path::Path;

use unfuse_eventlog::EventLog;
use unfuse_skew::{Cause, Finding, Options, Verdict, detect, from_event_log};

/// The findings on a fixture's stages, with the descriptions of these.
fn findings(name: &str) -> Vec<Finding> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../eventlog/tests/fixtures")
        .join(name);
    let entry = fs::read_dir(&dir).expect("a fixture").next();
    let path = entry.expect("a log").expect("an entry").path();
    let run = from_event_log(&mut EventLog::open(&path).expect("a log"));
    assert!(!run.stages.is_empty(), "{name}");
    let stages = run.stages.iter();
    stages
        .map(|stage| detect(stage, &Options::default()))
        .collect()
}

fn called<'a>(findings: &'a [Finding], name: &str) -> Vec<&'a Finding> {
    let found: Vec<_> = findings.iter().filter(|f| f.description == name).collect();
    assert!(!found.is_empty(), "{name}");
    found
}

#[test]
fn the_slow_record_is_told_from_the_large_file() {
    for name in ["causes-3.5", "causes-4.3"] {
        let findings = findings(name);
        for stage in [
            "computation skew: one slow record",
            "computation skew: one slow lookup",
        ] {
            let finding = called(&findings, stage)[0];
            let cause = Verdict::Skewed(Cause::Computation);
            assert_eq!(finding.verdict, cause, "{name}: {finding:#?}");
            assert!(finding.sure > 0.99, "{name}: {finding:#?}");
            // At least the planted delay, on a machine without other load.
            assert!(finding.tasks[0].slower_ms > 3500.0, "{name}: {finding:#?}");
            assert!(
                finding.tasks[1..]
                    .iter()
                    .all(|task| task.slower_ms < 3500.0)
            );
        }
        let finding = called(&findings, "data skew: one large file")[0];
        assert_eq!(
            finding.verdict,
            Verdict::Skewed(Cause::Data),
            "{name}: {finding:#?}"
        );
        assert!(finding.sure > 0.9, "{name}: {finding:#?}");
        let finding = called(&findings, "even")[0];
        assert_eq!(finding.verdict, Verdict::Even, "{name}: {finding:#?}");
        let skewed = |f: &&&Finding| f.verdict == Verdict::Skewed(Cause::Data);
        let by_key = called(&findings, "data skew: one large key");
        assert_eq!(
            by_key.iter().filter(skewed).count(),
            1,
            "{name}: {by_key:#?}"
        );
    }
}

#[test]
fn attempts_count_once() {
    for name in ["failures-3.5", "failures-4.3"] {
        let findings = findings(name);
        let once = called(&findings, "one task fails once")[0];
        assert_eq!((once.counted, once.uncounted), (16, 1), "{name}");
        let copied = called(&findings, "one task is slow and has a speculative copy")[0];
        assert_eq!(copied.counted, 16, "{name}");
        assert!(
            copied.uncounted >= 1 && copied.slowest_ms < 60_000.0,
            "{name}"
        );
        for finding in called(&findings, "an executor is lost") {
            assert!([4, 16].contains(&finding.counted), "{name}: {finding:#?}");
        }
    }
}

/// Needs a quiet machine: while the log of Spark 4.3 was made, other programs slowed all hosts down for some seconds.
#[test]
fn a_slow_host_is_told() {
    let findings = findings("failures-3.5");
    // There, each executor has its own host.
    let host = called(&findings, "one executor is slow")[0];
    let cause = Verdict::Skewed(Cause::Host);
    assert_eq!(host.verdict, cause, "{host:#?}");
    assert!(host.sure > 0.99, "{host:#?}");
    let of_host = host.tasks.iter().filter(|task| {
        let first = task.parts.first();
        first.is_some_and(|part| part.cause == Cause::Host)
    });
    assert!(of_host.clone().count() >= 2, "{host:#?}");
    assert!(
        of_host.into_iter().all(|task| task.executor == "0"),
        "{host:#?}"
    );
}
