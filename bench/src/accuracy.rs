//! The experiment of the thesis's section 5.2: overhead put into one operator of the canonical query, or of another one,
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
use crate::page::{ATTRIBUTION, Figure, Measuring, slug};
use crate::plot::{self, Bar};
use crate::spark::{AsyncProfiler, Run, Setup, Spark, Tool, Work, canonical, statements_of};
use crate::{foreign, stats, tools};

/// Overhead put into one operator of a query, and how much of it is found there
#[derive(Debug, Args)]
pub struct Accuracy {
    /// Rates, Hz
    #[arg(long, value_delimiter = ',', default_value = "2,20,200,1000")]
    pub rates: Vec<u32>,
    /// Another query over TPC-H's tables than the canonical one: a file with the query after a line `-- reference`, and after
    /// a line `-- OPERATOR` each the query with work (`spin(value, rounds)`, of and to BIGINT) in that operator, as
    /// `unfuse top` names it; `-- A + B` where it may be in either
    #[arg(long, value_name = "FILE", conflicts_with_all = ["work", "async_profiler", "dataflint"])]
    pub sql: Option<PathBuf>,
    /// Runs of each query that count
    #[arg(long, default_value_t = 5)]
    pub runs: u32,
    /// Runs before
    #[arg(long, default_value_t = 3)]
    pub warm_up: u32,
    /// How much work the identity function does: rounds of arithmetic a row
    #[arg(long, default_value_t = 2500)]
    pub work: u32,
    /// Also async-profiler at these rates, Hz: by methods, with Spark's own splitting of consume functions (not the thesis's MLSS,
    /// which patches Spark so that every operator is split) and without, and by lines
    #[arg(long, value_name = "RATES", value_delimiter = ',', num_args = 0..=1, default_missing_value = "200")]
    pub async_profiler: Vec<u32>,
    /// Also the DataFlint plugin's times of operators: a jar with its instrumentation for Spark 4
    #[arg(long, value_name = "JAR")]
    pub dataflint: Option<PathBuf>,
}

/// The operators of the canonical query, as the columns of table A.1.
const OPERATORS: [&str; 4] = ["scan", "filter", "join", "aggregate"];
/// The query that no other stands for.
const REFERENCE: &str = "reference";

/// The queries, and whose samples are told apart.
struct Experiment {
    /// The queries' names and texts; those that are no reference are named after the column that they put work into.
    queries: BTreeMap<String, String>,
    columns: Vec<String>,
    /// Whether it is the canonical one: its columns are [`OPERATORS`], and its largest stage counts, not all.
    canonical: bool,
}

/// Samples of one run, by operator, and Spark's CPU time.
#[derive(Debug, Clone)]
struct Distribution {
    /// Those that have a column, in order, and the sum of all others.
    operators: Vec<f64>,
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
        let name = self.name();
        let page = Measuring::begin(results, &name, &ATTRIBUTION)?;
        let experiment = self.experiment()?;
        let spark = Spark::install("1")?;
        let subjects = self.subjects();
        let bar = ProgressBar::new(subjects.len() as u64).with_style(ProgressStyle::with_template(
            "[{bar:24}] {pos} of {len}, {msg}, {elapsed}",
        )?);
        let mut failed = Vec::new();
        let (mut summary, mut tables, mut bars) = (String::new(), String::new(), Vec::new());
        let mut figures = Vec::new();
        for subject in &subjects {
            bar.set_message(subject.name.clone());
            // Hours of other measurements must not go with one that fails.
            let measured = match self.run(&spark, &experiment, subject) {
                Ok(measured) => measured,
                Err(e) => {
                    failed.push(format!("{}: {e:#}", subject.name));
                    continue;
                }
            };
            let reference = &measured[REFERENCE];
            let outcomes: Vec<Outcome> = experiment
                .altered()
                .map(|(at, name)| outcome(at, reference, &measured[name]))
                .collect();
            summary += &summary_row(&subject.name, reference, &outcomes);
            tables += &table(&subject.name, &experiment.columns, reference, &outcomes);
            for outcome in &outcomes {
                let errors: Vec<f64> = outcome.runs.iter().map(|run| run.3.abs()).collect();
                let (mean, half) = stats::mean_and_half_width(&errors);
                figures.push(figure(
                    &experiment.columns[outcome.operator],
                    &subject.name,
                    &errors,
                ));
                bars.push(Bar {
                    group: subject.name.clone(),
                    series: experiment.columns[outcome.operator].clone(),
                    value: 100.0 * mean,
                    error: 100.0 * half,
                });
            }
            bar.inc(1);
        }
        bar.finish_and_clear();
        if bars.is_empty() {
            bail!("nothing was measured: {}", failed.join("; "));
        }
        fs::create_dir_all(results)?;
        plot::bars(
            &results.join(format!("{name}.svg")),
            "mean |E|, % (95% confidence interval)",
            &bars,
        )?;
        let body = format!(
            "{}{summary}\n![mean error]({name}.svg)\n\n{tables}",
            self.head(&experiment)
        );
        page.finish(self.runs, figures, &body)?;
        if !failed.is_empty() {
            bail!("not measured: {}", failed.join("; "));
        }
        Ok(())
    }

    /// What the results are called after.
    fn name(&self) -> String {
        match (
            self.sql.as_deref().and_then(Path::file_stem),
            &self.dataflint,
        ) {
            (Some(stem), _) => format!("accuracy-{}", stem.to_string_lossy()),
            (None, Some(_)) => "accuracy-dataflint".to_owned(),
            (None, None) => "accuracy".to_owned(),
        }
    }

    fn head(&self, experiment: &Experiment) -> String {
        let (query, work, of) = match &self.sql {
            None => (
                "canonical query".to_owned(),
                format!("does {} rounds of arithmetic a row, in", self.work),
                "of the stage",
            ),
            Some(path) => (
                format!("the query of {}", path.display()),
                "is".to_owned(),
                "of all stages",
            ),
        };
        let altered: Vec<&str> = experiment.altered().map(|(_, name)| name).collect();
        format!(
            "The experiment of section 5.2: TPC-H SF 1, {query}, local[2], Spark 4.3; {} runs of the reference \
             and of each altered query after {} to warm up, in one JVM for each row. The identity function {work} \
             a Java UDF. E = (o − t) / t with t = T − mean T of the reference (Spark's CPU time {of}) and \
             o = T (s − mean s of the reference) / S.\n\n\
             | profiler | mean \\|E\\| {}, % | mean E (bias) {}, % | \
             in no operator, % | \n|---|{}---|---|\n",
            self.runs,
            self.warm_up,
            altered.join(", % | "),
            altered.join(", "),
            "---|".repeat(altered.len()),
        )
    }

    fn subjects(&self) -> Vec<Subject> {
        let mut subjects = Vec::new();
        let kinds: &[(&str, Kind)] = &[
            ("unfuse", Kind::Unfuse),
            (
                "async-profiler by methods, Spark splits consume functions",
                Kind::Methods(true),
            ),
            (
                "async-profiler by methods, Spark as it is",
                Kind::Methods(false),
            ),
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

    /// The reference and the altered queries.
    fn experiment(&self) -> Result<Experiment> {
        let Some(path) = &self.sql else {
            return Ok(Experiment {
                queries: self.canonical(),
                columns: OPERATORS.map(str::to_owned).to_vec(),
                canonical: true,
            });
        };
        let queries = statements_of(path)?;
        let columns: Vec<String> = queries
            .keys()
            .filter(|name| *name != REFERENCE)
            .cloned()
            .collect();
        if columns.is_empty() || !queries.contains_key(REFERENCE) {
            bail!(
                "{} needs a query after a line `-- {REFERENCE}`, and one after a line `-- OPERATOR`",
                path.display()
            );
        }
        Ok(Experiment {
            queries,
            columns,
            canonical: false,
        })
    }

    fn canonical(&self) -> BTreeMap<String, String> {
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
            (REFERENCE.to_owned(), canonical(date, key, group)),
            ("filter".to_owned(), canonical(&filter, key, group)),
            ("join".to_owned(), canonical(date, &join, group)),
            ("aggregate".to_owned(), canonical(date, key, &aggregate)),
        ])
    }

    /// Distributions of the runs, by query.
    fn run(
        &self,
        spark: &Spark,
        experiment: &Experiment,
        subject: &Subject,
    ) -> Result<BTreeMap<String, Vec<Distribution>>> {
        let mut work = Work {
            warm_up: self.warm_up,
            rounds: self.runs,
            queries: experiment.queries.clone(),
            setup: Setup {
                spin: true,
                ..Setup::default()
            },
        };
        let tool = match (&self.dataflint, subject.kind) {
            (Some(jar), Kind::Durations) => tools::dataflint(jar)?,
            _ => subject.tool(spark, &mut work)?,
        };
        let run = spark.run(&work, &tool)?;
        let counted: Vec<(Execution, String, String)> = executions(&run.event_log)?
            .into_iter()
            .filter_map(|execution| {
                let (query, round) = execution.description.rsplit_once(' ')?;
                let counts = work.queries.contains_key(query) && !round.starts_with('-');
                let (query, recording) = (query.to_owned(), format!("{query}_{round}"));
                counts.then_some((execution, query, recording))
            })
            .collect();
        if subject.kind == Kind::Lines {
            let folded: Result<Vec<_>> = counted
                .iter()
                .map(|(execution, _, recording)| {
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
        for (execution, query, recording) in counted {
            let (stages, cpu_s) = experiment.counted(&execution);
            let (operators, all) = match &profile {
                Some(profile) => experiment.by_regions(profile, execution.id, stages),
                None if subject.kind == Kind::Durations => {
                    let durations = by_durations(timings.get(&execution.stage));
                    (durations.to_vec(), cpu_s * 1e3)
                }
                None => by_methods(&spark.scratch().join(format!("{recording}.collapsed")))?,
            };
            found.entry(query).or_default().push(Distribution {
                operators,
                all,
                cpu_s,
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

impl Experiment {
    /// The columns that a query puts work into, with their places.
    fn altered(&self) -> impl Iterator<Item = (usize, &str)> {
        let columns = self.columns.iter().map(String::as_str).enumerate();
        columns.filter(|(_, name)| self.queries.contains_key(*name))
    }

    /// The stages of an execution that count, and their CPU time, s.
    fn counted<'a>(&self, execution: &'a Execution) -> (&'a [i32], f64) {
        if self.canonical {
            (std::slice::from_ref(&execution.stage), execution.cpu_s)
        } else {
            (&execution.stages, execution.all_cpu_s)
        }
    }

    /// Whose samples an operator's are.
    fn column(&self, operator: &str) -> Option<usize> {
        if self.canonical {
            return match operator {
                "Filter" => Some(1),
                "BroadcastHashJoin" => Some(2),
                // The projection computes the grouping key.
                "HashAggregate" | "Project" => Some(3),
                name if name.contains("Scan") || name == "ColumnarToRow" => Some(0),
                _ => None,
            };
        }
        let named = |column: &String| column.split('+').any(|name| name.trim() == operator);
        self.columns.iter().position(named)
    }

    /// Samples by operator in stages of a profile, and all of these stages.
    fn by_regions(&self, profile: &Profile, query: i64, stages: &[i32]) -> (Vec<f64>, f64) {
        let (mut operators, mut all) = (vec![0.0; self.columns.len() + 1], 0.0);
        for stage in stages {
            let selection = Selection {
                query: Some(query),
                stage: Some(*stage),
                ..Selection::default()
            };
            let totals = Totals::of(profile, selection, By::Operator);
            all += totals.samples as f64;
            for row in totals.rows.iter().filter(|row| !row.heading) {
                let at = self.column(&row.operator).unwrap_or(self.columns.len());
                operators[at] += row.samples as f64;
            }
        }
        (operators, all)
    }
}

/// Profiles of many runs fill a disk.
fn drop_run(run: &Run) {
    let _ = run.event_log.ancestors().nth(2).map(fs::remove_dir_all);
}

/// What the plugin shows for the operators of a stage, ms. It does not wrap the aggregation, for which it shows what Spark
/// measures.
fn by_durations(timings: Option<&HashMap<(String, String), f64>>) -> [f64; 5] {
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
        0.0,
    ]
}

/// As much as methods tell: a consume function split off is named after its operator; what is in the
/// main loop itself can only be put down to the scan that drives it.
fn by_methods(collapsed: &Path) -> Result<(Vec<f64>, f64)> {
    let text = fs::read_to_string(collapsed)
        .with_context(|| format!("async-profiler left no {}", collapsed.display()))?;
    fs::remove_file(collapsed)?;
    let mut operators = [0.0; 5];
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
    Ok((operators.to_vec(), operators.iter().sum()))
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

/// The mean |E| for work in an operator. An error is never below 0, so neither is its interval.
fn figure(operator: &str, subject: &str, errors: &[f64]) -> Figure {
    let errors: Vec<f64> = errors.iter().map(|error| 100.0 * error).collect();
    let name = format!("{}_{}", slug(operator), slug(subject));
    let what = format!("mean \\|E\\| of {operator}: {subject}");
    Figure::from_runs(&name, &what, &errors, "%", 2).not_negative()
}

fn summary_row(name: &str, reference: &[Distribution], outcomes: &[Outcome]) -> String {
    let mut row = format!("| {name} |");
    let mut bias = Vec::new();
    for outcome in outcomes {
        let errors: Vec<f64> = outcome.runs.iter().map(|run| 100.0 * run.3).collect();
        let absolute: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
        let (mean, half) = stats::mean_and_half_width(&absolute);
        let _ = write!(row, " {mean:.2} ± {half:.2} |");
        bias.push(format!("{:+.2}", stats::mean_and_half_width(&errors).0));
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
fn table(
    name: &str,
    columns: &[String],
    reference: &[Distribution],
    outcomes: &[Outcome],
) -> String {
    let mut table = format!(
        "### {name}\n\n| test | {} | other operators | no operator | S | T, s | o, s | t, s | E |\n|---|{}---|---|---|---|---|---|\n",
        columns.join(" | "),
        "---|".repeat(columns.len() + 1)
    );
    let row = |test: &str, run: &Distribution, rest: &str| {
        let mut row = format!("| {test} |");
        let none = run.all - run.operators.iter().sum::<f64>();
        for samples in run.operators.iter().chain([&none, &run.all]) {
            let _ = write!(row, " {samples:.0} |");
        }
        let _ = writeln!(row, " {:.3} | {rest} |", run.cpu_s);
        row
    };
    for run in reference {
        table += &row("reference", run, " | | ");
    }
    for outcome in outcomes {
        for (run, observed, expected, error) in &outcome.runs {
            let rest = format!("{observed:.3} | {expected:.3} | {:+.2}%", 100.0 * error);
            table += &row(
                &format!("altered {}", columns[outcome.operator]),
                run,
                &rest,
            );
        }
    }
    table + "\n"
}
