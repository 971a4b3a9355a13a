//! Whether following `unfuse advise` saves what it says: jobs with one problem each, the suggestion, and the job after it was
//! followed.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Deserialize;
use serde_json::Value;
use unfuse_machine::said;

use crate::page::{ATTRIBUTION, Figure, Measuring};
use crate::spark::{Spark, Tool};
use crate::stats;

/// Whether following the suggestions of `unfuse advise` saves what they say
#[derive(Debug, Args)]
pub struct Advise {
    /// Pairs of runs of each job: one as it is, one after the suggestion was followed
    #[arg(long, default_value_t = 3)]
    runs: u32,
    /// Rounds in each run; the first warms up and does not count
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Only the jobs of these rules
    #[arg(long, value_delimiter = ',')]
    rules: Vec<String>,
}

#[derive(Deserialize)]
struct Cases {
    case: Vec<Case>,
}

/// A job with one problem; `advise.toml` explains the fields.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    rule: String,
    #[serde(default)]
    job: Option<String>,
    #[serde(default)]
    now: Vec<String>,
    #[serde(default)]
    take: Vec<String>,
    #[serde(default)]
    rewrite: bool,
}

/// The shares of each rule, in the file of the rules.
#[derive(Deserialize)]
struct Rules {
    rule: Vec<Rule>,
}

#[derive(Deserialize)]
struct Rule {
    name: String,
    #[serde(default)]
    saves: Option<[f64; 3]>,
}

/// What a run of `unfuse advise` said, s.
struct Said {
    first: bool,
    action: String,
    saves: [f64; 3],
}

impl Case {
    fn job(&self) -> &str {
        self.job.as_deref().unwrap_or(&self.rule)
    }
}

impl Rules {
    /// The most likely share of a rule that has shares.
    fn likely_share(&self, name: &str) -> Option<f64> {
        let rule = self.rule.iter().find(|rule| rule.name == name);
        rule.and_then(|rule| rule.saves)
            .map(|[_, likely, _]| likely)
    }
}

/// One pair of runs.
struct Pair {
    said: Option<Said>,
    now_s: f64,
    then_s: f64,
}

impl Advise {
    /// Measures and writes `advise.md`.
    pub fn measure(&self, results: &Path) -> Result<()> {
        let cases: Cases = toml::from_str(include_str!("../assets/advise.toml"))?;
        let is_asked = |case: &Case| self.rules.is_empty() || self.rules.contains(&case.rule);
        let cases: Vec<Case> = cases.case.into_iter().filter(is_asked).collect();
        if cases.is_empty() || self.rounds < 2 {
            bail!("no job has one of these rules, or --rounds is below 2");
        }
        let measures = [
            &ATTRIBUTION[..],
            &["report/src/advise", "report/rules/advice.toml"],
        ]
        .concat();
        let page = Measuring::begin(results, "advise", &measures)?;
        let spark = Spark::install("1")?;
        let bar = ProgressBar::new(u64::from(self.runs) * cases.len() as u64).with_style(
            ProgressStyle::with_template("[{bar:24}] {pos} of {len} pairs of JVMs, {elapsed}")?,
        );
        let mut pairs: Vec<Vec<Pair>> = cases.iter().map(|_| Vec::new()).collect();
        for _ in 0..self.runs {
            for (case, pairs) in cases.iter().zip(&mut pairs) {
                pairs.push(self.pair(&spark, case)?);
                bar.inc(1);
            }
        }
        bar.finish_and_clear();
        self.write(page, &cases, &pairs)
    }

    fn write(&self, page: Measuring, cases: &[Case], pairs: &[Vec<Pair>]) -> Result<()> {
        let rules: Rules = toml::from_str(include_str!("../../report/rules/advice.toml"))?;
        let mut table = String::new();
        let (mut given, mut first, mut inside, mut all, mut helped) = (0, 0, 0, 0, 0);
        let mut errors = Vec::new();
        for (case, pairs) in cases.iter().zip(pairs) {
            let mut saved = Vec::new();
            for pair in pairs {
                let true_s = pair.now_s - pair.then_s;
                saved.push(true_s);
                all += 1;
                let text = match &pair.said {
                    Some(said) => {
                        let [low, likely, high] = said.saves;
                        let is_inside = (low..=high).contains(&true_s);
                        given += 1;
                        first += i32::from(said.first);
                        inside += i32::from(is_inside);
                        errors.push((likely - true_s).abs() / pair.now_s);
                        let place = if said.first { "first" } else { "later" };
                        let held = if is_inside { "yes" } else { "no" };
                        let fits = match rules.likely_share(&case.rule) {
                            Some(share) => format!("{:.2}", share * true_s / likely),
                            None => "-".to_owned(),
                        };
                        format!("{likely:.2} ({low:.2} to {high:.2}) | {place} | {held} | {fits}")
                    }
                    None => "- | not given | no | -".to_owned(),
                };
                let _ = writeln!(
                    table,
                    "| {} | {} | {:.2} | {:.2} | {true_s:.2} | {text} |",
                    case.rule,
                    case.job(),
                    pair.now_s,
                    pair.then_s
                );
            }
            helped += i32::from(stats::median(&mut saved) > 0.0);
        }
        let of = |what: usize| format!("of {what}");
        let count = |name: &str, what: &str, value: i32, of: &str| {
            Figure::new(name, what, f64::from(value), of, 0).exact()
        };
        let mut figures = vec![
            count(
                "given",
                "runs in which the suggestion was given",
                given,
                &of(all),
            ),
            count("first", "runs in which it was the first", first, &of(all)),
            count(
                "helped",
                "jobs that became faster (median)",
                helped,
                &of(cases.len()),
            ),
            count("inside", "savings inside the interval", inside, &of(all)),
        ];
        if !errors.is_empty() {
            let what = "median distance of the said from the true saving, as a share of the time of the job as it was";
            figures.push(Figure::new(
                "error",
                what,
                100.0 * stats::median(&mut errors),
                "%",
                1,
            ));
        }
        let body = format!(
            "Spark 4.3, `local[2]`, TPC-H SF 1. Each job has one problem (`bench/assets/advise.py`, `advise.toml`); settings come from \
             the suggestion itself. Both runs are recorded. Times are medians of {} rounds after a first one, s. *Share*: the share of \
             the rule's time with which it would have said what was saved.\n\n\
             | rule | job | as it is | after it was followed | saved | said | place | inside | share |\n|---|---|---|---|---|---|---|---|---|\n{table}",
            self.rounds - 1
        );
        page.finish(self.runs, figures, &body)
    }

    fn pair(&self, spark: &Spark, case: &Case) -> Result<Pair> {
        let dir = tempfile::tempdir_in(spark.scratch())?;
        let (now_s, said) = self.run(spark, case, dir.path(), None)?;
        let action = said.as_ref().map_or("", |said| said.action.as_str());
        let settings: Vec<String> = match case.rewrite {
            true => Vec::new(),
            false => settings_in(action, &case.take),
        };
        let (then_s, _) = self.run(spark, case, dir.path(), Some(&settings))?;
        Ok(Pair {
            said,
            now_s,
            then_s,
        })
    }

    /// The median time of a job as it is, or after the suggestion with these settings was followed, and what is suggested for it.
    fn run(
        &self,
        spark: &Spark,
        case: &Case,
        dir: &Path,
        followed: Option<&[String]>,
    ) -> Result<(f64, Option<Said>)> {
        let variant = if followed.is_some() { "then" } else { "now" };
        let program = dir.join("advise.py");
        fs::write(&program, include_str!("../assets/advise.py"))?;
        let profile = dir.join(variant);
        let mut command = spark.submit(&Tool::Unfuse("rate=200".to_owned(), Vec::new()), &profile);
        let mut conf = vec![
            "spark.master=local[2]",
            "spark.driver.memory=2g",
            "spark.ui.enabled=false",
            "spark.log.level=ERROR",
        ];
        conf.extend(case.now.iter().map(String::as_str));
        if let Some(settings) = followed {
            conf.extend(settings.iter().map(String::as_str));
        }
        for setting in conf {
            command.args(["--conf", setting]);
        }
        command.arg(program).arg(spark.data());
        command.args([case.job(), variant, &self.rounds.to_string()]);
        let text = said(&mut command).with_context(|| format!("the job {}", case.job()))?;
        let line = text
            .lines()
            .rfind(|line| line.starts_with('['))
            .context("the job prints its times")?;
        let seconds: Vec<f64> = serde_json::from_str(line)?;
        let profile = crate::session::complete(profile)?;
        let answer = spark.ask("advise", &profile, &[])?;
        let advice = answer["advice"]
            .as_array()
            .context("a list of suggestions")?;
        let at = advice
            .iter()
            .position(|one| one["rule"] == case.rule.as_str());
        let said = at.map(|at| Said::from_json(at, &advice[at])).transpose()?;
        Ok((stats::median(&mut seconds[1..].to_vec()), said))
    }
}

impl Said {
    fn from_json(at: usize, advice: &Value) -> Result<Self> {
        let number = |name: &str| advice[name].as_f64().context("a number");
        Ok(Self {
            first: at == 0,
            action: advice["action"].as_str().unwrap_or_default().to_owned(),
            saves: [
                number("saves_low_s")?,
                number("saves_s")?,
                number("saves_high_s")?,
            ],
        })
    }
}

/// The settings with a value in a suggestion, such as `spark.sql.shuffle.partitions=8`: all, or those with some names.
fn settings_in(action: &str, names: &[String]) -> Vec<String> {
    let words = action.split([' ', ',', '(', ')']);
    let settings = words.filter(|word| {
        let name = word.split_once('=').map(|(name, _)| name);
        name.is_some_and(|name| {
            name.starts_with("spark.") && (names.is_empty() || names.iter().any(|one| one == name))
        })
    });
    settings.map(str::to_owned).collect()
}
