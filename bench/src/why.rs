//! Whether `unfuse why` names what made a query slower: pairs of runs with one known cause each.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Deserialize;
use unfuse_machine::said;
use unfuse_postprocess::middle;

use crate::page::{ATTRIBUTION, Figure, Measuring};
use crate::session::complete;
use crate::spark::{Spark, Tool};
use crate::stats;

/// Whether `unfuse why` names what made a query slower, and by how much
#[derive(Debug, Args)]
pub struct Why {
    /// Pairs of runs for each cause: one without it, one with it
    #[arg(long, default_value_t = 1)]
    runs: u32,
    /// Rounds in each run that count
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Only these causes
    #[arg(long, value_delimiter = ',')]
    causes: Vec<String>,
    /// Keep the profiles in this directory
    #[arg(long)]
    profiles: Option<PathBuf>,
}

/// Rounds before those that count: classes are loaded and compiled.
const WARM_UP: u32 = 3;
/// The first part may be so far from the whole difference, as a share of it.
const CLOSE: f64 = 0.25;

#[derive(Deserialize)]
struct Cases {
    case: Vec<Case>,
}

/// A pair of runs that differ by one cause; `why.toml` explains the fields.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    kinds: Vec<String>,
    says: Option<String>,
    #[serde(default)]
    before: Vec<String>,
    #[serde(default)]
    after: Vec<String>,
    #[serde(default)]
    both: Vec<String>,
    slots: Option<String>,
    slots_after: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Variant {
    Before,
    After,
}

/// One run of a case.
struct Recorded {
    profile: PathBuf,
    /// Wall times of the rounds that count, s.
    seconds: Vec<f64>,
}

/// The answer about one pair of runs.
struct Answer {
    /// Difference of the median times of the two runs, s.
    slower_s: f64,
    before_s: f64,
    kind: String,
    what: String,
    /// The first part, s: itself, and the ends of its range.
    first_s: [f64; 3],
    named: bool,
}

impl Answer {
    fn is_close(&self) -> bool {
        (self.first_s[0] - self.slower_s).abs() <= CLOSE * self.slower_s.abs()
    }
}

impl Why {
    /// Measures and writes `why.md`.
    pub fn measure(&self, results: &Path) -> Result<()> {
        let Cases { mut case } = toml::from_str(include_str!("../assets/why.toml"))?;
        let is_asked = |case: &Case| self.causes.is_empty() || self.causes.contains(&case.name);
        case.retain(is_asked);
        if case.is_empty() || self.rounds == 0 {
            bail!("--causes leaves no pair, or --rounds is 0");
        }
        let measures = [&ATTRIBUTION[..], &["report/src/why"]].concat();
        let page = Measuring::begin(results, "why", &measures)?;
        let spark = Spark::install("1")?;
        let bar = ProgressBar::new(u64::from(self.runs) * case.len() as u64).with_style(
            ProgressStyle::with_template("[{bar:24}] {pos} of {len} pairs of JVMs, {elapsed}")?,
        );
        let mut answers = Vec::new();
        for run in 0..self.runs {
            for case in &case {
                let answer = self.answer(&spark, case, run);
                answers.push((case, answer.with_context(|| case.name.clone())?));
                bar.inc(1);
            }
        }
        bar.finish_and_clear();
        let (figures, body) = (figures(&answers), self.body(&answers));
        if self.causes.is_empty() {
            return page.finish(self.runs, figures, &body);
        }
        print!("{body}");
        page.keep(
            self.runs,
            &figures,
            &body,
            "Only some causes were measured.",
        )
    }

    fn answer(&self, spark: &Spark, case: &Case, run: u32) -> Result<Answer> {
        let dir = match &self.profiles {
            Some(dir) => std::path::absolute(dir)?.join(format!("{}_{run}", case.name)),
            None => tempfile::tempdir_in(spark.scratch())?.keep(),
        };
        fs::create_dir_all(dir.join("files"))?;
        let before = self.record(spark, case, &dir, Variant::Before)?;
        let after = self.record(spark, case, &dir, Variant::After)?;
        let query = after.median_query(spark, &case.name)?;
        let options = [
            "--against",
            &before.profile.to_string_lossy(),
            "--query",
            &query.to_string(),
        ];
        let answer = spark.ask("why", &after.profile, &options)?;
        let first = answer["parts"].get(0).context("a part")?;
        let number = |name: &str| first[name].as_f64().context("a number");
        let text = |name: &str| first[name].as_str().context("a text");
        let (kind, what) = (text("kind")?.to_owned(), text("what")?.to_owned());
        let [before_s, after_s] =
            [&before, &after].map(|run| stats::median(&mut run.seconds.clone()));
        let says = case.says.as_deref().unwrap_or_default();
        Ok(Answer {
            slower_s: after_s - before_s,
            before_s,
            named: case.kinds.contains(&kind) && what.contains(says),
            kind,
            what,
            first_s: [
                number("seconds")?,
                number("seconds_low")?,
                number("seconds_high")?,
            ],
        })
    }

    fn record(&self, spark: &Spark, case: &Case, dir: &Path, variant: Variant) -> Result<Recorded> {
        let program = dir.join("why.py");
        fs::write(&program, include_str!("../assets/why.py"))?;
        let (name, own) = match variant {
            Variant::Before => ("before", &case.before),
            Variant::After => ("after", &case.after),
        };
        let profile = dir.join(name);
        let mut command = spark.submit(&Tool::Unfuse("rate=200".to_owned(), Vec::new()), &profile);
        let slots = case.slots.as_deref().unwrap_or("2");
        let slots = match (&case.slots_after, variant) {
            (Some(after), Variant::After) => after,
            _ => slots,
        };
        command.args(["--master", &format!("local[{slots}]")]);
        let common = [
            "spark.ui.enabled=false",
            "spark.log.level=OFF",
            "spark.driver.memory=2g",
        ];
        let own = case.both.iter().chain(own).map(String::as_str);
        for setting in common.into_iter().chain(own) {
            command.args(["--conf", setting]);
        }
        command
            .arg(&program)
            .arg(spark.data())
            .arg(dir.join("files"));
        command.args([&case.name, name]);
        command.args([WARM_UP, self.rounds].map(|rounds| rounds.to_string()));
        let text = said(&mut command)?;
        let line = text.lines().rfind(|line| line.starts_with('['));
        let seconds: Vec<f64> = serde_json::from_str(line.context("the job prints its times")?)?;
        ensure!(
            seconds.len() == self.rounds as usize,
            "{} rounds",
            seconds.len()
        );
        Ok(Recorded {
            profile: complete(profile)?,
            seconds,
        })
    }

    fn body(&self, answers: &[(&Case, Answer)]) -> String {
        let mut body = format!(
            "Spark 4.3, TPC-H SF 1, two slots. Each cause is a pair of JVMs that run one query ({WARM_UP} rounds to warm up, then {}); the second \
             one has the cause (`bench/assets/why.py`, `why.toml`). *Slower* is the difference of the median times, by the program's clock. *First \
             part* is the first row of `unfuse why` about the median round of the second JVM against all rounds of the first one. It is *named* \
             if the part is the cause, and *close* if its seconds are within {:.0}% of the difference.\n\n\
             | cause | before, s | slower, s | first part, s | range | named | close | first part |\n|---|---|---|---|---|---|---|---|\n",
            self.rounds,
            100.0 * CLOSE
        );
        let word = |is: bool| if is { "yes" } else { "no" };
        for (case, answer) in answers {
            let [first, low, high] = answer.first_s;
            let _ = writeln!(
                body,
                "| {} | {:.2} | {:.2} | {first:.2} | {low:.2} to {high:.2} | {} | {} | {}: {} |",
                case.name,
                answer.before_s,
                answer.slower_s,
                word(answer.named),
                word(answer.is_close()),
                answer.kind,
                answer.what.replace('|', "\\|")
            );
        }
        body
    }
}

impl Recorded {
    /// The SQL execution of the round that counts and has the median time.
    fn median_query(&self, spark: &Spark, description: &str) -> Result<i64> {
        let rows = spark.ask("top", &self.profile, &["--runs", "--limit", "100000"])?;
        let rows = rows.as_array().context("rows")?;
        let of_rounds = rows.iter().filter(|row| row["query_name"] == description);
        let ids: BTreeSet<i64> = of_rounds.filter_map(|row| row["query"].as_i64()).collect();
        let mut rounds: Vec<(f64, i64)> = self.seconds.iter().copied().zip(ids).collect();
        ensure!(
            rounds.len() == self.seconds.len(),
            "a round was not recorded"
        );
        rounds.sort_by(|a, b| a.0.total_cmp(&b.0));
        Ok(rounds[middle(rounds.len())].1)
    }
}

fn figures(answers: &[(&Case, Answer)]) -> Vec<Figure> {
    let count = |is: fn(&Answer) -> bool| {
        let found = answers.iter().filter(|(_, answer)| is(answer));
        (found.count(), answers.len())
    };
    let mut errors: Vec<f64> = answers
        .iter()
        .map(|(_, answer)| 100.0 * (answer.first_s[0] / answer.slower_s - 1.0).abs())
        .collect();
    vec![
        Figure::from_counts(
            "named",
            "pairs in which the first part is the cause",
            count(|answer| answer.named),
        ),
        Figure::from_counts(
            "close",
            "pairs in which it is, and its seconds are within 25% of the difference",
            count(|answer| answer.named && answer.is_close()),
        ),
        Figure::new(
            "error",
            "median distance of its seconds from the difference",
            stats::median(&mut errors),
            "%",
            0,
        ),
    ]
}
