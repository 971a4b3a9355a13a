use std::fs;

use proptest::prelude::*;

use super::*;
use crate::{Blame, Culprit, Options, Workload, baseline};

const HEAD: &str = "host,query,stage,attempt,task,kind,start_ns,end_ns,units,blocked_ns";

/// The workload of these files with its notes, or the error.
fn told(files: &[(&str, &str)]) -> Result<(Workload, String), String> {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(dir.path().join(name), text).unwrap();
    }
    let input = from_csv(dir.path()).map_err(|e| e.to_string())?;
    let workload = Workload::new(input.tables).map_err(|e| e.to_string())?;
    Ok((workload, input.notes.join("\n")))
}

fn read(files: &[(&str, &str)]) -> Result<Workload, String> {
    told(files).map(|(workload, _)| workload)
}

/// Seconds of a victim, by culprit.
fn blamed(workload: &Workload, victim: u64) -> BTreeMap<Culprit, f64> {
    let options = Options {
        victims: [QueryId(victim)].into(),
        ..Options::default()
    };
    let mut blamed = BTreeMap::new();
    for path in Blame::new(workload, &options).explanations(workload) {
        *blamed.entry(path.culprit).or_default() += path.seconds;
    }
    blamed
}

#[track_caller]
fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-6, "{found} is not {expected}");
}

#[test]
fn names_that_read_as_numbers_stay_apart() {
    let rows = ["1", "01", "+1", "18446744073709551615", "a", "b"]
        .map(|query| format!("\nh,{query},0,0,0,cpu,0,10,1e-9,0"));
    let workload = read(&[(INTERVALS_CSV, &format!("{HEAD}{}", rows.concat()))]).unwrap();
    let ids: BTreeSet<QueryId> = workload.tables().queries.iter().map(|q| q.id).collect();
    assert_eq!(ids.len(), 6);
}

const SHORT: &str = "host,query,stage,task,kind,start_ns,end_ns,units,blocked_ns";
const HOSTS: &str = "host,resource,start_ns,end_ns,units,capacity";

#[test]
fn a_burst_of_a_task_is_not_put_down_to_others() {
    let intervals = format!(
        "{SHORT}
w1,2,0,b,io-read,0,1000000000,100,0
w1,1,0,a,io-read,1000000000,2000000000,10,500000000
w1,2,0,b,io-read,1000000000,2000000000,10,0"
    );
    let hosts = format!("{HOSTS}\nw1,IO,0,2000000000,120,");
    let (workload, notes) = told(&[(INTERVALS_CSV, &intervals), ("hosts.csv", &hosts)]).unwrap();
    assert_eq!(workload.tables().known, []);
    assert!(!notes.contains("no rows"), "{notes}");
    let blamed = blamed(&workload, 1);
    assert_eq!(blamed.len(), 1);
    close(blamed[&Culprit::Query(QueryId(2))], 0.5);
}

#[test]
fn what_is_outside_lies_where_its_row_does() {
    let intervals = format!(
        "{SHORT}
w1,1,0,a,io-read,0,10000000000,100,5000000000
w1,2,0,b,io-read,0,10000000000,100,0
w2,2,0,c,io-read,0,10000000000,100,0"
    );
    let hosts = format!("{HOSTS}\nw1,IO,9000000000,10000000000,120,");
    let (workload, notes) = told(&[(INTERVALS_CSV, &intervals), ("hosts.csv", &hosts)]).unwrap();
    assert!(
        notes.contains("9.0 of 10.0 s of IO on w1, all of w2"),
        "{notes}"
    );
    let known = &workload.tables().known;
    assert_eq!(known.len(), 1);
    close(known[0].units, 100.0);
    let windows = crate::windows(&workload, HostId(0));
    assert_eq!(windows.len(), 2);
    let outside: Vec<usize> = crate::cells(&workload, None)
        .map(|cell| cell.known.len())
        .collect();
    assert_eq!(outside, [0, 1, 0]);
}

#[test]
fn rows_of_hosts_that_would_count_twice_are_refused() {
    let intervals = format!("{SHORT}\nw1,1,0,a,io-read,0,10,30,6");
    let hosts = format!("{HOSTS}\nw1,IO,0,10,50,\nw1,CPU,0,10,50,\nw1,IO,9,20,50,\nw1,IO,20,30,1,");
    let error = read(&[(INTERVALS_CSV, &intervals), ("hosts.csv", &hosts)]).unwrap_err();
    assert!(
        error.contains("hosts.csv, row 3: it overlaps row 1"),
        "{error}"
    );
}

/// The clock of w2 is 1000 s ahead.
#[test]
fn clocks_that_differ_make_no_stage_long() {
    let intervals = format!(
        "{SHORT}
w1,1,0,a,io-read,0,1000000000,30,600000000
w2,1,0,b,io-read,1000000000000,1001000000000,30,100000000
w1,1,1,c,cpu,1000000000,31000000000,10,20000000000
w1,2,0,d,cpu,1000000000,31000000000,20,0
w2,2,0,e,io-read,1000000000000,1001000000000,60,0"
    );
    let (workload, notes) = told(&[(INTERVALS_CSV, &intervals)]).unwrap();
    assert!(
        notes.contains("w1 ends 969.0 s before w2 begins"),
        "{notes}"
    );
    let path = crate::critical_path(&workload, QueryId(1));
    assert_eq!(path.iter().map(|id| id.stage).collect::<Vec<_>>(), [1]);
    let ran = workload.span_of(QueryId(1)).unwrap().seconds();
    close(ran, 31.0);
    let overlap = baseline::naive_overlap(&workload, &[QueryId(1)].into(), None);
    close(overlap[&QueryId(1)][&QueryId(2)], 30.0);
}

#[test]
fn clocks_that_agree_stay_as_they_are() {
    let intervals = format!(
        "{SHORT}
w1,1,0,a,cpu,0,5000000000,1,0
w2,1,0,b,cpu,2000000000,9000000000,1,0
w3,1,0,b,cpu,9500000000,9600000000,1,0"
    );
    let (workload, notes) = told(&[(INTERVALS_CSV, &intervals)]).unwrap();
    assert!(!notes.contains("clocks"), "{notes}");
    let starts: Vec<i64> = workload
        .tables()
        .tasks
        .iter()
        .map(|task| task.span.start)
        .collect();
    assert_eq!(starts, [0, 2_000_000_000, 9_500_000_000]);
    close(workload.span_of(QueryId(1)).unwrap().seconds(), 7.0);
}

#[test]
fn who_waits_for_a_slot_does_not_run() {
    let intervals = format!(
        "{SHORT}
w1,1,0,a,slot,0,10000000000,0,10000000000
w1,1,0,a,cpu,10000000000,11000000000,1,0
w1,1,0,never,slot-cpu,0,10000000000,0,10000000000
w1,2,0,b,slot,0,10000000000,10,0
w1,2,0,b,cpu,0,10000000000,10,0
w1,3,0,c,cpu,0,1000000000,0,0"
    );
    let workload = read(&[(INTERVALS_CSV, &intervals)]).unwrap();
    let ran: Vec<(u64, bool, f64)> = workload
        .tables()
        .tasks
        .iter()
        .map(|task| (task.stage.query.0, task.runs, task.span.seconds()))
        .collect();
    assert_eq!(
        ran,
        [
            (1, true, 1.0),
            (1, false, 10.0),
            (2, true, 10.0),
            (3, true, 1.0)
        ]
    );
    close(blamed(&workload, 1)[&Culprit::Query(QueryId(2))], 20.0);
}

#[test]
fn waits_at_the_same_time_are_told_of() {
    let kinds = ["io-read", "network", "cpu"];
    let row = |kind| format!("\nw1,1,0,a,{kind},0,1000000000,30,700000000");
    let intervals = format!("{SHORT}{}", kinds.map(row).concat());
    let (_, notes) = told(&[(INTERVALS_CSV, &intervals)]).unwrap();
    assert!(
        notes.contains("task a of stage 0 on w1 for 2.1 s of 1.0 s"),
        "{notes}"
    );
    let (_, notes) = told(&[(INTERVALS_CSV, &format!("{SHORT}{}", row("cpu")))]).unwrap();
    assert!(!notes.contains("longer than they lived"), "{notes}");
}

#[test]
fn rows_that_say_nothing_clear_are_refused() {
    let intervals = format!("{SHORT}\nw1,1,0,a,cpu,0,10,1,0");
    let refused = |name: &str, text: &str| {
        read(&[(INTERVALS_CSV, intervals.as_str()), (name, text)]).unwrap_err()
    };
    for (name, text, words) in [
        (
            "queries.csv",
            "query,user\n1,ann\n1,bob",
            "row 2: query 1 is described by row 1",
        ),
        (
            "queries.csv",
            "query,weight\n1,1e-320",
            "row 1: 1e-320 is no possible weight",
        ),
        (
            "stages.csv",
            "query,stage,parents\n1,0,\n7,0,",
            "row 2: there is no query 7",
        ),
        (
            "hosts.csv",
            "host,resource,start_ns,end_ns,units,capacity\nw1,IO,0,9,1,1e308",
            "row 1: a capacity must be",
        ),
        (
            INTERVALS_CSV,
            &format!("{SHORT}\nw1,1,0,a,cpu,0,10,1e-320,0"),
            "row 1: 1e-320 is no possible amount",
        ),
        (
            INTERVALS_CSV,
            &format!("{SHORT}\nw1,1,0,a,cpu,0,10,1e308,0"),
            "row 1: 1e308 is no possible amount",
        ),
    ] {
        let error = refused(name, text);
        assert!(error.contains(&format!("{name}, {words}")), "{error}");
    }
}

#[test]
fn a_critical_path_leads_through_stages_without_rows() {
    let intervals = format!("{HEAD}\nh,q,0,0,0,cpu,0,50,1e-9,0\nh,q,2,0,1,cpu,60,90,1e-9,0");
    let stages = "query,stage,attempt,parents\nq,2,0,1\nq,1,0,0";
    let workload = read(&[(INTERVALS_CSV, &intervals), ("stages.csv", stages)]).unwrap();
    let query = workload.tables().queries[0].id;
    let path = crate::critical_path(&workload, query);
    let path: Vec<u32> = path.iter().map(|stage| stage.stage).collect();
    assert_eq!(path, [0, 1, 2]);
    assert_eq!(workload.span_of(query).unwrap(), Span { start: 0, end: 90 });
    let wrong = "query,stage,attempt,parents\nq,2,0,\"0,1\"";
    let error = read(&[(INTERVALS_CSV, &intervals), ("stages.csv", wrong)]);
    assert!(error.unwrap_err().contains("stages.csv, row 1: parents"));
}

/// Mostly accepted values.
fn units() -> impl Strategy<Value = f64> {
    prop_oneof![
        40 => 0.0f64..9.0,
        5 => Just(1e-30),
        5 => Just(1e30),
        1 => Just(1e-320),
        1 => Just(1e308),
    ]
}

proptest! {
    #[test]
    fn what_is_read_is_a_workload(
        rows in proptest::collection::vec(
            (0u8..3, 0u8..3, 0u8..2, 0u8..9, 0usize..9, 0i64..50, 0i64..50, units(), 0.0f64..1.0),
            1..30,
        ),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut text = HEAD.to_owned();
        for (host, query, stage, task, kind, start, length, units, blocked) in rows {
            let kind = Kind::ALL[kind].word();
            let (end, blocked) = (start + length, (blocked * length as f64) as i64);
            text += &format!(
                "\nh{host},q{query},{stage},0,{task},{kind},{start},{end},{units},{blocked}"
            );
        }
        fs::write(dir.path().join(INTERVALS_CSV), text).unwrap();
        let input = match from_csv(dir.path()) {
            Ok(input) => input,
            Err(error) => {
                prop_assert!(error.to_string().contains("no possible amount"), "{}", error);
                return Ok(());
            }
        };
        let workload = Workload::new(input.tables).unwrap();
        let blame = Blame::new(&workload, &Options::default());
        for path in blame.explanations(&workload) {
            prop_assert!(path.weight.is_finite() && path.seconds.is_finite());
        }
    }

    #[test]
    fn no_text_panics(text in "[\\PC\n,\"0-9a-z-]*") {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(INTERVALS_CSV), format!("{HEAD}\n{text}")).unwrap();
        if let Ok(input) = from_csv(dir.path()) {
            let _ = Workload::new(input.tables);
        }
    }
}
