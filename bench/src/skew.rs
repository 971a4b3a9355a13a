//! Whether known slow records are found: PerfDebug's experiments (RQ2, RQ3).

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;
use unfuse_machine::said;

use crate::page::{Figure, Measuring};
use crate::random::Random;
use crate::session::complete;
use crate::spark::{Spark, Tool};
use crate::stats;

/// Records that take longer, put into programs at random, and how they are found
#[derive(Debug, Args)]
pub struct Skew {
    /// Trials of each program
    #[arg(long, default_value_t = 10)]
    pub trials: u32,
    /// Lines of each input
    #[arg(long, default_value_t = 1_000_000)]
    pub lines: u64,
    /// Where random choices begin
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// The longest extra time of a slow record, ms; the shortest is 1 s.
const LONGEST: u64 = 4000;

/// One trial of a program.
struct Trial {
    /// Whether the expensive input of the slowest result is the slow record.
    by_result: bool,
    /// Whether the first of the slow records is the slow record.
    by_time: bool,
    /// Number of inputs of the slowest result. Provenance alone cannot choose among them.
    lineage: f64,
    /// Time with records followed ÷ time of Spark alone, both without a slow record.
    followed: Ratio,
    /// The same with only tasks recorded, which is enough to detect skew.
    detected: Ratio,
    /// Time of `unfuse skew` on the run with a slow record, s.
    answer_s: f64,
}

/// Times of a run, or ratios of the times of two runs.
#[derive(Debug, Clone, Copy)]
struct Ratio {
    /// From the start of `spark-submit` until it has ended and no process writes to the profile.
    whole: f64,
    /// The job inside Spark.
    job: f64,
}

const MEASURES: [&str; 5] = [
    "spark-patches/src",
    "profiler",
    "jvmti-agent/src",
    "analysis/provenance/src",
    "analysis/skew/src",
];
const PROGRAMS: [&str; 4] = ["movies", "students", "weather", "taxi"];

impl Skew {
    /// Runs the trials and writes `skew.md`.
    pub fn measure(&self, results: &Path) -> Result<()> {
        if self.trials == 0 || self.lines < 1000 {
            bail!("--trials must be at least 1, --lines at least 1000");
        }
        let page = Measuring::begin(results, "skew", &MEASURES)?;
        let spark = Spark::install("1")?;
        let classes = spark.scratch().join("classes");
        fs::create_dir(&classes)?;
        let program = ("Skewed.java", include_str!("../assets/Skewed.java"));
        spark.compile(&[program], &classes)?;
        let bar = ProgressBar::new(u64::from(self.trials) * PROGRAMS.len() as u64).with_style(
            ProgressStyle::with_template("[{bar:24}] {pos} of {len} trials, {msg}, {elapsed}")?,
        );
        let mut random = Random(self.seed);
        let mut body = format!(
            "{} trials of each program on {} lines, local[2], Spark 4.3: a line chosen at random takes 1 to {} s longer. *Found*: the \
             expensive input of the slowest result is that line; with one slow line and one answer, precision and recall of naming it \
             are both the share of trials found. *Inputs by provenance alone*: all those that the slowest result came from. Times are of runs \
             without a slow line over those of Spark alone: *whole* from the start of `spark-submit` to its end and until the profile is complete, so with starting the JVM and with making tables of what was recorded; *job* is the part inside Spark. With tasks \
             noted only (`rate=0`) is enough to detect skew. Detecting skewed stages itself is not measured here. Geometric means.\n\n\
             | program | found | first among slow records | inputs by provenance alone | records followed: whole | job | tasks noted: whole | job | `unfuse skew`, s |\n\
             |---|---|---|---|---|---|---|---|---|\n",
            self.trials,
            self.lines,
            LONGEST / 1000
        );
        let mut figures = Vec::new();
        for program in PROGRAMS {
            bar.set_message(program);
            let input = spark.scratch().join(program);
            fs::write(&input, lines(program, self.lines, &mut random))?;
            let mut trials = Vec::new();
            for number in 0..self.trials {
                trials.push(self.trial(&spark, &classes, program, &input, number, &mut random)?);
                bar.inc(1);
            }
            figures.extend(row(&mut body, program, &trials));
        }
        bar.finish_and_clear();
        page.finish(self.trials, figures, &body)
    }

    fn trial(
        &self,
        spark: &Spark,
        classes: &Path,
        program: &str,
        input: &Path,
        number: u32,
        random: &mut Random,
    ) -> Result<Trial> {
        let slow = random.below(self.lines);
        let millis = 1000 + random.below(LONGEST - 1000);
        let dir = tempfile::tempdir_in(spark.scratch())?;
        let run = |name: &str, tool: &Tool, line: &str| -> Result<Ratio> {
            let begun = Instant::now();
            let mut command = spark.submit(tool, &dir.path().join(name));
            command
                .args(["--master", "local[2]", "--driver-memory", "2g"])
                .args(["--conf", "spark.ui.enabled=false", "--class", "Skewed"])
                .arg("--driver-class-path")
                .arg(classes)
                .args(["spark-internal", program])
                .arg(input)
                .arg(dir.path().join(format!("{name}.out")))
                .args([line, &millis.to_string()]);
            let said = said(&mut command)?;
            let took = said.lines().find_map(|line| line.strip_prefix("took "));
            let took = took.context("the program says what it took")?;
            complete(dir.path().join(name))?;
            Ok(Ratio {
                whole: begun.elapsed().as_secs_f64(),
                job: took.trim().parse()?,
            })
        };
        let with = |options: &str| Tool::Unfuse(options.to_owned(), Vec::new());
        let tools = [Tool::None, with("records=on"), with("rate=0")];
        let mut took = [Ratio {
            whole: 0.0,
            job: 0.0,
        }; 3];
        // The order changes from trial to trial.
        for turn in 0..tools.len() {
            let index = (number as usize + turn) % tools.len();
            took[index] = run(&format!("run-{index}"), &tools[index], "none")?;
        }
        let [plain, followed, detected] = took;
        run("slow", &tools[1], &slow.to_string())?;
        let profile = complete(dir.path().join("slow"))?;
        let begun = Instant::now();
        let answer = spark.ask("skew", &profile, &["--top", "1"])?;
        let answer_s = begun.elapsed().as_secs_f64();
        let records = &answer["records"];
        let offset = offset(input, slow)?;
        let result = &records["slow_results"][0];
        Ok(Trial {
            by_result: result["expensive_input"]["offset"] == offset,
            by_time: records["slow_records"][0]["at"]["offset"] == offset,
            lineage: result["inputs"].as_f64().context("a result has inputs")?,
            followed: followed.over(plain),
            detected: detected.over(plain),
            answer_s,
        })
    }
}

impl Ratio {
    fn over(self, other: Self) -> Self {
        Self {
            whole: self.whole / other.whole,
            job: self.job / other.job,
        }
    }
}

/// A program's row, and its figures.
fn row(body: &mut String, program: &str, trials: &[Trial]) -> Vec<Figure> {
    let found = |of: fn(&Trial) -> bool| trials.iter().filter(|trial| of(trial)).count();
    let logs =
        |of: fn(&Trial) -> f64| -> Vec<f64> { trials.iter().map(|trial| of(trial).ln()).collect() };
    let lineage = stats::mean_and_half_width(&logs(|trial| trial.lineage)).0;
    let answers: Vec<f64> = trials.iter().map(|trial| trial.answer_s).collect();
    let times: [(&str, &str, Vec<f64>); 4] = [
        (
            "followed_whole",
            "records followed, whole run",
            logs(|trial| trial.followed.whole),
        ),
        (
            "followed",
            "records followed, job",
            logs(|trial| trial.followed.job),
        ),
        (
            "noted_whole",
            "tasks noted, whole run",
            logs(|trial| trial.detected.whole),
        ),
        (
            "noted",
            "tasks noted, job",
            logs(|trial| trial.detected.job),
        ),
    ];
    let _ = write!(
        body,
        "| {program} | {} of {count} | {} of {count} | {:.0} |",
        found(|trial| trial.by_result),
        found(|trial| trial.by_time),
        lineage.exp(),
        count = trials.len(),
    );
    for (_, _, logs) in &times {
        let _ = write!(body, " {} |", stats::geometric_text(logs));
    }
    let mean = answers.iter().sum::<f64>() / answers.len() as f64;
    let _ = writeln!(body, " {mean:.2} |");
    let of_program = |(key, what, logs): &(&str, &str, Vec<f64>)| {
        let what = format!("time with {what} ÷ Spark alone: {program}");
        Figure::from_logs(&format!("{key}_{program}"), &what, logs)
    };
    let mut figures: Vec<Figure> = times.iter().map(of_program).collect();
    let percent = 100.0 * found(|trial| trial.by_result) as f64 / trials.len() as f64;
    let what = format!("trials in which the slow line is found: {program}");
    figures.push(Figure::new(&format!("found_{program}"), &what, percent, "%", 0).exact());
    figures
}

/// The offset of a line in the file, bytes, from its number.
fn offset(input: &Path, number: u64) -> Result<Value> {
    let text = fs::read_to_string(input)?;
    let lines = text.split_inclusive('\n').take(usize::try_from(number)?);
    Ok(lines.map(str::len).sum::<usize>().into())
}

/// The input of a program; the first field of a line is its number.
fn lines(program: &str, count: u64, random: &mut Random) -> String {
    let mut text = String::new();
    for number in 0..count {
        let _ = match program {
            "movies" => writeln!(
                text,
                "{number},m{},{}",
                random.below(2000),
                1 + random.below(5)
            ),
            "students" => writeln!(
                text,
                "{number},{},{}",
                1 + random.below(4),
                random.below(101)
            ),
            "weather" => {
                let (state, year) = (random.below(50), 1990 + random.below(30));
                let (month, day) = (1 + random.below(12), 1 + random.below(28));
                let (amount, unit) = (random.below(500), ["mm", "ft"][random.below(2) as usize]);
                writeln!(
                    text,
                    "{number},s{state},{year}-{month:02}-{day:02},{amount}{unit}"
                )
            }
            // One ride in ten thousand begins outside the squares.
            _ => {
                let outside = if random.below(10_000) == 0 { 20 } else { 0 };
                let (x, y) = (outside + random.below(20), random.below(20));
                writeln!(text, "{number},{x}.5,{y}.5,{}", random.below(90))
            }
        };
    }
    text
}
