//! Completion time: the errors of both models for runs that they were not fitted to.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use unfuse_machine::run;
use unfuse_sizing::{GivenValues, Logs, Model, Point, Profile, Range, Run, read};

use crate::page::{Figure, Measuring, slug};
use crate::spark::{Spark, Tool};
use crate::stats;

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

/// Runs of the first held-out point. No prediction can be more exact than their spread.
const REPEATED: usize = 3;

/// A job of assets/sizing.py, with its runs: slots, size, iterations.
struct Job {
    name: &'static str,
    /// A description of its work.
    about: &'static str,
    fitted: &'static [[u32; 3]],
    held_out: &'static [[u32; 3]],
}

/// The order of the runs mixes slots, size and iterations, so that other work of the
/// machine does not look like an effect of one.
const JOBS: [Job; 2] = [
    Job {
        name: "waiting",
        about: "tasks that wait as for a service, every seventh four times as long; slots beyond the machine's cores work as well as others",
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
        about: "a query with a join and two aggregations over TPC-H's lineitem, repeated; each of its tasks needs a CPU",
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
        let page = Measuring::begin(
            results,
            "sizing",
            &["analysis/sizing/src", "analysis/eventlog/src"],
        )?;
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
             | job | fitted | held out | model | error of the fit | of the fitted, each held out in turn | of the held out: mean over runs | mean over points | worst | mean after the preparation | in the 95 % interval | its width ÷ T_Rec |\n\
             |---|---|---|---|---|---|---|---|---|---|---|---|\n",
        );
        let (mut details, mut figures) = (String::new(), Vec::new());
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
            figures.extend(tell(job, logs_of(&dir)?, &mut body, &mut details)?);
        }
        page.finish(1, figures, &format!("{body}\n{details}"))
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
    Ok(read(&[dir.to_owned()], &GivenValues::default())?)
}

/// Whether a run was made at a point. Each job has its own unit of size.
fn is_at(run: &Run, [slots, size, iterations]: [u32; 3]) -> bool {
    let near = |a: f64, b: u32| (a / f64::from(b) - 1.0).abs() < 0.01;
    near(run.at.slots, slots) && near(run.at.bytes, size) && near(run.at.iterations, iterations)
}

/// Adds a job's rows, and the predictions for each held-out run. Returns the figures.
fn tell(job: &Job, logs: Logs, body: &mut String, details: &mut String) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
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
            return Ok(figures);
        }
    };
    for model in [Model::ClosedForm, Model::Replay] {
        let errors = errors(&profile, &held, model)?;
        let by_point = by_point(job, &held, &errors);
        figures.extend(figures_of(job, &profile, model, &by_point));
        let of =
            |of: fn(&Guess) -> f64| errors.iter().map(of).sum::<f64>() / errors.len().max(1) as f64;
        let worst = errors.iter().map(|guess| guess.error).fold(0.0, f64::max);
        let inside = errors.iter().filter(|guess| guess.inside).count();
        let in_turn = profile.validation.mean_error(model);
        let _ = writeln!(
            body,
            "| {} | {} | {} | {model}{} | {:.1}% | {} | {:.1}% | {:.1}% | {:.1}% | {:.1}% | {inside} of {} | {:.2} |",
            job.name,
            profile.runs.len(),
            held.len(),
            if model == profile.model {
                " (chosen)"
            } else {
                ""
            },
            100.0 * profile.fit_error(model),
            in_turn.map_or_else(|| "-".to_owned(), |error| format!("{:.1}%", 100.0 * error)),
            100.0 * of(|guess| guess.error),
            stats::mean_and_half_width(&by_point).0,
            100.0 * worst,
            100.0 * of(|guess| guess.after),
            errors.len(),
            of(|guess| guess.width),
        );
    }
    tell_repeated(job, &profile, &held, details);
    if profile.runs.len() + held.len() < wanted {
        let _ = writeln!(
            details,
            "Only {} of its {wanted} runs were made in the time.\n",
            profile.runs.len() + held.len()
        );
    }
    tell_held_out(&profile, &held, details)?;
    details.push('\n');
    Ok(figures)
}

/// Adds the spread of the run that was repeated.
fn tell_repeated(job: &Job, profile: &Profile, held: &[Run], details: &mut String) {
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
}

/// Adds a row for each held-out run, with the predictions of both models.
fn tell_held_out(profile: &Profile, held: &[Run], details: &mut String) -> Result<()> {
    details.push_str("| held out: slots | size | iterations | T_Rec, s | closed form, s | interval | replay, s | interval |\n|---|---|---|---|---|---|---|---|\n");
    for run in held {
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
    Ok(())
}

/// The shortest and longest preparation.
fn preparations(runs: &[Run]) -> String {
    let range = Range::from_values(runs.iter().map(|run| run.phases.preparation));
    format!("{:.1} to {:.1} s", range.least, range.most)
}

/// The quality of a prediction for a held-out run, relative to the run's time.
struct Guess {
    error: f64,
    /// The error of the time after the preparation. On a busy machine the preparation is the most uncertain part.
    after: f64,
    /// Whether the interval contains the run's time, and the width of the interval.
    inside: bool,
    width: f64,
}

fn errors(profile: &Profile, held: &[Run], model: Model) -> Result<Vec<Guess>> {
    let preparation = profile.closed.preparation;
    let of = |run: &Run| {
        let found = profile.predict(&run.at, Some(model))?;
        let after = (found.seconds - preparation) / (run.seconds - run.phases.preparation);
        Ok(Guess {
            error: (found.seconds / run.seconds - 1.0).abs(),
            after: (after - 1.0).abs(),
            inside: (found.low..=found.high).contains(&run.seconds),
            width: (found.high - found.low) / run.seconds,
        })
    };
    held.iter().map(of).collect()
}

/// The mean error over the runs of each held-out point, %. Repeating an easy point must not improve the mean.
fn by_point(job: &Job, held: &[Run], errors: &[Guess]) -> Vec<f64> {
    let at = |point: [u32; 3]| -> Vec<f64> {
        let both = held.iter().zip(errors);
        both.filter(|(run, _)| is_at(run, point))
            .map(|(_, guess)| 100.0 * guess.error)
            .collect()
    };
    let points = job.held_out.iter().map(|point| at(*point));
    points
        .filter(|errors| !errors.is_empty())
        .map(|errors| stats::mean_and_half_width(&errors).0)
        .collect()
}

/// The error of a model. The model that cross-validation chose gets a second figure.
fn figures_of(job: &Job, profile: &Profile, model: Model, by_point: &[f64]) -> Vec<Figure> {
    let figure = |key: &str, what: &str| {
        Figure::from_runs(
            &format!("{key}_{}", job.name),
            &format!(
                "mean error over held-out points, job `{}`: {what}",
                job.name
            ),
            by_point,
            "%",
            1,
        )
        .not_negative()
    };
    let name = model.to_string();
    let mut figures = vec![figure(&slug(&name), &name)];
    if model == profile.model {
        figures.push(figure("chosen", "the model chosen by cross-validation"));
    }
    figures
}
