//! The experiment of the thesis's section 5.2: adds overhead to one operator of the canonical query, or of another one, and
//! measures how much of it a profiler finds there.

mod experiment;
mod subjects;
mod text;
pub mod thesis;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use crate::page::{ATTRIBUTION, Measuring};
use crate::plot;
use crate::spark::Spark;
use experiment::Experiment;
use subjects::{Kind, Split, Subject};
use text::Findings;
use thesis::Calibration;

/// Overhead put into one operator of a query, and how much of it is found there
#[derive(Debug, Args)]
pub struct Accuracy {
    /// Rates, Hz
    #[arg(long, value_delimiter = ',', default_value = "2,20,200,1000")]
    pub rates: Vec<u32>,
    /// The thesis's proportions of work and shares of rows, and beside unfuse all others: MLSS with all operators split,
    /// async-profiler and the JDK's Flight Recorder by lines, Spark's profiler connector and DataFlint if their jars are given
    #[arg(long, conflicts_with_all = ["sql", "work", "async_profiler"])]
    pub thesis: bool,
    /// Rates of the others with --thesis, Hz
    #[arg(
        long,
        value_name = "RATES",
        value_delimiter = ',',
        default_value = "200",
        requires = "thesis"
    )]
    pub beside: Vec<u32>,
    /// How many times over the rows of `lineitem` are there with --thesis: 9 or 10 give the thesis's CPU time
    #[arg(long, default_value_t = LINEITEMS, requires = "thesis")]
    pub lineitems: u32,
    /// Another query over TPC-H's tables than the canonical one: a file with the query after a line `-- reference`, and after
    /// a line `-- OPERATOR` each the query with work (`spin(value, rounds)`, of and to BIGINT) in that operator, as
    /// `unfuse top` names it; `-- A + B` where it may be in either
    #[arg(long, value_name = "FILE", conflicts_with_all = ["work", "async_profiler", "dataflint"])]
    pub sql: Option<PathBuf>,
    /// Runs of each query that count
    #[arg(long, default_value_t = 5)]
    pub runs: u32,
    /// Runs before; 2 with --thesis, whose queries take long
    #[arg(long, default_value_t = 3, default_value_if("thesis", "true", "2"))]
    pub warm_up: u32,
    /// How much work the identity function does: rounds of arithmetic a row
    #[arg(long, default_value_t = 2500)]
    pub work: u32,
    /// Also async-profiler at these rates, Hz: by methods, with Spark's own splitting of consume functions (not the thesis's MLSS,
    /// see --thesis) and without, and by lines
    #[arg(long, value_name = "RATES", value_delimiter = ',', num_args = 0..=1, default_missing_value = "200")]
    pub async_profiler: Vec<u32>,
    /// Spark's profiler connector with --thesis: its jar and that of async-profiler's loader
    #[arg(long, value_name = "JARS", value_delimiter = ',', requires = "thesis")]
    pub spark_profiler: Vec<PathBuf>,
    /// Also the DataFlint plugin's times of operators: a jar with its instrumentation for Spark 4
    #[arg(long, value_name = "JAR")]
    pub dataflint: Option<PathBuf>,
}

/// How often `lineitem` is repeated by default. The thesis's experiment then takes 20 minutes.
pub const LINEITEMS: u32 = 2;

impl Accuracy {
    /// Measures and writes the page: after each profiler with the results so far, and the diagram at the end.
    ///
    /// # Errors
    /// If the queries cannot be run. If a profiler fails, only after all others have been measured.
    pub fn measure(&self, results: &Path) -> Result<()> {
        if self.runs == 0 || self.rates.is_empty() {
            bail!("--runs and --rates must not be empty");
        }
        let name = self.name();
        let page = Measuring::begin(results, &name, &ATTRIBUTION)?;
        let mut spark = Spark::install("1")?;
        let (experiment, about) = if self.thesis {
            spark = spark.repeat_lineitem(self.lineitems)?;
            let calibration = Calibration::measure(&spark)?;
            (calibration.experiment(), calibration.text(self.lineitems))
        } else if let Some(path) = &self.sql {
            let about = format!("The query of {}.\n\n", path.display());
            (Experiment::read(path)?, about)
        } else {
            let about = format!(
                "TPC-H SF 1, all suppliers. The identity function does {} rounds of arithmetic a row.\n\n",
                self.work
            );
            (Experiment::with_rounds(self.work), about)
        };
        let head = self.head(&experiment) + &about;
        let diagram = format!("{name}.svg");
        let subjects = self.subjects();
        let bar = ProgressBar::new(subjects.len() as u64).with_style(ProgressStyle::with_template(
            "[{bar:24}] {pos} of {len}, {msg}, {elapsed}",
        )?);
        let mut findings = Findings::new(self.not_asked_for());
        let mut failed = Vec::new();
        fs::create_dir_all(results)?;
        for subject in &subjects {
            bar.set_message(subject.name.clone());
            // A profiler that fails must not discard hours of other measurements.
            match subject.run(&spark, &experiment, (self.warm_up, self.runs)) {
                Ok(measured) => findings.add(subject, &experiment, &measured),
                Err(error) => {
                    let why = format!("{}: {error:#}", subject.name);
                    // The page has one line for the failure. The program prints the whole error at its end.
                    let words: Vec<&str> = why.split_whitespace().take(40).collect();
                    findings.missing.push(words.join(" "));
                    failed.push(why);
                }
            }
            bar.inc(1);
            let body = head.clone() + &findings.text(&experiment, &diagram);
            let note = format!(
                "It ended after {} of {} profilers.",
                bar.position(),
                bar.length().unwrap_or(0)
            );
            page.keep(self.runs, &findings.figures, &body, &note)?;
        }
        bar.finish_and_clear();
        if findings.bars.is_empty() {
            bail!("nothing was measured: {}", failed.join("; "));
        }
        plot::bars(
            &results.join(&diagram),
            "mean |E|, % (95% confidence interval)",
            &findings.bars,
        )?;
        let body = head + &findings.text(&experiment, &diagram);
        page.finish(self.runs, findings.figures, &body)?;
        if !failed.is_empty() {
            bail!("not measured: {}", failed.join("; "));
        }
        Ok(())
    }

    /// The name of the page and of the diagram.
    fn name(&self) -> String {
        match (
            self.sql.as_deref().and_then(Path::file_stem),
            &self.dataflint,
        ) {
            _ if self.thesis => "accuracy-thesis".to_owned(),
            (Some(stem), _) => format!("accuracy-{}", stem.to_string_lossy()),
            (None, Some(_)) => "accuracy-dataflint".to_owned(),
            (None, None) => "accuracy".to_owned(),
        }
    }

    fn head(&self, experiment: &Experiment) -> String {
        let of = if experiment.canonical {
            "of the stage"
        } else {
            "of all stages"
        };
        format!(
            "The experiment of the thesis's section 5.2, local[2], Spark 4.3. Runs of the reference \
             and of each altered query: {}, after {} to warm up, in one JVM for each row. The identity function is \
             a Java UDF. E = (o − t) / t with t = T − mean T of the reference (Spark's CPU time {of}) and \
             o = T (s − mean s of the reference) / S.\n\n",
            self.runs, self.warm_up,
        )
    }

    fn subjects(&self) -> Vec<Subject> {
        let (others, rates): (Vec<Kind>, &[u32]) = if self.thesis {
            let mut kinds = vec![Kind::Methods(Split::All), Kind::Lines, Kind::FlightRecorder];
            if !self.spark_profiler.is_empty() {
                kinds.push(Kind::SparkProfiler(self.spark_profiler.clone()));
            }
            (kinds, &self.beside)
        } else {
            let splits = [Split::Spark, Split::Off].map(Kind::Methods);
            let kinds = splits.into_iter().chain([Kind::Lines]).collect();
            (kinds, &self.async_profiler)
        };
        let ours = self.rates.iter().map(|rate| (Kind::Unfuse, *rate));
        let others = others
            .into_iter()
            .flat_map(|kind| rates.iter().map(move |rate| (kind.clone(), *rate)));
        let durations = self
            .dataflint
            .iter()
            .cloned()
            .map(|jar| (Kind::Durations(jar), 0));
        ours.chain(others)
            .chain(durations)
            .map(|(kind, rate)| Subject::new(kind, rate))
            .collect()
    }

    /// Profilers of the thesis's experiment that cannot be measured, because no jar was given for them.
    fn not_asked_for(&self) -> Vec<String> {
        let mut missing = Vec::new();
        if self.thesis && self.spark_profiler.is_empty() {
            missing.push(
                "Spark's profiler connector, as no jar was given (--spark-profiler)".to_owned(),
            );
        }
        if self.thesis && self.dataflint.is_none() {
            missing.push("DataFlint, as no jar was given (--dataflint)".to_owned());
        }
        missing
    }
}
