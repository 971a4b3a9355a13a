//! The experiment of the thesis's section 5.2: overhead put into one operator of the canonical query,
//! and how much of it a profiler finds there.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use unfuse_postprocess::{By, Profile, Selection, Totals};

use crate::event_log::{Execution, Timings, executions, timings};
use crate::plot::{self, Bar};
use crate::spark::{AsyncProfiler, Run, Setup, Spark, Tool, Work, canonical};
use crate::{foreign, report, tools};

/// Overhead put into one operator of the canonical query, and how much of it is found there
#[derive(Debug, Args)]
pub struct Accuracy {
    /// Rates, Hz
    #[arg(long, value_delimiter = ',', default_value = "2,20,200,1000")]
    pub rates: Vec<u32>,
    /// Runs of each query that count
    #[arg(long, default_value_t = 5)]
    pub runs: u32,
    /// Runs before
    #[arg(long, default_value_t = 3)]
    pub warm_up: u32,
    /// How much work the identity function does: rounds of arithmetic a row
    #[arg(long, default_value_t = 2500)]
    pub work: u32,
    /// Also async-profiler at these rates, Hz: by methods, with Spark's consume functions split (MLSS) and
    /// not, and by lines
    #[arg(long, value_name = "RATES", value_delimiter = ',', num_args = 0..=1, default_missing_value = "200")]
    pub async_profiler: Vec<u32>,
    /// Also the DataFlint plugin's times of operators: a jar with its instrumentation for Spark 4
    #[arg(long, value_name = "JAR")]
    pub dataflint: Option<PathBuf>,
}

/// The operators of the pipeline, as the columns of table A.1.
const OPERATORS: [&str; 4] = ["scan", "filter", "join", "aggregate"];

/// Samples of one run, by operator, and Spark's CPU time.
#[derive(Debug, Clone)]
struct Distribution {
    operators: [f64; 4],
    all: f64,
    cpu_s: f64,
}

/// A profiler at a rate.
struct Subject {
    name: String,
    rate: u32,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Unfuse,
    /// async-profiler; whether consume functions are split.
    Methods(bool),
    /// async-profiler's recordings with lines, and our regions to tell what the lines are.
    Lines,
    /// What the DataFlint plugin's wrappers measure around operators, as it is: with all that is fused above or below.
    Durations,
}

/// What came out for one altered operator.
struct Outcome {
    operator: usize,
    /// Each run's o, t (s) and E.
    runs: Vec<(Distribution, f64, f64, f64)>,
}

impl Accuracy {
    /// Measures and writes `accuracy.md` and `accuracy.svg`.
    pub fn measure(&self, results: &Path) -> Result<()> {
        if self.runs == 0 || self.rates.is_empty() {
            bail!("--runs and --rates must not be empty");
        }
        let spark = Spark::install("1")?;
        let subjects = self.subjects();
        let bar = ProgressBar::new(subjects.len() as u64).with_style(ProgressStyle::with_template(
            "[{bar:24}] {pos} of {len}, {msg}, {elapsed}",
        )?);
        let mut failed = Vec::new();
        let (mut summary, mut tables, mut bars) = (String::new(), String::new(), Vec::new());
        for subject in &subjects {
            bar.set_message(subject.name.clone());
            // Hours of other measurements must not go with one that fails.
            let measured = match self.run(&spark, subject) {
                Ok(measured) => measured,
                Err(e) => {
                    failed.push(format!("{}: {e:#}", subject.name));
                    continue;
                }
            };
            let reference = &measured["reference"];
            let outcomes: Vec<Outcome> = (1..OPERATORS.len())
                .map(|operator| outcome(operator, reference, &measured[OPERATORS[operator]]))
                .collect();
            summary += &summary_row(&subject.name, reference, &outcomes);
            tables += &table(&subject.name, reference, &outcomes);
            for outcome in &outcomes {
                let errors: Vec<f64> = outcome.runs.iter().map(|run| run.3.abs()).collect();
                let (mean, half) = report::mean_and_half_width(&errors);
                bars.push(Bar {
                    group: subject.name.clone(),
                    series: OPERATORS[outcome.operator].to_owned(),
                    value: 100.0 * mean,
                    error: 100.0 * half,
                });
            }
            bar.inc(1);
        }
        bar.finish_and_clear();
        fs::create_dir_all(results)?;
        plot::bars(
            &results.join("accuracy.svg"),
            "mean |E|, % (95% confidence interval)",
            &bars,
        )?;
        let body = format!(
            "{}{summary}\n![mean error](accuracy.svg)\n\n{tables}",
            self.head()
        );
        report::write(
            results,
            "accuracy",
            &format!("unfuse-bench accuracy {}", self.arguments()),
            &body,
        )?;
        if !failed.is_empty() {
            bail!("not measured: {}", failed.join("; "));
        }
        Ok(())
    }

    fn head(&self) -> String {
        format!(
            "The experiment of section 5.2: TPC-H SF 1, canonical query, local[2], Spark 4.3; {} runs of the reference \
             and of each altered query after {} to warm up, in one JVM for each row. The identity function does {} \
             rounds of arithmetic a row, in a Java UDF. \
             E = (o − t) / t with t = T − mean T of the reference (Spark's CPU time of the stage) and \
             o = T (s − mean s of the reference) / S.\n\n\
             | profiler | mean \\|E\\| filter, % | join, % | aggregate, % | mean E (bias) filter, join, aggregate, % | \
             in no operator, % | \n|---|---|---|---|---|---|\n",
            self.runs, self.warm_up, self.work
        )
    }

    fn arguments(&self) -> String {
        let joined = |rates: &[u32]| {
            let rates: Vec<String> = rates.iter().map(u32::to_string).collect();
            rates.join(",")
        };
        format!(
            "--rates {} --runs {} --warm-up {} --work {}{}",
            joined(&self.rates),
            self.runs,
            self.warm_up,
            self.work,
            if self.async_profiler.is_empty() {
                String::new()
            } else {
                format!(" --async-profiler {}", joined(&self.async_profiler))
            }
        ) + &self
            .dataflint
            .as_ref()
            .map_or_else(String::new, |jar| format!(" --dataflint {}", jar.display()))
    }

    fn subjects(&self) -> Vec<Subject> {
        let mut subjects = Vec::new();
        let kinds: &[(&str, Kind)] = &[
            ("unfuse", Kind::Unfuse),
            ("async-profiler, consume split (MLSS)", Kind::Methods(true)),
            ("async-profiler, not split", Kind::Methods(false)),
            ("async-profiler, lines", Kind::Lines),
        ];
        for (name, kind) in kinds {
            let rates = if *kind == Kind::Unfuse {
                &self.rates
            } else {
                &self.async_profiler
            };
            for rate in rates {
                subjects.push(Subject {
                    name: format!("{name}, {rate} Hz"),
                    rate: *rate,
                    kind: *kind,
                });
            }
        }
        subjects.extend(self.dataflint.is_some().then(|| Subject {
            name: "DataFlint, durations of its nodes".to_owned(),
            rate: 0,
            kind: Kind::Durations,
        }));
        subjects
    }

    /// The reference and the three altered queries.
    fn queries(&self) -> BTreeMap<String, String> {
        let (date, key, group) = (
            "l_commitdate",
            "l_suppkey",
            "(l_suppkey * 100) + s_nationkey",
        );
        let spin = |value: &str| format!("spin({value}, {})", self.work);
        // No column that the reference does not read, so that the scan stays the same.
        let filter = format!("date_add({date}, cast({} - {key} AS int))", spin(key));
        let (join, aggregate) = (spin(key), spin(group));
        BTreeMap::from([
            ("reference".to_owned(), canonical(date, key, group)),
            ("filter".to_owned(), canonical(&filter, key, group)),
            ("join".to_owned(), canonical(date, &join, group)),
            ("aggregate".to_owned(), canonical(date, key, &aggregate)),
        ])
    }

    /// Distributions of the runs, by query.
    fn run(&self, spark: &Spark, subject: &Subject) -> Result<BTreeMap<String, Vec<Distribution>>> {
        let mut work = Work {
            warm_up: self.warm_up,
            rounds: self.runs,
            queries: self.queries(),
            setup: Setup {
                spin: true,
                async_profiler: None,
            },
        };
        let tool = match (&self.dataflint, subject.kind) {
            (Some(jar), Kind::Durations) => with_dataflint(jar)?,
            _ => subject.tool(spark, &mut work)?,
        };
        let run = spark.run(&work, &tool)?;
        let counted: Vec<(Execution, String)> = executions(&run.event_log)?
            .into_iter()
            .filter_map(|execution| {
                let (query, round) = execution.description.split_once(' ')?;
                let counts = work.queries.contains_key(query) && !round.starts_with('-');
                let recording = format!("{query}_{round}");
                counts.then_some((execution, recording))
            })
            .collect();
        if subject.kind == Kind::Lines {
            let folded: Result<Vec<_>> = counted
                .iter()
                .map(|(execution, recording)| {
                    let path = spark.scratch().join(format!("{recording}.jfr"));
                    Ok((execution.clone(), tools::folded_with_lines(&path)?))
                })
                .collect();
            foreign::add(&run.profile, &folded?)?;
        }
        let profile = match subject.kind {
            Kind::Unfuse | Kind::Lines => Some(Profile::open(&run.profile)?),
            Kind::Methods(_) | Kind::Durations => None,
        };
        let timings = match subject.kind {
            Kind::Durations => timings(&run.event_log)?,
            _ => Timings::new(),
        };
        let mut found: BTreeMap<String, Vec<Distribution>> = BTreeMap::new();
        for (execution, recording) in counted {
            let (operators, all) = match &profile {
                Some(profile) => by_regions(profile, execution.id, execution.stage),
                None if subject.kind == Kind::Durations => (
                    by_durations(timings.get(&execution.stage)),
                    execution.cpu_s * 1e3,
                ),
                None => by_methods(&spark.scratch().join(format!("{recording}.collapsed")))?,
            };
            let query = execution.description.split(' ').next().unwrap_or_default();
            found
                .entry(query.to_owned())
                .or_default()
                .push(Distribution {
                    operators,
                    all,
                    cpu_s: execution.cpu_s,
                });
        }
        if found.len() != work.queries.len() {
            bail!("the event log {} lacks queries", run.event_log.display());
        }
        drop_run(&run);
        Ok(found)
    }
}

impl Subject {
    /// What to run with, and what the job has to do for it.
    fn tool(&self, spark: &Spark, work: &mut Work) -> Result<Tool> {
        if self.kind == Kind::Unfuse {
            return Ok(Tool::Unfuse(format!("rate={}", self.rate), Vec::new()));
        }
        let profiler = tools::async_profiler()?;
        work.setup.async_profiler = Some(AsyncProfiler {
            library: profiler.library,
            interval: format!("{}us", 1_000_000 / self.rate),
            into: spark.scratch().to_owned(),
            kind: if self.kind == Kind::Lines {
                "jfr"
            } else {
                "collapsed"
            },
        });
        let mut conf = vec![format!(
            "spark.driver.extraClassPath={}",
            profiler.jar.display()
        )];
        Ok(match self.kind {
            // Our agent takes no sample here; it tells which line is whose.
            Kind::Lines | Kind::Unfuse | Kind::Durations => Tool::Unfuse("rate=0".to_owned(), conf),
            Kind::Methods(split) => {
                conf.push(format!(
                    "spark.sql.codegen.splitConsumeFuncByOperator={split}"
                ));
                Tool::Other {
                    java: Vec::new(),
                    conf,
                }
            }
        })
    }
}

/// The plugin, with its wrappers around operators.
fn with_dataflint(jar: &Path) -> Result<Tool> {
    let jar = fs::canonicalize(jar).with_context(|| format!("no jar {}", jar.display()))?;
    let jar = jar.display();
    let conf = vec![
        format!("spark.driver.extraClassPath={jar}"),
        "spark.sql.extensions=org.apache.spark.dataflint.DataFlintInstrumentationExtension"
            .to_owned(),
        "spark.dataflint.instrument.spark.enabled=true".to_owned(),
    ];
    Ok(Tool::Other {
        java: Vec::new(),
        conf,
    })
}

/// Profiles of many runs fill a disk.
fn drop_run(run: &Run) {
    let _ = run.event_log.ancestors().nth(2).map(fs::remove_dir_all);
}

/// Samples by operator in a stage of a profile, and all of the stage.
fn by_regions(profile: &Profile, query: i64, stage: i32) -> ([f64; 4], f64) {
    let selection = Selection {
        query: Some(query),
        stage: Some(stage),
        ..Selection::default()
    };
    let totals = Totals::of(profile, selection, By::Operator);
    let mut operators = [0.0; 4];
    for row in totals.rows.iter().filter(|row| !row.heading) {
        let place = match row.operator.as_str() {
            "Filter" => 1,
            "BroadcastHashJoin" => 2,
            // The projection computes the grouping key.
            "HashAggregate" | "Project" => 3,
            name if name.contains("Scan") || name == "ColumnarToRow" => 0,
            _ => continue,
        };
        operators[place] += row.samples as f64;
    }
    (operators, totals.samples as f64)
}

/// What the plugin shows for the operators of a stage, ms. It does not wrap the aggregation, for which it shows what Spark
/// measures.
fn by_durations(timings: Option<&HashMap<(String, String), f64>>) -> [f64; 4] {
    let of = |operator: &str, metric: &str| {
        let key = (operator.to_owned(), metric.to_owned());
        timings
            .and_then(|timings| timings.get(&key))
            .copied()
            .unwrap_or(0.0)
    };
    [
        of("DataFlintScan parquet", "duration"),
        of("DataFlintFilter", "duration"),
        of("DataFlintBroadcastHashJoin", "duration"),
        of("HashAggregate", "time in aggregation build"),
    ]
}

/// As much as methods tell: a consume function split off is named after its operator; what is in the
/// main loop itself can only be put down to the scan that drives it.
fn by_methods(collapsed: &Path) -> Result<([f64; 4], f64)> {
    let text = fs::read_to_string(collapsed)
        .with_context(|| format!("async-profiler left no {}", collapsed.display()))?;
    fs::remove_file(collapsed)?;
    let mut operators = [0.0; 4];
    for (stack, count) in foreign::pipeline(&text) {
        let innermost = stack
            .rsplit(';')
            .find(|frame| frame.contains("GeneratedIteratorForCodegenStage"));
        let method = innermost.and_then(|frame| frame.rsplit('.').next());
        let place = match method.unwrap_or_default() {
            method if method.starts_with("filter_") => 1,
            method if method.starts_with("bhj_") => 2,
            method
                if method.starts_with("hashAgg_doConsume")
                    || method.starts_with("hashAgg_doAggregate_")
                    || method.starts_with("project_") =>
            {
                3
            }
            _ => 0,
        };
        operators[place] += count as f64;
    }
    Ok((operators, operators.iter().sum()))
}

/// E of each run with overhead in `operator`.
fn outcome(operator: usize, reference: &[Distribution], altered: &[Distribution]) -> Outcome {
    let mean = |of: &dyn Fn(&Distribution) -> f64| {
        reference.iter().map(of).sum::<f64>() / reference.len() as f64
    };
    let base_cpu = mean(&|run| run.cpu_s);
    let base_samples = mean(&|run| run.operators[operator]);
    let runs = altered
        .iter()
        .map(|run| {
            let expected = run.cpu_s - base_cpu;
            let observed = run.cpu_s * (run.operators[operator] - base_samples) / run.all.max(1.0);
            let error = (observed - expected) / expected;
            (run.clone(), observed, expected, error)
        })
        .collect();
    Outcome { operator, runs }
}

fn summary_row(name: &str, reference: &[Distribution], outcomes: &[Outcome]) -> String {
    let mut row = format!("| {name} |");
    let mut bias = Vec::new();
    for outcome in outcomes {
        let errors: Vec<f64> = outcome.runs.iter().map(|run| 100.0 * run.3).collect();
        let absolute: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
        let (mean, half) = report::mean_and_half_width(&absolute);
        let _ = write!(row, " {mean:.2} ± {half:.2} |");
        bias.push(format!("{:+.2}", report::mean_and_half_width(&errors).0));
    }
    let runs = || {
        let altered = outcomes.iter().flat_map(|outcome| &outcome.runs);
        reference.iter().chain(altered.map(|run| &run.0))
    };
    let all: f64 = runs().map(|run| run.all).sum();
    let in_operators: f64 = runs().map(|run| run.operators.iter().sum::<f64>()).sum();
    // Times that include those of other operators leave nothing, and less.
    let in_none = match 100.0 * (1.0 - in_operators / all) {
        share if share < -1.0 => "inclusive".to_owned(),
        share => format!("{share:.2}"),
    };
    let _ = writeln!(row, " {} | {in_none} |", bias.join(", "));
    row
}

/// Every run, as table A.1.
fn table(name: &str, reference: &[Distribution], outcomes: &[Outcome]) -> String {
    let mut table = format!(
        "### {name}\n\n| test | scan | filter | join | aggregate | other | S | T, s | o, s | t, s | E |\n\
         |---|---|---|---|---|---|---|---|---|---|---|\n"
    );
    let row = |test: &str, run: &Distribution, rest: &str| {
        let [scan, filter, join, aggregate] = run.operators;
        let other = run.all - run.operators.iter().sum::<f64>();
        format!(
            "| {test} | {scan:.0} | {filter:.0} | {join:.0} | {aggregate:.0} | {other:.0} | {:.0} | {:.3} | {rest} |\n",
            run.all, run.cpu_s
        )
    };
    for run in reference {
        table += &row("reference", run, " | | ");
    }
    for outcome in outcomes {
        for (run, observed, expected, error) in &outcome.runs {
            let rest = format!("{observed:.3} | {expected:.3} | {:+.2}%", 100.0 * error);
            table += &row(
                &format!("altered {}", OPERATORS[outcome.operator]),
                run,
                &rest,
            );
        }
    }
    table + "\n"
}
