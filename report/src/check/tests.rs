//! Statuses of made-up runs; how often chance is called a regression, and how often a planted one is found.

use super::answer::{Answer, Measure, Status};
use super::runs::{OperatorRun, QueryRuns, Run};
use super::{Baseline, ProfileRuns, Question, junit, markdown, render};

const RATE_HZ: f64 = 200.0;

/// The same numbers each time (SplitMix64).
struct Random(u64);

impl Random {
    /// 0 to 1.
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// A number of samples whose mean is expected; above 50 nearly Poisson's.
    fn samples(&mut self, expected: f64) -> u64 {
        if expected > 50.0 {
            return (expected + expected.sqrt() * self.normal())
                .round()
                .max(0.0) as u64;
        }
        let (mut product, mut count) = (self.uniform(), 0);
        while product > (-expected).exp() {
            product *= self.uniform();
            count += 1;
        }
        count
    }
}

/// A run of a query: CPU seconds of its operators and their rows, as samples find them.
fn run(number: i64, wall_s: f64, operators: &[(f64, i64)], random: Option<&mut Random>) -> Run {
    let mut run = Run {
        app: "app".to_owned(),
        query: number,
        started_ms: Some(number),
        wall_ms: (1e3 * wall_s) as i64,
        rows: operators.last().map(|(_, rows)| *rows),
        ..Run::default()
    };
    let mut random = random;
    for (index, (cpu_s, rows)) in operators.iter().enumerate() {
        let expected = cpu_s * RATE_HZ;
        let samples = match &mut random {
            Some(random) => random.samples(expected),
            None => expected.round() as u64,
        };
        let cpu_ns = (samples as f64 * 1e9 / RATE_HZ) as u64;
        run.samples += samples;
        run.cpu_ns += cpu_ns;
        run.operators.push(OperatorRun {
            key: format!("operator {index}"),
            id: index as i32,
            name: format!("Operator{index}"),
            cpu_ns,
            possible_ns: [cpu_ns; 2],
            samples,
            rows: Some(*rows),
        });
    }
    run
}

fn query(name: &str, runs: Vec<Run>) -> QueryRuns {
    QueryRuns {
        application: "job".to_owned(),
        application_key: None,
        fingerprint: format!("{name} plan"),
        name: name.to_owned(),
        description: name.to_owned(),
        runs,
    }
}

fn profile(path: &str, queries: Vec<QueryRuns>) -> ProfileRuns {
    ProfileRuns {
        profile: path.to_owned(),
        queries,
        notes: Vec::new(),
        spark: vec!["4.3.0".to_owned()],
    }
}

fn question(limit: &str) -> Question {
    Question {
        limit: limit.parse().expect("a limit"),
        warm_up: 0,
    }
}

fn check(before: Vec<QueryRuns>, now: Vec<QueryRuns>, limit: &str) -> Answer {
    let (before, now) = (profile("old", before), profile("new", now));
    Answer::from_profiles(&now, &before, question(limit)).expect("queries in common")
}

/// Three runs that differ by 1%, with 40 s and `join_s` s of CPU time in two operators that get rows.
fn steady(first: i64, wall_s: f64, join_s: f64, rows: i64) -> Vec<Run> {
    (0..3)
        .map(|index| {
            let noise = 1.0 + 0.01 * (index - 1) as f64;
            let operators = [(40.0 * noise, rows), (join_s * noise, rows)];
            run(first + index, wall_s * noise, &operators, None)
        })
        .collect()
}

/// The status of each measure of the only query.
fn statuses(answer: &Answer) -> Vec<(Measure, Option<&str>, Status)> {
    let comparisons = answer.queries[0].comparisons.iter();
    let of = comparisons.map(|of| (of.measure, of.operator.as_deref(), of.status));
    of.collect()
}

#[test]
fn an_operator_that_became_slower_is_named_first() {
    let before = vec![query("q", steady(0, 30.0, 40.0, 1000))];
    let now = vec![query("q", steady(9, 30.0, 100.0, 1000))];
    let answer = check(before, now, "5%");
    assert!(answer.failed);
    let found = statuses(&answer);
    assert_eq!(
        found[0],
        (Measure::Operator, Some("Operator1 (1)"), Status::Regression)
    );
    assert_eq!(found[1], (Measure::Cpu, None, Status::Regression));
    assert!(
        found[2..]
            .iter()
            .all(|(_, _, status)| *status == Status::Ok)
    );
    let text = render(&answer, 20);
    assert!(text.contains("operator Operator1 (1) of q; "), "{text}");
    assert!(
        text.contains("next: unfuse why new --against old --query 11"),
        "{text}"
    );
    let back = check(
        vec![query("q", steady(0, 30.0, 100.0, 1000))],
        vec![query("q", steady(9, 30.0, 40.0, 1000))],
        "5%",
    );
    assert!(!back.failed);
    assert_eq!(back.count(Status::Improved), (2, 1));
}

#[test]
fn more_rows_are_no_regression_and_more_time_for_as_many_rows_is() {
    let before = || vec![query("q", steady(0, 30.0, 40.0, 1000))];
    let mut twice: Vec<Run> = steady(9, 60.0, 80.0, 2000);
    for run in &mut twice {
        run.operators[0].cpu_ns *= 2;
        run.operators[0].samples *= 2;
        run.cpu_ns += run.operators[0].cpu_ns / 2;
        run.samples += run.operators[0].samples / 2;
    }
    let answer = check(before(), vec![query("q", twice)], "5%");
    assert!(!answer.failed);
    assert!(
        statuses(&answer)
            .iter()
            .all(|(_, _, status)| *status == Status::MoreRows)
    );
    assert!(render(&answer, 20).contains("2.00 times the rows"));
    let slower = check(
        before(),
        vec![query("q", steady(9, 60.0, 80.0, 1000))],
        "5%",
    );
    assert_eq!(slower.count(Status::Regression), (3, 1));
    // Fewer rows with the same work for each of them, which only costs less.
    let fewer = check(before(), vec![query("q", steady(9, 30.0, 40.0, 500))], "5%");
    assert!(!fewer.failed && fewer.count(Status::NotShown) == (0, 0));
}

#[test]
fn a_wall_time_that_is_longer_by_waits_for_a_cpu_is_no_regression() {
    let of = |first, wall_s, cpu_wait| {
        let mut runs = steady(first, wall_s, 40.0, 1000);
        for run in &mut runs {
            run.cpu_wait = cpu_wait;
        }
        vec![query("q", runs)]
    };
    let wall = |now| {
        let answer = check(of(0, 30.0, Some(0.1)), now, "5%");
        let found = statuses(&answer);
        let wall = found.iter().find(|(of, ..)| *of == Measure::Wall);
        let status = wall.map(|(_, _, status)| *status);
        (status, answer.failed, render(&answer, 20))
    };
    // 27 s without waits on both sides.
    let (status, failed, text) = wall(of(9, 54.0, Some(0.5)));
    assert_eq!((status, failed), (Some(Status::BusyHost), false));
    assert!(
        text.contains("without waits for a CPU 27 s before, 27 s now"),
        "{text}"
    );
    assert!(text.starts_with("1 by a busy host in 1 query"), "{text}");
    // The waits are only a part of it, or their time is not known.
    assert_eq!(wall(of(9, 70.0, Some(0.5))).0, Some(Status::Regression));
    assert_eq!(wall(of(9, 54.0, None)).0, Some(Status::Regression));
    // Shorter waits make no query faster.
    assert_eq!(wall(of(9, 27.1, Some(0.0))).0, Some(Status::Ok));
}

#[test]
fn wall_times_of_single_runs_show_nothing_and_cpu_times_do_by_samples() {
    let one = |wall_s, join_s| {
        vec![query(
            "q",
            vec![run(0, wall_s, &[(40.0, 9), (join_s, 9)], None)],
        )]
    };
    let answer = check(one(10.0, 40.0), one(30.0, 80.0), "5%");
    let mut found = statuses(&answer);
    found.sort_by_key(|(measure, operator, _)| (*measure as u8, operator.is_some()));
    assert_eq!(found[0], (Measure::Wall, None, Status::NotShown));
    assert_eq!(found[1], (Measure::Cpu, None, Status::Regression));
    assert!(
        answer
            .notes
            .iter()
            .any(|note| note.contains("by samples only"))
    );
    // Of few samples, the same change may be chance.
    let little = check(
        vec![query("q", vec![run(0, 1.0, &[(0.05, 9), (0.05, 9)], None)])],
        vec![query("q", vec![run(1, 1.0, &[(0.05, 9), (0.1, 9)], None)])],
        "5%",
    );
    assert!(!little.failed);
    assert!(little.count(Status::NotShown).0 > 0);
    // Runs before that differ by more than sampling does count for the run now too.
    let spread = |factor: f64| run(factor as i64, 9.0, &[(40.0 * factor, 9), (40.0, 9)], None);
    let wide = [0.7, 1.0, 1.3, 0.8, 1.2].map(spread).to_vec();
    let answer = check(vec![query("q", wide)], one(9.0, 80.0), "5%");
    let cpu = answer.queries[0]
        .comparisons
        .iter()
        .find(|of| of.measure == Measure::Cpu);
    assert_eq!(cpu.map(|of| of.status), Some(Status::NotShown));
}

#[test]
fn a_query_that_fails_now_fails_the_check() {
    let failed = |mut runs: Vec<Run>| {
        runs[2].error = Some("java.lang.OutOfMemoryError".to_owned());
        runs
    };
    let good = || steady(0, 30.0, 40.0, 1000);
    let answer = check(
        vec![query("q", good())],
        vec![query("q", failed(good()))],
        "5%",
    );
    assert!(answer.failed && answer.queries[0].status == Status::Failed);
    assert!(render(&answer, 20).contains("java.lang.OutOfMemoryError"));
    let before_too = check(
        vec![query("q", failed(good()))],
        vec![query("q", failed(good()))],
        "5%",
    );
    assert!(!before_too.failed);
    assert!(
        before_too
            .notes
            .iter()
            .any(|note| note.contains("failed before too: q"))
    );
}

#[test]
fn queries_are_matched_by_plan_then_by_a_unique_description_and_the_rest_is_listed() {
    let of = |name: &str, plan: &str| QueryRuns {
        fingerprint: plan.to_owned(),
        ..query(name, steady(0, 30.0, 40.0, 1000))
    };
    let answer = check(
        vec![of("a", "1"), of("b", "2"), of("gone", "3")],
        vec![of("a", "1"), of("b", "22"), of("new", "4")],
        "5%",
    );
    let pairs: Vec<_> = answer
        .queries
        .iter()
        .map(|query| (&*query.fingerprint_before, &*query.fingerprint))
        .collect();
    assert_eq!(pairs, [("1", "1"), ("2", "22")]);
    // Rows of another plan are not those of the same data.
    assert!(
        answer.queries[1]
            .comparisons
            .iter()
            .any(|of| of.measure == Measure::Wall && of.ns_per_row.is_none())
    );
    assert_eq!(
        (&*answer.only_before[0].name, &*answer.only_now[0].name),
        ("gone", "new")
    );
    let none = Answer::from_profiles(
        &profile("new", vec![of("a", "1")]),
        &profile("old", vec![of("b", "2")]),
        question("5%"),
    );
    let error = none.expect_err("nothing in common").to_string();
    assert!(
        error.contains("no query in common") && error.contains("unfuse history --in new old"),
        "{error}"
    );
}

#[test]
fn time_that_may_be_of_another_operator_is_in_the_range() {
    let before = || vec![query("q", steady(0, 30.0, 40.0, 1000))];
    let with = |least: f64| {
        let mut runs = steady(9, 30.0, 80.0, 1000);
        for run in &mut runs {
            let ns = run.operators[1].cpu_ns;
            run.operators[1].possible_ns = [(ns as f64 * least) as u64, ns];
        }
        let answer = check(before(), vec![query("q", runs)], "5%");
        let found = statuses(&answer);
        found
            .iter()
            .find(|of| of.1 == Some("Operator1 (1)"))
            .map(|of| of.2)
    };
    assert_eq!(with(0.9), Some(Status::Regression));
    assert_eq!(with(0.5), Some(Status::NotShown));
}

/// Twenty queries of eight operators with 1 to 60 s of CPU time each. Runs differ by 3%, of which a part is common to all
/// operators; each operator's CPU time also by 3%, and by sampling. One operator takes `factor` as long.
fn pipeline(random: &mut Random, runs: i64, noise: f64, factor: f64) -> Vec<QueryRuns> {
    let of_query = |number: i64, random: &mut Random| {
        let runs = (0..runs).map(|at| {
            let common = (noise * random.normal()).exp();
            let operators: Vec<(f64, i64)> = (0..8)
                .map(|operator| {
                    let planted = if (number, operator) == (7, 3) {
                        factor
                    } else {
                        1.0
                    };
                    let cpu_s = [1.0, 2.0, 5.0, 60.0, 10.0, 20.0, 30.0, 60.0][operator];
                    let own = (noise * random.normal()).exp();
                    (cpu_s * planted * common * own, 1000)
                })
                .collect();
            let wall_s = 100.0 * common * (noise * random.normal()).exp();
            run(100 * number + at, wall_s, &operators, Some(random))
        });
        query(&format!("q{number}"), runs.collect())
    };
    (0..20).map(|number| of_query(number, random)).collect()
}

/// With a limit of 0%, every false alarm is chance alone. They are to be in at most 5% of the checks; the limit here leaves
/// room for the chance of this test.
#[test]
fn chance_rarely_fails_a_check() {
    const TRIALS: usize = 200;
    for (runs_before, runs_now, noise) in [(5, 5, 0.03), (3, 3, 0.03), (8, 1, 0.03), (1, 1, 0.0)] {
        let mut random = Random(runs_before as u64);
        let mut alarms = 0;
        for _ in 0..TRIALS {
            let before = pipeline(&mut random, runs_before, noise, 1.0);
            let now = pipeline(&mut random, runs_now, noise, 1.0);
            alarms += usize::from(check(before, now, "0%").failed);
        }
        assert!(
            alarms <= 18,
            "{runs_before} and {runs_now} runs: {alarms} of {TRIALS} checks fail"
        );
    }
}

#[test]
fn a_slower_operator_is_nearly_always_found() {
    let mut random = Random(1);
    let (mut found, mut others) = (0, 0);
    for _ in 0..100 {
        let before = pipeline(&mut random, 5, 0.01, 1.0);
        let now = pipeline(&mut random, 5, 0.01, 1.2);
        let answer = check(before, now, "5%");
        for query in &answer.queries {
            for of in query
                .comparisons
                .iter()
                .filter(|of| of.status == Status::Regression)
            {
                let is_planted =
                    query.name == "q7" && of.operator.as_deref() == Some("Operator3 (3)");
                found += usize::from(is_planted);
                others += usize::from(!is_planted);
            }
        }
    }
    assert!(found >= 90, "found in {found} of 100 checks");
    assert!(others <= 5, "{others} others");
}

#[test]
fn a_baseline_keeps_the_last_runs_of_queries_that_did_not_become_slower() {
    let home = tempfile::tempdir().expect("a directory");
    let path = home.path().join("baseline");
    let of = |runs: Vec<Run>| {
        let query = query("q", runs);
        let application_key = Some(query.application.clone());
        profile(
            "new",
            vec![QueryRuns {
                application_key,
                ..query
            }],
        )
    };
    let first = of(steady(0, 30.0, 40.0, 1000));
    let missing = Baseline::read(&path, &first, false).expect_err("no baseline");
    assert!(missing.to_string().contains("--update"), "{missing}");
    let update = |now: &ProfileRuns| {
        let baseline = Baseline::read(&path, now, true).expect("a baseline");
        let answer =
            Answer::from_baseline(now, &baseline, question("5%"), true).expect("an answer");
        let updated = baseline.update(now, &answer).expect("updated");
        let kept = baseline.kept(&answer);
        (answer, updated, kept)
    };
    let (answer, updated, _) = update(&first);
    assert!(answer.queries.is_empty() && !answer.failed && updated == 1);
    // Its own runs are nothing to compare with, and do not count twice.
    assert!(update(&first).0.queries.is_empty());
    for number in 1..10 {
        let (answer, _, _) = update(&of(steady(10 * number, 30.0, 40.0, 1000)));
        let expected = usize::try_from(3 * number).expect("small").min(20);
        assert_eq!(
            (answer.failed, answer.queries[0].runs_before),
            (false, expected)
        );
    }
    let (answer, updated, kept) = update(&of(steady(990, 60.0, 40.0, 1000)));
    assert!(answer.failed && updated == 0);
    let [file] = &kept[..] else {
        panic!("{kept:?}")
    };
    std::fs::write(file, "{}").expect("written");
    let damaged = Baseline::read(&path, &first, false).expect_err("a damaged file");
    assert!(damaged.to_string().contains("remove it"), "{damaged}");
}

#[test]
fn names_are_plain_text_in_every_form() {
    let name = "</testcase>|`@team` #1 \u{1b}[2J\u{0}\u{fffe}]]> \"&<b>";
    let broken = |mut runs: Vec<Run>| {
        runs[0].error = Some(name.to_owned());
        runs
    };
    let of = |runs| vec![query(name, runs)];
    let answer = check(
        of(steady(0, 30.0, 40.0, 1000)),
        of(broken(steady(0, 60.0, 40.0, 1000))),
        "5%",
    );
    let xml = junit(&answer);
    assert!(
        xml.chars()
            .all(|c| c == '\n' || !c.is_control() && c != '\u{fffe}'),
        "{xml}"
    );
    assert_eq!(xml.matches("</testcase>").count(), 1, "{xml}");
    let markdown = markdown(&answer, 20);
    for line in markdown.lines().filter(|line| line.starts_with("| **")) {
        assert_eq!(line.matches('|').count(), 8, "{line}");
        assert!(
            !line.contains("<b>") && !line.contains('`') && !line.contains('@'),
            "{line}"
        );
    }
}
