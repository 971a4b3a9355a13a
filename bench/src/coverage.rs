//! How the CPU time of tasks is attributed, and by which rules:
//! to plan nodes, to headings, or to neither.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use anyhow::{Result, bail};
use clap::Args;
use unfuse_postprocess::{By, Profile, Selection, Standing, Total, Totals};

use crate::event_log::executions;
use crate::page::{ATTRIBUTION, Figure, Measuring};
use crate::session::RefusedQuery;
use crate::spark::{Setup, Spark, Tool, Work, tpch_queries};

/// How much of the tasks' CPU time of the TPC-H and TPC-DS queries lands on plan nodes
#[derive(Debug, Args)]
pub struct Coverage {
    /// Samples a second of CPU time
    #[arg(long, default_value_t = 1000)]
    pub rate: u32,
    /// Scale factor of the data
    #[arg(long, default_value = "1")]
    pub scale: String,
    /// Only queries whose name begins so, such as tpch,tpcds-q0
    #[arg(long, value_delimiter = ',')]
    pub only: Vec<String>,
}

/// One query.
#[derive(Default)]
struct QueryCoverage {
    /// CPU time of its tasks by Spark's metric `executorCpuTime`, s.
    spark_s: f64,
    /// CPU time to deserialize its tasks by Spark's metric `executorDeserializeCpuTime`, s.
    deserialize_s: f64,
    /// CPU time of its tasks by the samples, s.
    sampled_s: f64,
    samples: u64,
    /// Samples by rule.
    rules: BTreeMap<String, u64>,
    /// Samples by the standing of their rule, such as proved or guessed.
    standings: BTreeMap<&'static str, u64>,
    /// Samples by heading.
    headings: BTreeMap<String, u64>,
}

impl Coverage {
    /// Measures and writes `coverage.md`.
    pub fn measure(&self, results: &Path) -> Result<()> {
        let page = Measuring::begin(results, "coverage", &ATTRIBUTION)?;
        let suites = [
            ("tpch", Spark::install(&self.scale)?),
            ("tpcds", Spark::install_tpcds(&self.scale)?),
        ];
        let mut queries = BTreeMap::new();
        let mut outside: BTreeMap<String, f64> = BTreeMap::new();
        let mut failed = Vec::new();
        for (suite, spark) in &suites {
            let texts = match *suite {
                "tpch" => tpch_queries(),
                _ => spark.queries_of_data()?,
            };
            let begins = |name: &str| self.only.iter().any(|only| name.starts_with(only));
            let wanted = |name: &str| self.only.is_empty() || begins(name);
            let texts: BTreeMap<String, String> = texts
                .into_iter()
                .map(|(name, text)| (format!("{suite}-{name}"), text))
                .filter(|(name, _)| wanted(name))
                .collect();
            if !texts.is_empty() {
                failed.extend(self.run(spark, texts, &mut queries, &mut outside)?);
            }
        }
        if queries.is_empty() {
            bail!("no query ran; --only is the beginning of a name such as tpch-q01");
        }
        page.finish(
            1,
            figures(&queries),
            &self.body(&queries, &outside, &failed),
        )
    }

    fn run(
        &self,
        spark: &Spark,
        texts: BTreeMap<String, String>,
        queries: &mut BTreeMap<String, QueryCoverage>,
        outside: &mut BTreeMap<String, f64>,
    ) -> Result<Vec<RefusedQuery>> {
        let work = Work {
            warm_up: 0,
            rounds: 1,
            queries: texts,
            setup: Setup::default(),
        };
        // Columns of TPC-DS have names such as "30 days".
        let quoted = "spark.sql.ansi.doubleQuotedIdentifiers=true".to_owned();
        let run = spark.run_what_can(
            &work,
            &Tool::Unfuse(format!("rate={}", self.rate), vec![quoted]),
        )?;
        let profile = Profile::open(&run.profile)?;
        let mut names = BTreeMap::new();
        for execution in executions(&run.event_log)? {
            let Some(name) = execution.counted_query() else {
                continue;
            };
            let covered = queries.entry(name.to_owned()).or_default();
            covered.spark_s += execution.all_cpu_s - execution.deserialize_cpu_s;
            covered.deserialize_s += execution.deserialize_cpu_s;
            names.insert(execution.id, name.to_owned());
        }
        for row in Totals::new(&profile, Selection::default(), By::Operator).rows {
            if let Some(name) = row.query.and_then(|query| names.get(&query)) {
                queries.entry(name.clone()).or_default().add(&row);
            } else {
                // Creating the views of the data runs jobs too.
                let heading = match row.stage {
                    Some(_) => "tasks of other jobs".to_owned(),
                    None => row.operator,
                };
                *outside.entry(heading).or_default() += row.cpu_seconds;
            }
        }
        for (query, name) in &names {
            let selection = Selection {
                query: Some(*query),
                ..Selection::default()
            };
            for row in Totals::new(&profile, selection, By::Rule).rows {
                queries.entry(name.clone()).or_default().add_rule(&row);
            }
        }
        Ok(run.failed)
    }

    fn body(
        &self,
        queries: &BTreeMap<String, QueryCoverage>,
        outside: &BTreeMap<String, f64>,
        failed: &[RefusedQuery],
    ) -> String {
        let mut all = QueryCoverage::default();
        queries.values().for_each(|covered| all.merge(covered));
        let mut body = format!(
            "{} queries, scale factor {}, local[2], Spark 4.3, {} Hz, each run once, cold. Shares are of the samples \
             of the queries' tasks.\n\n",
            queries.len(),
            self.scale,
            self.rate
        );
        for failed in failed {
            let _ = writeln!(body, "Not run: {}: {}\n", failed.query, failed.reason);
        }
        body += &all.rules();
        body += &all.cpu();
        body += "## By query\n\n*proved*: a line, a call or a class on the stack, and nothing else in the plan, identifies the plan node; *guessed*: on a plan node that may be the wrong one.\n\n\
                 | query | CPU, s | ÷ executorCpuTime | ÷ with deserialization | proved, % | guessed, % | \
                 under headings, % | unattributed, % | headings |\n|---|---|---|---|---|---|---|---|---|\n";
        for (name, covered) in queries {
            body += &covered.row(name);
        }
        body += &all.row("**all**");
        let above = |standing: Standing| {
            let names: Vec<&str> = queries
                .iter()
                .filter(|(_, covered)| covered.share(covered.standing(standing)) > 1.0)
                .map(|(name, _)| name.as_str())
                .collect();
            if names.is_empty() {
                "none".to_owned()
            } else {
                names.join(", ")
            }
        };
        let _ = writeln!(
            body,
            "\nMore than 1% unattributed: {}. More than 1% guessed: {}.\n\n## Outside the queries' tasks\n\n\
             | heading | CPU, s |\n|---|---|",
            above(Standing::Unattributed),
            above(Standing::Guessed),
        );
        for (heading, seconds) in outside {
            let _ = writeln!(body, "| {heading} | {seconds:.2} |");
        }
        body + "\n"
    }
}

/// Figures over all queries. Only the number of queries has an interval, because each query runs once.
fn figures(queries: &BTreeMap<String, QueryCoverage>) -> Vec<Figure> {
    let mut all = QueryCoverage::default();
    queries.values().for_each(|covered| all.merge(covered));
    let above = queries
        .values()
        .filter(|one| one.share(one.standing(Standing::Unattributed)) > 1.0)
        .count();
    let proved = all.standing(Standing::Proved);
    let guessed = all.standing(Standing::Guessed);
    let share =
        |name: &str, what: &str, samples| Figure::new(name, what, all.share(samples), "%", 2);
    let ratio =
        |name: &str, what: &str, spark: f64| Figure::new(name, what, all.sampled_s / spark, "", 3);
    vec![
        share("proved", "samples on a proved plan node", proved),
        share("guessed", "samples on a guessed plan node", guessed),
        share("nodes", "samples on plan nodes", proved + guessed),
        share(
            "headings",
            "samples under headings",
            all.standing(Standing::Heading),
        ),
        share(
            "unattributed",
            "samples unattributed",
            all.standing(Standing::Unattributed),
        ),
        Figure::new(
            "above_1",
            "queries with more than 1% unattributed",
            above as f64,
            "",
            0,
        )
        .exact(),
        ratio(
            "cpu",
            "CPU time by samples ÷ by Spark's metrics, deserialization included",
            all.spark_s + all.deserialize_s,
        ),
        ratio(
            "cpu_run",
            "CPU time by samples ÷ executorCpuTime",
            all.spark_s,
        ),
    ]
}

impl QueryCoverage {
    fn add(&mut self, row: &Total) {
        self.samples += row.samples;
        self.sampled_s += row.cpu_seconds;
        if row.heading && row.operator != Standing::Unattributed.name() {
            *self.headings.entry(row.operator.clone()).or_default() += row.samples;
        }
    }

    fn add_rule(&mut self, row: &Total) {
        *self.rules.entry(row.operator.clone()).or_default() += row.samples;
        if let Some(standing) = row.standing {
            *self.standings.entry(standing).or_default() += row.samples;
        }
    }

    fn merge(&mut self, other: &Self) {
        self.spark_s += other.spark_s;
        self.deserialize_s += other.deserialize_s;
        self.sampled_s += other.sampled_s;
        self.samples += other.samples;
        for (rule, samples) in &other.rules {
            *self.rules.entry(rule.clone()).or_default() += samples;
        }
        for (standing, samples) in &other.standings {
            *self.standings.entry(standing).or_default() += samples;
        }
        for (heading, samples) in &other.headings {
            *self.headings.entry(heading.clone()).or_default() += samples;
        }
    }

    fn standing(&self, standing: Standing) -> u64 {
        self.standings
            .get(standing.name())
            .copied()
            .unwrap_or_default()
    }

    /// Per cent of the samples.
    fn share(&self, samples: u64) -> f64 {
        100.0 * samples as f64 / self.samples.max(1) as f64
    }

    /// The table of the rules that attributed the samples.
    fn rules(&self) -> String {
        let of = |standing| self.share(self.standing(standing));
        let mut text = format!(
            "## What placed the samples\n\nProved by a region, a call or a class: {:.2}%, guessed: {:.2}%, headings: {:.2}%, \
             unattributed: {:.2}%.\n\n| rule | share, % |\n|---|---|\n",
            of(Standing::Proved),
            of(Standing::Guessed),
            of(Standing::Heading),
            of(Standing::Unattributed),
        );
        let mut rules: Vec<_> = self.rules.iter().collect();
        rules.sort_by_key(|(_, samples)| std::cmp::Reverse(**samples));
        for (rule, samples) in rules {
            let _ = writeln!(text, "| {rule} | {:.3} |", self.share(*samples));
        }
        text + "\n"
    }

    /// The tasks' CPU time by samples and by Spark's metrics.
    fn cpu(&self) -> String {
        let with = self.spark_s + self.deserialize_s;
        let by = |spark: f64| 100.0 * (self.sampled_s / spark - 1.0);
        format!(
            "## CPU seconds\n\n{:.2} s by samples; Spark says {:.2} s (`executorCpuTime`), and {with:.2} s with \
             `executorDeserializeCpuTime`: the samples have {:+.2}% and {:+.2}%.\n\n",
            self.sampled_s,
            self.spark_s,
            by(self.spark_s),
            by(with),
        )
    }

    fn row(&self, name: &str) -> String {
        let mut headings: Vec<_> = self.headings.iter().collect();
        headings.sort_by_key(|(_, samples)| std::cmp::Reverse(**samples));
        let headings: Vec<String> = headings
            .into_iter()
            .filter(|(_, samples)| self.share(**samples) >= 0.5)
            .map(|(heading, samples)| {
                format!(
                    "{} {:.1}",
                    heading.trim_start_matches("task: "),
                    self.share(*samples)
                )
            })
            .collect();
        let of = |standing| self.share(self.standing(standing));
        format!(
            "| {name} | {:.2} | {:.3} | {:.3} | {:.2} | {:.2} | {:.2} | {:.2} | {} |\n",
            self.sampled_s,
            self.sampled_s / self.spark_s,
            self.sampled_s / (self.spark_s + self.deserialize_s),
            of(Standing::Proved),
            of(Standing::Guessed),
            of(Standing::Heading),
            of(Standing::Unattributed),
            headings.join(", ")
        )
    }
}
