//! How good `unfuse what-if` is: changes that are predicted from one run, and then made.

mod figures;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Deserialize;
use serde_json::Value;
use unfuse_machine::said;
use unfuse_postprocess::{Profile, middle};

use crate::page::{ATTRIBUTION, Measuring, slug};
use crate::session::complete;
use crate::spark::{Spark, Tool, tpch_queries};
use crate::stats;
use figures::{apart, figures};

/// How good the predictions of `unfuse what-if` are: changes that are predicted from one run, and then made
#[derive(Debug, Args)]
pub struct WhatIf {
    /// Runs of each job, each in a JVM of its own
    #[arg(long, default_value_t = 1)]
    runs: u32,
    /// Rounds of the queries in each JVM that count
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Only changes of these jobs
    #[arg(long, value_delimiter = ',')]
    jobs: Vec<String>,
    /// Keep the profiles in this directory, and use those that it has
    #[arg(long)]
    profiles: Option<PathBuf>,
}

/// Rounds before those that count: classes are loaded and compiled.
const WARM_UP: u32 = 4;
/// The name that stands for the whole application among queries.
const APPLICATION: &str = "application";

/// The file `what_if.toml`, which explains its fields.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Plan {
    job: Vec<Job>,
    change: Vec<Change>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Job {
    name: String,
    what: String,
    slots: u32,
    #[serde(default)]
    memory: Option<String>,
    #[serde(default)]
    data: Option<String>,
    #[serde(default)]
    plain: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    now: String,
    #[serde(default)]
    then: Option<String>,
    change: String,
    queries: Vec<String>,
    #[serde(default)]
    becomes: Vec<String>,
}

/// A recorded job.
struct Recorded {
    profile: PathBuf,
    /// The runs of each query that count: id and s.
    queries: BTreeMap<String, Vec<(i64, f64)>>,
}

/// A change that was predicted and made.
struct Row {
    query: String,
    becomes: String,
    change: String,
    now_s: f64,
    /// Low, likely, high.
    predicted_s: [f64; 3],
    /// Least, median of the JVMs' medians, most.
    made_s: [f64; 3],
}

impl WhatIf {
    /// Measures and writes `what-if.md`.
    pub fn measure(&self, results: &Path) -> Result<()> {
        let mut plan: Plan = toml::from_str(include_str!("../assets/what_if.toml"))?;
        let is_asked = |name: &str| self.jobs.is_empty() || self.jobs.iter().any(|job| job == name);
        plan.change
            .retain(|change| is_asked(&change.now) && is_asked(change.then()));
        let used = |job: &Job| plan.change.iter().any(|change| change.uses(&job.name));
        plan.job.retain(used);
        if plan.change.is_empty() || self.rounds == 0 || self.runs == 0 {
            bail!("--jobs leaves no change, or --rounds or --runs is 0");
        }
        let measures = [
            &ATTRIBUTION[..],
            &["report/src/what_if", "analysis/sizing/src/what_if"],
        ]
        .concat();
        let page = Measuring::begin(results, "what-if", &measures)?;
        let tpch = Spark::install("1")?;
        let tpcds = Spark::install_tpcds("1")?;
        let bar = ProgressBar::new(u64::from(self.runs) * plan.job.len() as u64).with_style(
            ProgressStyle::with_template("[{bar:24}] {pos} of {len} JVMs, {elapsed}")?,
        );
        let mut jobs: BTreeMap<&str, Vec<Recorded>> = BTreeMap::new();
        for run in 0..self.runs {
            for job in &plan.job {
                let spark = if job.data.is_some() { &tpcds } else { &tpch };
                let recorded = self.record(spark, job, &plan, run)?;
                jobs.entry(&job.name).or_default().push(recorded);
                bar.inc(1);
            }
        }
        let mut rows = Vec::new();
        for change in &plan.change {
            let then = &jobs[change.then()];
            for at in 0..change.queries.len() {
                for now in &jobs[&*change.now] {
                    rows.push(change.row(&tpch, now, then, at)?);
                }
            }
        }
        bar.finish_and_clear();
        let whole = self.jobs.is_empty();
        let changes: Vec<&[Row]> = rows.chunks(self.runs as usize).collect();
        let mut figures = figures(&changes);
        figures.extend(apart(&plan, &jobs));
        let body = self.body(&rows);
        if whole {
            return page.finish(self.runs, figures, &body);
        }
        print!("{body}");
        page.keep(self.runs, &figures, &body, "Only some jobs were run.")
    }

    /// Runs a job, unless its profile is there.
    fn record(&self, spark: &Spark, job: &Job, plan: &Plan, run: u32) -> Result<Recorded> {
        let dir = match &self.profiles {
            Some(dir) => std::path::absolute(dir)?.join(format!("{}_{run}", slug(&job.name))),
            None => tempfile::tempdir_in(spark.scratch())?.keep(),
        };
        let [profile, done] = [dir.join("profile"), dir.join("done")];
        if !done.exists() {
            fs::create_dir_all(&dir)?;
            self.submit(spark, job, plan, &dir)?;
            fs::write(done, "")?;
        }
        let profile = complete(profile)?;
        let queries = runs(&Profile::open(&profile)?);
        Ok(Recorded { profile, queries })
    }

    fn submit(&self, spark: &Spark, job: &Job, plan: &Plan, dir: &Path) -> Result<()> {
        let [program, texts] = [dir.join("what_if.py"), dir.join("queries.json")];
        fs::write(&program, include_str!("../assets/what_if.py"))?;
        let mut queries = match job.data {
            Some(_) => spark.queries_of_data()?,
            None => tpch_queries(),
        };
        if job.what == "sql" {
            let of_job = plan.change.iter().filter(|change| change.uses(&job.name));
            let asked = of_job.flat_map(|change| change.queries.iter().chain(&change.becomes));
            let asked: Vec<&String> = asked.collect();
            queries.retain(|name, _| asked.contains(&name));
        }
        fs::write(&texts, serde_json::to_vec(&queries)?)?;
        let tool = Tool::Unfuse("rate=200".to_owned(), Vec::new());
        let mut command = spark.submit(&tool, &dir.join("profile"));
        command
            .args(["--master", &format!("local[{}]", job.slots)])
            .args(["--driver-memory", job.memory.as_deref().unwrap_or("3g")])
            .args(["--conf", "spark.ui.enabled=false"])
            .args(["--conf", "spark.log.level=ERROR"])
            // Columns of TPC-DS have names such as "30 days".
            .args(["--conf", "spark.sql.ansi.doubleQuotedIdentifiers=true"])
            .arg(&program)
            .arg(spark.data())
            .arg(&texts)
            .arg((WARM_UP + self.rounds).to_string())
            .arg(&job.what)
            .args(job.plain.then_some("plain"));
        said(&mut command).with_context(|| format!("the job {:?}", job.name))?;
        Ok(())
    }

    fn body(&self, rows: &[Row]) -> String {
        let mut body = format!(
            "Spark 4.3, scale factor 1, recorded at 200 Hz with waits. Each change is predicted from the median run of a query in each \
             JVM, and compared with the query with the change: the median of all JVMs' medians \
             (`bench/assets/what_if.py`, `what_if.toml`). Each JVM runs its queries {WARM_UP} times to warm up, and then {} times, which \
             count. The error is the distance from it; *inside*: the range of the prediction holds it. Times in s.\n\n\
             | query | change | as it is | predicted | made | error | inside |\n|---|---|---|---|---|---|---|\n",
            self.rounds
        );
        for row in rows {
            let [low, likely, high] = row.predicted_s;
            let [least, median, most] = row.made_s;
            let name = match row.becomes == row.query {
                true => row.query.clone(),
                false => format!("{} → {}", row.query, row.becomes),
            };
            let _ = writeln!(
                body,
                "| {name} | `{}` | {:.2} | {likely:.2} ({low:.2} to {high:.2}) | {median:.2} ({least:.2} to {most:.2}) | {:+.1}% | {} |",
                row.change,
                row.now_s,
                100.0 * row.error(),
                if row.is_inside() { "yes" } else { "no" },
            );
        }
        body
    }
}

impl Change {
    fn then(&self) -> &str {
        self.then.as_deref().unwrap_or(&self.now)
    }

    /// The query with the change, of the query at a position.
    fn becomes(&self, at: usize) -> &str {
        self.becomes.get(at).unwrap_or(&self.queries[at])
    }

    fn uses(&self, job: &str) -> bool {
        self.now == job || self.then() == job
    }

    /// Predicts a change of a query, and compares it with the change as it was made.
    fn row(&self, spark: &Spark, now: &Recorded, then: &[Recorded], at: usize) -> Result<Row> {
        let (query, becomes) = (&self.queries[at], self.becomes(at));
        let mut row = Row {
            query: query.clone(),
            becomes: becomes.to_owned(),
            change: self.change.clone(),
            now_s: 0.0,
            predicted_s: [0.0; 3],
            made_s: [0.0; 3],
        };
        if query == APPLICATION {
            let of = |profile| spark.ask("what-if", profile, &[&self.change]);
            let made = then
                .iter()
                .map(|then| number(&of(&then.profile)?["measured_s"]));
            let made = made.collect::<Result<Vec<f64>>>()?;
            row.made_s = span(&made, stats::median(&mut made.clone()));
            row.predict(&of(&now.profile)?)?;
            return Ok(row);
        }
        let (id, _) = now.median_run(query)?;
        for (word, number) in [("NODE", hottest as Find), ("BESIDE", beside)] {
            if row.change.contains(word) {
                let number = number(spark, now, id)?.to_string();
                row.change = row.change.replace(word, &number);
            }
        }
        let medians = then.iter().map(|then| Ok(then.median_run(becomes)?.1));
        let mut medians = medians.collect::<Result<Vec<f64>>>()?;
        let runs = then.iter().flat_map(|then| &then.queries[becomes]);
        let made: Vec<f64> = runs.map(|(_, seconds)| *seconds).collect();
        row.made_s = span(&made, stats::median(&mut medians));
        let id = id.to_string();
        let options = [&*row.change, "--query", &id];
        let answer = spark.ask("what-if", &now.profile, &options)?;
        row.predict(&answer)?;
        Ok(row)
    }
}

impl Recorded {
    /// The run of a query with the median time: id and s.
    fn median_run(&self, query: &str) -> Result<(i64, f64)> {
        let runs = self.queries.get(query).filter(|runs| !runs.is_empty());
        let mut runs = runs
            .with_context(|| {
                format!(
                    "no run of {query} that counts is in {}",
                    self.profile.display()
                )
            })?
            .clone();
        runs.sort_by(|a, b| a.1.total_cmp(&b.1));
        Ok(runs[middle(runs.len())])
    }
}

impl Row {
    fn predict(&mut self, answer: &Value) -> Result<()> {
        self.now_s = number(&answer["measured_s"])?;
        let estimate = &answer["estimate"];
        self.predicted_s = [
            number(&estimate["then_low_s"])?,
            number(&estimate["then_s"])?,
            number(&estimate["then_high_s"])?,
        ];
        Ok(())
    }

    /// The distance of the predicted from the made time, as a share of that.
    fn error(&self) -> f64 {
        self.predicted_s[1] / self.made_s[1] - 1.0
    }

    fn is_inside(&self) -> bool {
        let [low, _, high] = self.predicted_s;
        (low..=high).contains(&self.made_s[1])
    }
}

/// The runs of each query that count: id and s.
fn runs(profile: &Profile) -> BTreeMap<String, Vec<(i64, f64)>> {
    let mut queries: BTreeMap<String, Vec<(i64, f64)>> = BTreeMap::new();
    for (id, known) in &profile.executions {
        if let (Some(ms), None) = (known.duration_ms(), &known.error) {
            let of_query = queries.entry(profile.query_name(id)).or_default();
            of_query.push((id.execution, ms as f64 / 1e3));
        }
    }
    for runs in queries.values_mut() {
        runs.sort_by_key(|(id, _)| *id);
        runs.drain(..runs.len().min(WARM_UP as usize));
    }
    queries
}

/// Finds a number of a change for a query.
type Find = fn(&Spark, &Recorded, i64) -> Result<i64>;

/// The plan node with the most CPU time in a query.
fn hottest(spark: &Spark, job: &Recorded, query: i64) -> Result<i64> {
    let query = query.to_string();
    let options = ["--query", &query, "--limit", "1000", "--runs"];
    let rows = spark.ask("top", &job.profile, &options)?;
    let rows = rows.as_array().context("rows of top")?.iter();
    let nodes =
        rows.filter_map(|row| Some((row["node_id"].as_i64()?, row["cpu_seconds"].as_f64()?)));
    let most = nodes.max_by(|a, b| a.1.total_cmp(&b.1));
    Ok(most.context("a node with samples")?.0)
}

/// The neighbour that began next to a query.
fn beside(_: &Spark, job: &Recorded, query: i64) -> Result<i64> {
    let others = job.queries.get("neighbour").into_iter().flatten();
    let found = others.map(|(id, _)| *id).find(|id| id.abs_diff(query) == 1);
    found.context("a neighbour beside the query")
}

fn number(value: &Value) -> Result<f64> {
    value.as_f64().context("a number")
}

/// The least and the most of times, around their middle.
fn span(times: &[f64], middle: f64) -> [f64; 3] {
    let least = times.iter().copied().fold(f64::INFINITY, f64::min);
    [least, middle, times.iter().copied().fold(0.0, f64::max)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_names_jobs_and_each_job_is_used() {
        let plan: Plan = toml::from_str(include_str!("../assets/what_if.toml")).expect("a plan");
        for change in &plan.change {
            for name in [&change.now, change.then()] {
                assert!(plan.job.iter().any(|job| job.name == *name), "{name}");
            }
            let becomes = change.becomes.len();
            assert!(
                becomes == 0 || becomes == change.queries.len(),
                "{}",
                change.change
            );
            assert!(!change.queries.is_empty(), "{}", change.change);
        }
        for job in &plan.job {
            let used = |change: &Change| change.uses(&job.name);
            assert!(plan.change.iter().any(used), "{}", job.name);
        }
        let all = plan.change.iter().map(|change| change.queries.len());
        assert!(all.sum::<usize>() >= 40);
    }
}
