//! Work whose operator is known: in each query one operator calls a marked function. Every sample in that function should be
//! attributed to that operator.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Deserialize;
use unfuse_format::counted;
use unfuse_machine::java_release;
use unfuse_postprocess::{By, Level, Profile, Selection, Time, Totals, WaitReason, export};

use crate::event_log::executions;
use crate::page::{ATTRIBUTION, Figure, Measuring, slug};
use crate::session::{Answer, NOWHERE};
use crate::spark::{Marks, Setup, Spark, Tool};
use crate::stats;

/// Functions that only one operator of a plan calls, and where their samples land
#[derive(Debug, Args)]
pub struct Marked {
    /// Samples a second of CPU time
    #[arg(long, default_value_t = 1000)]
    pub rate: u32,
    /// Runs of each query that count, after one to warm up
    #[arg(long, default_value_t = 3)]
    pub runs: u32,
    /// Version of Spark: 3.5 or 4.3. Another than 4.3 has a page of its own
    #[arg(long, default_value = DEFAULT_SPARK)]
    pub spark: String,
    /// The JDK that runs Spark, if not that of the environment; it has a page of its own
    #[arg(long, value_name = "DIR")]
    pub java_home: Option<PathBuf>,
    /// Only these marked functions, such as Filter,Sort
    #[arg(long, value_delimiter = ',')]
    pub only: Vec<String>,
}

const DEFAULT_SPARK: &str = "4.3";
/// About 40,000 rows of lineitem at scale factor 1.
const ROWS: &str = "l_orderkey < 40000";
/// About 1,600 rows.
const FEW: &str = "l_orderkey < 1600";
/// Functions that are not registered for SQL: those of the views `mapped` and `marked`, and the one that the job registers.
const NOT_OF_SQL: [&str; 4] = ["MapElements", "Scan", "Write", PYTHON];
/// The function of a Python worker; no sample of the JVM is in it.
const PYTHON: &str = "Python";
/// Needs Spark 4.3.
const COMPILED_BY_JAVAC: &str = "javac";

/// How Spark runs the plans: a name, and the settings for it.
type Way = (&'static str, &'static [(&'static str, &'static str)]);

/// All ways. Each keeps the settings of the previous ones.
const WAYS: [Way; 5] = [
    ("fused", &[]),
    (COMPILED_BY_JAVAC, &[("spark.sql.codegen.compiler", "jdk")]),
    (
        "split",
        &[
            ("spark.sql.codegen.compiler", "janino"),
            ("spark.sql.codegen.methodSplitThreshold", "1"),
        ],
    ),
    ("not fused", &[("spark.sql.codegen.wholeStage", "false")]),
    (
        "interpreted",
        &[("spark.sql.codegen.factoryMode", "NO_CODEGEN")],
    ),
];

/// The file `marked.toml`.
#[derive(Deserialize)]
struct Queries {
    query: Vec<Query>,
}

/// A query with one marked function.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Query {
    mark: String,
    operator: String,
    sql: String,
    /// The format in which its rows are written.
    #[serde(default = "nowhere")]
    sink: String,
}

fn nowhere() -> String {
    NOWHERE.to_owned()
}

/// The output of `unfuse export --format json` for a query.
#[derive(Deserialize)]
struct ExportedQuery {
    frames: Vec<Frame>,
    samples: Vec<Sample>,
}

#[derive(Deserialize)]
struct Frame {
    name: String,
}

#[derive(Deserialize)]
struct Sample {
    operator: String,
    samples: u64,
    cpu_ns: u64,
    stack: Vec<usize>,
}

/// The samples in one marked function.
#[derive(Default)]
struct FunctionSamples {
    /// Time that the operator waited for Python workers, s.
    waited_s: f64,
    /// CPU time of the function as it measures itself, s.
    spent_s: f64,
    /// CPU time of the samples with the function on the stack, s.
    sampled_s: f64,
    /// CPU time of all samples of the operator in these queries, s.
    given_s: f64,
    samples: u64,
    /// Samples by the operator to which they were attributed.
    operators: BTreeMap<String, u64>,
}

impl Marked {
    /// Measures and writes `marked.md`.
    pub fn measure(&self, results: &Path) -> Result<()> {
        let page = Measuring::begin(results, &self.name()?, &ATTRIBUTION)?;
        let queries = self.queries()?;
        let spark = Spark::install_version(&self.spark, self.java_home.clone())?;
        let landed = self.run(&spark, &queries)?;
        page.finish(
            self.runs,
            figures(&queries, &landed),
            &self.body(&queries, &landed),
        )
    }

    /// The name of the page.
    fn name(&self) -> Result<String> {
        let mut name = "marked".to_owned();
        if self.spark != DEFAULT_SPARK {
            name += &format!("-spark-{}", self.spark);
        }
        if let Some(home) = &self.java_home {
            let release = java_release(home).with_context(|| {
                format!(
                    "{} is no JDK: its file `release` has no version",
                    home.display()
                )
            })?;
            name += &format!("-jdk-{release}");
        }
        Ok(name)
    }

    /// The ways that this Spark supports.
    fn ways(&self) -> impl Iterator<Item = Way> {
        let knows_javac = self.spark == DEFAULT_SPARK;
        WAYS.into_iter()
            .filter(move |(way, _)| knows_javac || *way != COMPILED_BY_JAVAC)
    }

    fn queries(&self) -> Result<Vec<Query>> {
        let queries: Queries = toml::from_str(include_str!("../assets/marked.toml"))?;
        let is_wanted = |query: &Query| self.only.is_empty() || self.only.contains(&query.mark);
        let wanted: Vec<Query> = queries.query.into_iter().filter(is_wanted).collect();
        if wanted.is_empty() {
            bail!("--only names no function of bench/assets/marked.toml");
        }
        Ok(wanted)
    }

    /// Runs the queries. Returns the samples of each function, by way and function.
    fn run(&self, spark: &Spark, queries: &[Query]) -> Result<BTreeMap<String, FunctionSamples>> {
        let functions = queries.iter().map(|query| query.mark.clone());
        let setup = Setup {
            marks: Some(Marks {
                functions: functions
                    .filter(|name| !NOT_OF_SQL.contains(&name.as_str()))
                    .collect(),
                mapped: format!("SELECT l_partkey FROM lineitem WHERE {ROWS}"),
            }),
            ..Setup::default()
        };
        // Adaptive execution could choose a join other than the hinted one.
        let conf = vec!["spark.sql.adaptive.enabled=false".to_owned()];
        let tool = Tool::Unfuse(format!("rate={}", self.rate), conf);
        let mut session = spark.start(&setup, &tool)?;
        let bar = ProgressBar::new((self.ways().count() * queries.len()) as u64).with_style(
            ProgressStyle::with_template("[{bar:24}] {pos} of {len}, {msg}, {elapsed}")?,
        );
        let mut landed: BTreeMap<String, FunctionSamples> = BTreeMap::new();
        for (way, settings) in self.ways() {
            for (key, value) in settings {
                session.ask("set", &format!("SET {key}={value}"), 0)?;
            }
            for query in queries {
                let name = key(way, query);
                bar.set_message(name.clone());
                for round in -1..self.runs.cast_signed() {
                    match session.ask_into(&name, &query.text(), round, &query.sink)? {
                        Answer::Took(took) if round >= 0 => {
                            let spent = took.marks.get(&query.mark).copied();
                            let spent = spent.with_context(|| format!("{name} was not called"))?;
                            landed.entry(name.clone()).or_default().spent_s += spent;
                        }
                        Answer::Took(_) => {}
                        Answer::Refused(why) => bail!("{} failed: {}", why.query, why.reason),
                    }
                }
                bar.inc(1);
            }
        }
        bar.finish_and_clear();
        let (profile, event_log) = session.finish()?;
        let profile = Profile::open(&profile)?;
        for execution in executions(&event_log)? {
            let Some(name) = execution.counted_query() else {
                continue;
            };
            let query = queries
                .iter()
                .find(|query| name.rsplit('/').next() == Some(&query.mark));
            if let Some((query, landed)) = query.zip(landed.get_mut(name)) {
                let selection = Selection {
                    query: Some(execution.id),
                    ..Selection::default()
                };
                let mut exported = Vec::new();
                export::json(&profile, selection, Level::Full, &mut exported)?;
                landed.add(query, &serde_json::from_slice(&exported)?);
                if query.mark == PYTHON {
                    landed.add_waits(query, &profile, selection);
                }
            }
        }
        Ok(landed)
    }

    fn body(&self, queries: &[Query], landed: &BTreeMap<String, FunctionSamples>) -> String {
        let mut body = format!(
            "Each query calls one marked Java function of about 50 µs in one operator of its plan; TPC-H SF 1, local[2], \
             Spark {}, {} Hz, {} of each query. *spent*: CPU time that the function measured by itself. *operator ÷ spent*: \
             CPU time that the operator got, over that; below 1, work of the function is missing from its operator. *in it*: samples with \
             the function on the stack; below 1, the compiler inlined the function and describes its code as that of a caller. *right*: \
             those of them that were attributed to the operator that calls the function, with Wilson's 95% interval. \
             A Python function runs in another process, which is not sampled: its operator shows the time as waiting.\n\n",
            self.spark,
            self.rate,
            counted(self.runs, "run")
        );
        for (way, settings) in self.ways() {
            let settings: Vec<String> = settings
                .iter()
                .map(|(key, value)| format!("`{key}={value}`"))
                .collect();
            let _ = writeln!(
                body,
                "### {way}\n\n{}| function | operator | spent, s | operator ÷ spent | in it ÷ spent | samples in it | right, % | given to others |\n\
                 |---|---|---|---|---|---|---|---|",
                match settings.join(", ") {
                    all if all.is_empty() => "Spark's default.\n\n".to_owned(),
                    all => format!("With {all}, and the settings above.\n\n"),
                }
            );
            for query in queries {
                if let Some(landed) = landed.get(&key(way, query))
                    && query.mark != PYTHON
                {
                    body += &landed.row(query);
                }
            }
            body.push('\n');
            for query in queries.iter().filter(|query| query.mark == PYTHON) {
                if let Some(landed) = landed.get(&key(way, query)) {
                    let (waited, spent) = (landed.waited_s, landed.spent_s);
                    let _ = writeln!(
                        body,
                        "The Python function spent {spent:.2} s of CPU time; {} waited {waited:.2} s for Python workers ({:.3} of it).\n",
                        query.operator,
                        waited / spent
                    );
                }
            }
        }
        body
    }
}

impl Query {
    /// The statement.
    fn text(&self) -> String {
        self.sql
            .replace("{mark}", &format!("mark_{}", self.mark))
            .replace("{rows}", ROWS)
            .replace("{few}", FEW)
    }

    /// Whether an operator of the plan is the one that calls the function.
    fn is_of(&self, operator: &str) -> bool {
        let end = operator.find(|c: char| !c.is_ascii_alphanumeric());
        operator[..end.unwrap_or(operator.len())] == self.operator
    }
}

impl FunctionSamples {
    fn add(&mut self, query: &Query, exported: &ExportedQuery) {
        let class = format!("Marks${}.", query.mark);
        for sample in &exported.samples {
            if query.is_of(&sample.operator) {
                self.given_s += sample.cpu_ns as f64 / 1e9;
            }
            let frames = sample
                .stack
                .iter()
                .filter_map(|index| exported.frames.get(*index));
            if frames.into_iter().any(|frame| frame.name.contains(&class)) {
                self.samples += sample.samples;
                self.sampled_s += sample.cpu_ns as f64 / 1e9;
                *self.operators.entry(sample.operator.clone()).or_default() += sample.samples;
            }
        }
    }

    fn add_waits(&mut self, query: &Query, profile: &Profile, selection: Selection) {
        let selection = Selection {
            time: Time::OffCpu,
            ..selection
        };
        let waits = Totals::new(profile, selection, By::Operator).rows;
        self.waited_s += waits
            .iter()
            .filter(|row| {
                row.waiting_for == Some(WaitReason::Python.name()) && query.is_of(&row.operator)
            })
            .map(|row| row.waiting_seconds)
            .sum::<f64>();
    }

    fn right(&self, query: &Query) -> u64 {
        let right = self.operators.iter().filter(|(name, _)| query.is_of(name));
        right.map(|(_, samples)| samples).sum()
    }

    fn row(&self, query: &Query) -> String {
        let (share, [low, high]) = stats::share(self.right(query) as f64, self.samples as f64);
        let others: Vec<String> = self
            .operators
            .iter()
            .filter(|(name, _)| !query.is_of(name))
            .map(|(name, samples)| format!("{name} {samples}"))
            .collect();
        format!(
            "| {} | {} | {:.2} | {:.3} | {:.3} | {} | {:.2} ({:.2} to {:.2}) | {} |\n",
            query.mark,
            query.operator,
            self.spent_s,
            self.given_s / self.spent_s,
            self.sampled_s / self.spent_s,
            self.samples,
            100.0 * share,
            100.0 * low,
            100.0 * high,
            others.join(", ").replace('|', "\\|")
        )
    }
}

/// The name of a query's runs.
fn key(way: &str, query: &Query) -> String {
    format!("{way}/{}", query.mark)
}

/// Figures of each way: the CPU time that operators miss, the share of right samples of all
/// functions, and the lowest share of a function.
fn figures(queries: &[Query], landed: &BTreeMap<String, FunctionSamples>) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (way, _) in WAYS {
        let of: Vec<(&Query, &FunctionSamples)> = queries
            .iter()
            .filter(|query| query.mark != PYTHON)
            .filter_map(|query| Some((query, landed.get(&key(way, query))?)))
            .collect();
        if of.is_empty() {
            continue;
        }
        let shares = of.iter().map(|(query, landed)| {
            let share = stats::share(landed.right(query) as f64, landed.samples as f64);
            (share, query.mark.as_str())
        });
        let right: u64 = of.iter().map(|(query, landed)| landed.right(query)).sum();
        let all: u64 = of.iter().map(|(_, landed)| landed.samples).sum();
        let figure = |name: &str, what: &str, (share, [low, high]): (f64, [f64; 2])| {
            Figure::new(
                &format!("{name}_{}", slug(way)),
                what,
                100.0 * share,
                "%",
                2,
            )
            .within(Some([100.0 * low, 100.0 * high]))
        };
        let spent: f64 = of.iter().map(|(_, landed)| landed.spent_s).sum();
        let missing: f64 = of
            .iter()
            .map(|(_, landed)| (landed.spent_s - landed.given_s).max(0.0))
            .sum();
        figures.push(Figure::new(
            &format!("missing_{}", slug(way)),
            &format!("{way}: CPU time of the functions that their operators did not get"),
            100.0 * missing / spent,
            "%",
            2,
        ));
        figures.push(figure(
            "right",
            &format!("{way}: marked samples on the operator that calls the function"),
            stats::share(right as f64, all as f64),
        ));
        if let Some((lowest, mark)) = shares.min_by(|a, b| a.0.0.total_cmp(&b.0.0)) {
            figures.push(figure(
                "lowest",
                &format!("{way}: the same of the function with the lowest share ({mark})"),
                lowest,
            ));
        }
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_query_has_its_mark_and_rows() {
        let all = Marked {
            rate: 1,
            runs: 1,
            spark: DEFAULT_SPARK.to_owned(),
            java_home: None,
            only: Vec::new(),
        };
        let queries = all.queries().expect("the file");
        assert!(queries.len() >= 21);
        for query in queries {
            let text = query.text();
            let has_table = ["MapElements", "Scan", "Write"].contains(&query.mark.as_str());
            assert!(!text.contains('{'), "{text}");
            assert_eq!(
                text.matches("mark_").count(),
                usize::from(!has_table),
                "{text}"
            );
        }
    }

    #[test]
    fn a_sample_is_right_on_the_operator_of_that_name_only() {
        let query = Query {
            mark: "Sort".to_owned(),
            operator: "Sort".to_owned(),
            sql: String::new(),
            sink: nowhere(),
        };
        assert!(query.is_of("Sort") && query.is_of("Sort [l_suppkey ASC]"));
        assert!(!query.is_of("SortMergeJoin") && !query.is_of("[headings]"));
    }
}
