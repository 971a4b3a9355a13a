//! Table 1: a known culprit runs beside the victim. Does
//! `unfuse blame` find it, and do simpler methods?

use std::fmt::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use unfuse_contention::{Culprit, KnownProcess, Span};

use super::judge::{RecordedWorkload, Verdict};
use super::scenario::{
    CULPRIT, Case, Reader, VICTIM, VICTIMS_BEFORE, forget, large_file, users, warm_up,
};
use super::server::{Server, Times};
use super::{Contention, MEASURES, heartbeat};
use crate::page::{Figure, Measuring};
use crate::spark::{Spark, Tool};
use crate::stats;

/// A short heartbeat, so that rows of longer ones can be computed from these.
const HEARTBEAT: &str = "rate=200,heartbeat=100ms";
/// Heartbeats to compare, s.
const COARSER: [f64; 5] = [0.5, 1.0, 2.0, 5.0, 10.0];

/// One run of a case.
struct Outcome {
    case: Case,
    run: u32,
    /// The victim's time without and with the culprit, s.
    without_s: f64,
    with_s: f64,
    verdict: Verdict,
    /// Statements of other users that failed, in both runs.
    failed: usize,
    /// The share of the victim's waits that is attributed to the
    /// same kind of culprit in the control run.
    in_control: f64,
}

/// Mean distances of the DORs for each of [`COARSER`]: without
/// and with cuts at starts and ends of tasks.
type Distances = Vec<[f64; 2]>;

/// Runs all cases and writes `contention-cases.md`.
pub fn measure(asked: &Contention, spark: &Spark, results: &Path) -> Result<()> {
    let page = Measuring::begin(results, "contention-cases", &MEASURES)?;
    let bar = ProgressBar::new(u64::from(asked.runs) * 2 * asked.cases.len() as u64).with_style(
        ProgressStyle::with_template("[{bar:24}] {pos} of {len} runs, {msg}, {elapsed}")?,
    );
    let (mut outcomes, mut distances) = (Vec::new(), Vec::new());
    let mut failed = Vec::new();
    for run in 0..asked.runs {
        for case in asked.cases.iter().copied() {
            // A run that fails must not discard hours of other runs.
            let mut measured = || -> Result<()> {
                let (control, with) = both(asked, spark, case, run, &bar)?;
                outcomes.push(judge(case, run, &control, &with)?);
                if case == Case::CpuInternal {
                    distances.push(coarse(&with.recorded)?);
                }
                Ok(())
            };
            if let Err(e) = measured() {
                failed.push(format!("{}: {e:#}", case.name()));
            }
        }
    }
    bar.finish_and_clear();
    let body = body(asked, &outcomes, &distances);
    page.finish(asked.runs, figures(&asked.cases, &outcomes), &body)?;
    if !failed.is_empty() {
        bail!("not measured: {}", failed.join("; "));
    }
    Ok(())
}

/// Runs a case without and with the culprit. Their order alternates between runs.
fn both(
    asked: &Contention,
    spark: &Spark,
    case: Case,
    run: u32,
    bar: &ProgressBar,
) -> Result<(Ran, Ran)> {
    let one = |induced| one(asked, spark, case, run, induced, bar);
    if run.is_multiple_of(2) {
        let control = one(false)?;
        Ok((control, one(true)?))
    } else {
        let with = one(true)?;
        Ok((one(false)?, with))
    }
}

/// A finished run.
struct Ran {
    recorded: RecordedWorkload,
    times: Times,
    failed: usize,
}

fn one(
    asked: &Contention,
    spark: &Spark,
    case: Case,
    run: u32,
    induced: bool,
    bar: &ProgressBar,
) -> Result<Ran> {
    bar.set_message(format!(
        "{} {} culprit",
        case.name(),
        if induced { "with" } else { "without" }
    ));
    let queries = spark.queries_of_data()?;
    let seed = asked.seed + u64::from(run);
    let culprit = induced.then_some(case);
    let users = users(
        &queries,
        &asked.victim,
        asked.queries,
        asked.think,
        seed,
        culprit,
    )?;
    // A cached table only slows the victim down if memory is scarce.
    let heap = if case == Case::MemInternal {
        "1g"
    } else {
        "2g"
    };
    let tool = Tool::Unfuse(HEARTBEAT.to_owned(), Vec::new());
    let server = Server::start(spark, &tool, asked.slots, heap)?;
    // A query that fails here is counted when it fails again.
    server.run_what_can(&[warm_up(&queries, &asked.victim, &users)], |_| Ok(()))?;
    let file = match case {
        Case::IoExternal => Some(large_file(spark.scratch())?),
        _ => None,
    };
    let over = AtomicBool::new(false);
    let mut reader = None;
    let (times, failed) = std::thread::scope(|scope| {
        if case == Case::IoExternal {
            // Otherwise all data would be in the page cache, and no query would read the disk.
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let _ = forget(spark.data());
                    std::thread::sleep(Duration::from_millis(100));
                }
            });
        }
        let times = server.run_what_can(&users, |started| {
            if let Some(file) = file.as_deref().filter(|_| induced && started == VICTIM) {
                reader = Some(Reader::start(file)?);
            }
            Ok(())
        });
        over.store(true, Ordering::Relaxed);
        times
    })?;
    if let Some(reader) = reader {
        reader.stop()?;
    }
    if failed.iter().any(|name| name == VICTIM || name == CULPRIT) {
        bail!("failed: {}", failed.join(", "));
    }
    let profile = server.stop()?;
    bar.inc(1);
    Ok(Ran {
        recorded: RecordedWorkload::open(&profile)?,
        times,
        failed: failed.len(),
    })
}

fn judge(case: Case, run: u32, control: &Ran, with: &Ran) -> Result<Outcome> {
    let time = |ran: &Ran| ran.times.get(VICTIM).copied().context("the victim ran");
    let (before, after) = (time(control)?, time(with)?);
    let culprit = |recorded: &RecordedWorkload| -> Result<Culprit> {
        Ok(match case {
            // Read by `dd`, which has a name unless it read almost nothing.
            Case::IoExternal => {
                Culprit::Known(recorded.process("dd").unwrap_or(KnownProcess::ExternalIo))
            }
            _ => Culprit::Query(recorded.query(CULPRIT)?),
        })
    };
    // The window is the victim's time. For a query that may end
    // earlier, it is the time in which both run.
    let window = match (case, with.times.get(CULPRIT)) {
        (Case::CpuInternal, Some(culprit)) => after.intersection(*culprit),
        _ => Some(after),
    };
    let Some(window) = window else {
        bail!("{}: culprit and victim did not meet", case.name());
    };
    let verdict = |ran: &Ran, culprit, window: Span| -> Result<Verdict> {
        let victim = ran.recorded.query(VICTIM)?;
        Ok(ran
            .recorded
            .verdict(victim, culprit, case.resource(), window))
    };
    let in_control = match case {
        Case::IoExternal => verdict(control, culprit(&control.recorded)?, before)?.share_of_all,
        // The control run has no such query.
        _ => 0.0,
    };
    Ok(Outcome {
        case,
        run,
        without_s: before.seconds(),
        with_s: after.seconds(),
        failed: control.failed + with.failed,
        verdict: verdict(with, culprit(&with.recorded)?, window)?,
        in_control,
    })
}

/// In how many runs blame ranks the induced culprit first for its
/// resource, and how much it slows the victim down.
fn figures(cases: &[Case], outcomes: &[Outcome]) -> Vec<Figure> {
    let share = |name: &str, what: &str, case: Option<Case>| {
        let of_case = || {
            outcomes
                .iter()
                .filter(|one| case.is_none_or(|case| one.case == case))
        };
        let first = of_case().filter(|one| one.verdict.place == Some(1)).count();
        let what = format!(
            "runs in which the induced culprit is first for its resource: {what} ({first} of {})",
            of_case().count()
        );
        let percent = 100.0 * first as f64 / of_case().count().max(1) as f64;
        Figure::new(name, &what, percent, "%", 0).exact()
    };
    let mut figures = vec![share("first", "all cases", None)];
    let named = cases
        .iter()
        .map(|case| (crate::page::slug(case.name()), *case));
    figures.extend(
        named
            .clone()
            .map(|(name, case)| share(&format!("first_{name}"), case.name(), Some(case))),
    );
    for (name, case) in named {
        let runs = outcomes.iter().filter(|one| one.case == case);
        let logs: Vec<f64> = runs.map(|one| (one.with_s / one.without_s).ln()).collect();
        let what = format!("victim's time with the culprit ÷ without: {}", case.name());
        figures.push(Figure::from_logs(&format!("slower_{name}"), &what, &logs));
    }
    figures
}

fn coarse(recorded: &RecordedWorkload) -> Result<Distances> {
    let tables = recorded.workload.tables();
    let distance = |seconds: &f64, at_tasks| {
        let distance = heartbeat::distance(tables, (seconds * 1e9) as i64, at_tasks)?;
        anyhow::Ok(distance)
    };
    COARSER
        .iter()
        .map(|seconds| Ok([distance(seconds, false)?, distance(seconds, true)?]))
        .collect()
}

fn leaders(verdict: &Verdict) -> String {
    let leaders = verdict.leaders.iter();
    let named = leaders.map(|(name, share)| format!("{name} {:.0}%", 100.0 * share));
    named.collect::<Vec<String>>().join(", ")
}

fn body(asked: &Contention, outcomes: &[Outcome], distances: &[Distances]) -> String {
    let place =
        |place: Option<usize>| place.map_or_else(|| "-".to_owned(), |rank| rank.to_string());
    let mut body = format!(
        "Six users with {} random queries each, who wait before each for {} s in the mean, on a Thrift server of Spark 4.3 (TPC-DS \
         SF {}, local[{}], a fair pool for each user); the victim, {}, is the first user's second query. Before, the server has run every query of the users once and the victim {} times, so that the \
         JVM has compiled most of what they run. Each case has one server for the run with the culprit and another one for the run without, with the same queries; the order changes from run to run. Places are those among \
         all that is blamed or overlaps in the time in which culprit and victim met. `-`: not named.\n\n\
         | case | run | victim without culprit, s | with, s | ratio | blame for its resource: place | share | most blamed for it | all resources: place | share | \
         share in the control run | by overlap of queries: place | of tasks: place | others' queries that failed |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
        asked.queries, asked.think, asked.scale, asked.slots, asked.victim, VICTIMS_BEFORE
    );
    for outcome in outcomes {
        let v = &outcome.verdict;
        let _ = writeln!(
            body,
            "| {} | {} | {:.2} | {:.2} | {:.2} | {} | {:.0}% | {} | {} | {:.0}% | {:.0}% | {} | {} | {} |",
            outcome.case.name(),
            outcome.run + 1,
            outcome.without_s,
            outcome.with_s,
            outcome.with_s / outcome.without_s,
            place(v.place),
            100.0 * v.share,
            leaders(v),
            place(v.place_of_all),
            100.0 * v.share_of_all,
            100.0 * outcome.in_control,
            place(v.by_queries),
            place(v.by_tasks),
            outcome.failed,
        );
    }
    if distances.is_empty() {
        return body;
    }
    body += "\n## Heartbeats (figure 13)\n\nThe runs of CPU-Internal again, with their rows (recorded at 100 ms and wherever a task of the \
             host starts or ends) put together to coarser ones: mean distance (Euclid's) of the DORs of all victims from those \
             of the rows as recorded. Sums of a run stay the same, so nothing else differs.\n\n\
             | heartbeat, s | at heartbeats only | and at starts and ends of tasks |\n|---|---|---|\n";
    for (index, seconds) in COARSER.iter().enumerate() {
        let of = |which: usize| {
            let values: Vec<f64> = distances.iter().map(|run| run[index][which]).collect();
            let (mean, half) = stats::mean_and_half_width(&values);
            match half.is_finite() {
                true => format!("{mean:.3} ± {half:.3}"),
                false => format!("{mean:.3}"),
            }
        };
        let _ = writeln!(body, "| {seconds} | {} | {} |", of(0), of(1));
    }
    body
}
