//! Completion time: how far both models are from runs that they were not fitted to.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use unfuse_sizing::{Given, Logs, Model, Point, Profile, Range, Run, read};
use unfuse_toolkit::run;

use crate::report;
use crate::spark::{Spark, Tool};

/// Completion time of jobs over slots, size and iterations: error of predictions for runs that were not fitted
#[derive(Debug, Args)]
pub struct Sizing {
    /// No run is started after so many minutes; what is there is reported
    #[arg(long, default_value_t = 14)]
    minutes: u64,
    /// A directory to keep the event logs in (one below it for each job); what is there already is not run again
    #[arg(long, value_name = "DIR")]
    logs: Option<PathBuf>,
}

/// Runs of the first point that is held out: how far they are apart is what no prediction can know.
const REPEATED: usize = 3;

/// A job of assets/sizing.py, with its runs: slots, size, iterations.
struct Job {
    name: &'static str,
    /// What it does.
    about: &'static str,
    fitted: &'static [[u32; 3]],
    held_out: &'static [[u32; 3]],
}

/// Runs are in an order that mixes all three, so that what else the machine does is not taken for one of them.
const JOBS: [Job; 2] = [
    Job {
        name: "waiting",
        about: "tasks that wait as for a service, every seventh four times as long; slots beyond the machine's cores are as good as others",
        fitted: &[
            [4, 1, 2],
            [8, 4, 6],
            [2, 4, 2],
            [4, 4, 6],
            [2, 1, 6],
            [8, 1, 2],
            [8, 1, 6],
            [2, 4, 6],
            [4, 1, 6],
            [2, 1, 2],
            [8, 4, 2],
            [4, 4, 2],
        ],
        held_out: &[[4, 2, 4], [6, 2, 3], [3, 3, 4], [6, 4, 5]],
    },
    Job {
        name: "query",
        about: "a query with a join and two aggregations over TPC-H's lineitem, over and over; its tasks want a CPU each",
        fitted: &[
            [1, 4, 1],
            [2, 16, 4],
            [2, 4, 4],
            [1, 16, 1],
            [2, 16, 1],
            [1, 4, 4],
            [1, 16, 4],
            [2, 4, 1],
        ],
        held_out: &[[2, 8, 2], [1, 8, 3], [4, 16, 2], [4, 4, 2]],
    },
];

impl Sizing {
    /// Measures and writes `sizing.md`.
    pub fn measure(&self, results: &Path) -> Result<()> {
        let spark = Spark::install("1")?;
        let begun = Instant::now();
        let logs = self
            .logs
            .clone()
            .unwrap_or_else(|| spark.scratch().join("logs"));
        let parts = spark.scratch().join("parts");
        let mut body = String::from(
            "Each job ran at the points of a design over task slots (`local[N]`), size and iterations, in mixed order; eight or twelve were fitted, the others are \
             predicted. The machine's cores bound what `local[N]` can show: with more slots than cores, tasks that want a CPU share the cores. \
             Errors are |T_Est − T_Rec| / T_Rec.\n\n\
             | job | fitted | held out | model | error of the fit | of the fitted, each held out in turn | of the held out: mean | worst | mean after the preparation | in the 95 % interval |\n\
             |---|---|---|---|---|---|---|---|---|---|\n",
        );
        let mut details = String::new();
        for job in &JOBS {
            let dir = logs.join(job.name);
            let before = logs_of(&dir)?.runs;
            for point in job.fitted.iter().chain(job.held_out) {
                let wanted = if Some(point) == job.held_out.first() {
                    REPEATED
                } else {
                    1
                };
                let there = before.iter().filter(|run| is_at(run, *point)).count();
                for _ in there..wanted {
                    if begun.elapsed() < Duration::from_secs(60 * self.minutes) {
                        self.run(&spark, job, *point, &parts, &dir)?;
                    }
                }
            }
            tell(job, logs_of(&dir)?, &mut body, &mut details)?;
        }
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let load = load.split(' ').nth(2).unwrap_or("unknown");
        let body = format!(
            "{body}\nThe machine's load average was {load} when this ended: what is beyond its cores is other work, which made the runs differ.\n\n{details}"
        );
        let command = match self.logs {
            Some(_) => "unfuse-bench sizing --logs DIR",
            None => "unfuse-bench sizing",
        };
        report::write(results, "sizing", command, &body)
    }

    fn run(
        &self,
        spark: &Spark,
        job: &Job,
        [slots, size, iterations]: [u32; 3],
        parts: &Path,
        dir: &Path,
    ) -> Result<()> {
        fs::create_dir_all(dir)?;
        let script = spark.scratch().join("sizing.py");
        fs::write(&script, include_str!("../assets/sizing.py"))?;
        let submit = || {
            let mut command = spark.submit(&Tool::None, spark.scratch());
            command.args(["--driver-memory", "2g"]);
            for setting in [
                "spark.ui.enabled=false",
                "spark.log.level=ERROR",
                "spark.sql.shuffle.partitions=8",
            ] {
                command.args(["--conf", setting]);
            }
            command
        };
        if job.name == "query" && !parts.exists() {
            let table = spark.data().join("lineitem.parquet");
            run(submit()
                .args(["--master", "local[2]"])
                .arg(&script)
                .arg("split")
                .arg(table)
                .arg(parts))?;
        }
        let mut command = submit();
        command.arg("--master").arg(format!("local[{slots}]"));
        let settings = [
            "spark.eventLog.enabled=true".to_owned(),
            format!(
                "spark.eventLog.dir=file://{}",
                fs::canonicalize(dir)?.display()
            ),
            "spark.eventLog.rolling.enabled=false".to_owned(),
            format!("spark.unfuse.iterations={iterations}"),
            format!("spark.unfuse.bytes={size}"),
        ];
        for setting in settings {
            command.arg("--conf").arg(setting);
        }
        command
            .arg(&script)
            .arg(job.name)
            .arg(parts)
            .arg(size.to_string())
            .arg(iterations.to_string());
        run(&mut command).with_context(|| format!("{} on {slots} slots", job.name))
    }
}

fn logs_of(dir: &Path) -> Result<Logs> {
    let empty = !fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some());
    if empty {
        return Ok(Logs::default());
    }
    Ok(read(&[dir.to_owned()], &Given::default())?)
}

/// Whether a run was at a point; sizes are told to the jobs in their own units.
fn is_at(run: &Run, [slots, size, iterations]: [u32; 3]) -> bool {
    let near = |a: f64, b: u32| (a / f64::from(b) - 1.0).abs() < 0.01;
    near(run.at.slots, slots) && near(run.at.bytes, size) && near(run.at.iterations, iterations)
}

/// A job's rows, and what was predicted for each run that was held out.
fn tell(job: &Job, logs: Logs, body: &mut String, details: &mut String) -> Result<()> {
    let wanted = job.fitted.len() + job.held_out.len() + REPEATED - 1;
    let held: Vec<Run> = logs
        .runs
        .iter()
        .filter(|run| job.held_out.iter().any(|point| is_at(run, *point)))
        .cloned()
        .collect();
    let fitted = logs
        .runs
        .into_iter()
        .filter(|run| job.fitted.iter().any(|point| is_at(run, *point)));
    let _ = writeln!(details, "## {}\n\n{}.\n", job.name, job.about);
    let profile = match Profile::fit(fitted.collect()) {
        Ok(profile) => profile,
        Err(error) => {
            let _ = writeln!(details, "Nothing to tell: {error}.\n");
            return Ok(());
        }
    };
    for model in [Model::ClosedForm, Model::Replay] {
        let errors = errors(&profile, &held, model)?;
        let mean = errors.iter().map(|(error, _)| error).sum::<f64>() / errors.len().max(1) as f64;
        let worst = errors.iter().map(|(error, _)| *error).fold(0.0, f64::max);
        let after = held
            .iter()
            .map(|run| after_preparation(&profile, run, model));
        let after = after.sum::<Result<f64>>()? / held.len().max(1) as f64;
        let inside = errors.iter().filter(|(_, inside)| *inside).count();
        let in_turn = profile.validation.mean_error(model);
        let _ = writeln!(
            body,
            "| {} | {} | {} | {model}{} | {:.1} % | {} | {:.1} % | {:.1} % | {:.1} % | {inside} of {} |",
            job.name,
            profile.runs.len(),
            held.len(),
            if model == profile.model {
                " (chosen)"
            } else {
                ""
            },
            100.0 * profile.fit_error(model),
            in_turn.map_or_else(|| "-".to_owned(), |error| format!("{:.1} %", 100.0 * error)),
            100.0 * mean,
            100.0 * worst,
            100.0 * after,
            errors.len(),
        );
    }
    let repeated: Vec<f64> = held
        .iter()
        .filter(|run| job.held_out.first().is_some_and(|point| is_at(run, *point)))
        .map(|run| run.seconds)
        .collect();
    if let (Some(least), Some(most)) = (
        repeated.iter().copied().reduce(f64::min),
        repeated.iter().copied().reduce(f64::max),
    ) && repeated.len() > 1
    {
        let _ = writeln!(
            details,
            "The same run, made {} times, took {least:.1} to {most:.1} s; preparation took {} of the fitted runs.\n",
            repeated.len(),
            preparations(&profile.runs),
        );
    }
    if profile.runs.len() + held.len() < wanted {
        let _ = writeln!(
            details,
            "Only {} of its {wanted} runs were made in the time.\n",
            profile.runs.len() + held.len()
        );
    }
    details.push_str("| held out: slots | size | iterations | T_Rec, s | closed form, s | interval | replay, s | interval |\n|---|---|---|---|---|---|---|---|\n");
    for run in &held {
        let closed = profile.predict(&run.at, Some(Model::ClosedForm))?;
        let replay = profile.predict(&run.at, Some(Model::Replay))?;
        let Point {
            slots,
            iterations,
            bytes,
        } = run.at;
        let _ = writeln!(
            details,
            "| {slots:.0} | {bytes:.0} | {iterations:.0} | {:.1} | {:.1} | {:.1} to {:.1} | {:.1} | {:.1} to {:.1} |",
            run.seconds,
            closed.seconds,
            closed.low,
            closed.high,
            replay.seconds,
            replay.low,
            replay.high
        );
    }
    details.push('\n');
    Ok(())
}

/// The shortest and longest preparation.
fn preparations(runs: &[Run]) -> String {
    let range = Range::of(runs.iter().map(|run| run.phases.preparation));
    format!("{:.1} to {:.1} s", range.least, range.most)
}

/// Relative error of a prediction for what follows the preparation, which on a machine with other work to do is the most uncertain.
fn after_preparation(profile: &Profile, run: &Run, model: Model) -> Result<f64> {
    let found = profile.predict(&run.at, Some(model))?.seconds - profile.closed.preparation;
    Ok((found / (run.seconds - run.phases.preparation) - 1.0).abs())
}

/// Relative error of each prediction, and whether the interval has the truth.
fn errors(profile: &Profile, held: &[Run], model: Model) -> Result<Vec<(f64, bool)>> {
    let of = |run: &Run| {
        let found = profile.predict(&run.at, Some(model))?;
        let inside = (found.low..=found.high).contains(&run.seconds);
        Ok(((found.seconds / run.seconds - 1.0).abs(), inside))
    };
    held.iter().map(of).collect()
}
