//! Which records are slow, where that is known: PerfDebug's experiments (RQ2, RQ3).

use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;
use unfuse_toolkit::said;

use crate::random::Random;
use crate::report;
use crate::session::complete;
use crate::spark::{Spark, Tool};

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

/// A record is made to take from 1 s to this, ms.
const LONGEST: u64 = 4000;

/// One trial of a program.
struct Trial {
    /// The expensive input of the slowest result is the slow record.
    by_result: bool,
    /// So is the first of the slow records.
    by_time: bool,
    /// The inputs that the slowest result came from: what provenance alone says.
    lineage: f64,
    /// Time of the job with records followed, over that without, both without a slow record.
    followed: f64,
    /// Time of the job with its tasks noted, which is enough to detect skew, over that without.
    detected: f64,
}

const PROGRAMS: [&str; 4] = ["movies", "students", "weather", "taxi"];

impl Skew {
    /// Runs the trials and writes `skew.md`.
    pub fn measure(&self, results: &Path) -> Result<()> {
        if self.trials == 0 || self.lines < 1000 {
            bail!("--trials must be at least 1, --lines at least 1000");
        }
        let spark = Spark::install("1")?;
        let classes = spark.scratch().join("classes");
        fs::create_dir(&classes)?;
        spark.compile(
            "Skewed.java",
            include_str!("../assets/Skewed.java"),
            &classes,
        )?;
        let bar = ProgressBar::new(u64::from(self.trials) * PROGRAMS.len() as u64).with_style(
            ProgressStyle::with_template("[{bar:24}] {pos} of {len} trials, {msg}, {elapsed}")?,
        );
        let mut random = Random(self.seed);
        let mut body = format!(
            "{} trials of each program on {} lines, local[2], Spark 4.3: a line chosen at random takes 1 to {} s longer. *Found*: the \
             expensive input of the slowest result is that line, so that precision and recall of naming it are both the share of trials \
             found. *Inputs by provenance alone*: all those that the slowest result came from; precision is better by as much. Time is that of \
             the job inside Spark without a slow line, over that of Spark alone: with records followed, and with tasks noted only (`rate=0`), which \
             is enough to detect skew; geometric means and 95% confidence intervals.\n\n\
             | program | found | first among slow records | inputs by provenance alone | time with records followed | time with tasks noted |\n\
             |---|---|---|---|---|---|\n",
            self.trials,
            self.lines,
            LONGEST / 1000
        );
        for program in PROGRAMS {
            bar.set_message(program);
            let input = spark.scratch().join(program);
            fs::write(&input, lines(program, self.lines, &mut random))?;
            let mut trials = Vec::new();
            for number in 0..self.trials {
                trials.push(self.trial(&spark, &classes, program, &input, number, &mut random)?);
                bar.inc(1);
            }
            let share = |of: fn(&Trial) -> bool| {
                let found = trials.iter().filter(|trial| of(trial)).count();
                format!("{found} of {}", trials.len())
            };
            let logs = |of: fn(&Trial) -> f64| -> Vec<f64> {
                trials.iter().map(|trial| of(trial).ln()).collect()
            };
            let lineage = report::mean_and_half_width(&logs(|trial| trial.lineage)).0;
            let _ = writeln!(
                body,
                "| {program} | {} | {} | {:.0} | {} | {} |",
                share(|trial| trial.by_result),
                share(|trial| trial.by_time),
                lineage.exp(),
                report::geometric(&logs(|trial| trial.followed)),
                report::geometric(&logs(|trial| trial.detected)),
            );
        }
        bar.finish_and_clear();
        let command = format!(
            "unfuse-bench skew --trials {} --lines {} --seed {}",
            self.trials, self.lines, self.seed
        );
        report::write(results, "skew", &command, &body)
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
        let job = |name: &str, tool: &Tool, line: &str| -> Result<f64> {
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
            Ok(took.trim().parse()?)
        };
        let with = |options: &str| Tool::Unfuse(options.to_owned(), Vec::new());
        let tools = [Tool::None, with("records=on"), with("rate=0")];
        let mut took = [0.0; 3];
        // Which comes first changes from trial to trial.
        for turn in 0..tools.len() {
            let at = (number as usize + turn) % tools.len();
            took[at] = job(&format!("run-{at}"), &tools[at], "none")?;
        }
        let [plain, followed, detected] = took;
        job("slow", &tools[1], &slow.to_string())?;
        let profile = complete(dir.path().join("slow"))?;
        let answer = spark.ask(&["skew", "--json", "--top", "1"], &profile)?;
        let records = &answer["records"];
        let offset = offset(input, slow)?;
        let result = &records["slow_results"][0];
        Ok(Trial {
            by_result: result["expensive_input"]["offset"] == offset,
            by_time: records["slow_records"][0]["at"]["offset"] == offset,
            lineage: result["inputs"].as_f64().context("a result has inputs")?,
            followed: followed / plain,
            detected: detected / plain,
        })
    }
}

/// Where the line of a number begins, bytes.
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
