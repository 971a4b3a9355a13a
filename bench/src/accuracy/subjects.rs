//! The profilers that are measured, and how their samples are read.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use unfuse_postprocess::Profile;

use super::experiment::{Distribution, Experiment, by_durations, by_methods};
use crate::event_log::{Execution, Timings, executions, timings};
use crate::spark::{AsyncProfiler, FlightRecorder, Run, Setup, Spark, Tool, Work};
use crate::{foreign, tools};

/// A profiler at a rate.
pub struct Subject {
    /// The name for the reader.
    pub name: String,
    rate: u32,
    kind: Kind,
}

/// Which profiler.
#[derive(Clone, PartialEq, Eq)]
pub enum Kind {
    /// unfuse.
    Unfuse,
    /// async-profiler by methods.
    Methods(Split),
    /// async-profiler's recordings with lines. Our regions show which operator a line belongs to.
    Lines,
    /// The same for recordings of the JDK's Flight Recorder.
    FlightRecorder,
    /// Spark's profiler connector, by methods: its jar and that of async-profiler's loader.
    SparkProfiler(Vec<PathBuf>),
    /// Durations that the DataFlint plugin's wrappers measure around operators, unchanged. They include all operators
    /// that are fused above or below.
    Durations(PathBuf),
}

/// The consume functions that Spark splits off into methods of their own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Split {
    /// None.
    Off,
    /// Those of operators that use all their columns, as Spark does by default.
    Spark,
    /// Those of all operators, as in the thesis's MLSS.
    All,
}

impl Subject {
    /// A profiler at a rate in Hz; the rate of durations is ignored.
    pub fn new(kind: Kind, rate: u32) -> Self {
        let name = match &kind {
            Kind::Unfuse => "unfuse",
            Kind::Methods(Split::Off) => "async-profiler by methods, Spark as it is",
            Kind::Methods(Split::Spark) => {
                "async-profiler by methods, Spark splits consume functions"
            }
            Kind::Methods(Split::All) => "MLSS: async-profiler by methods, all operators split",
            Kind::Lines => "async-profiler, lines",
            Kind::FlightRecorder => "JDK Flight Recorder, lines",
            Kind::SparkProfiler(_) => "Spark's profiler connector, by methods",
            Kind::Durations(_) => {
                return Self {
                    name: "DataFlint, durations of its nodes".to_owned(),
                    rate: 0,
                    kind,
                };
            }
        };
        Self {
            name: format!("{name}, {rate} Hz"),
            rate,
            kind,
        }
    }

    /// Whether E has a sampling error: durations are not counted samples.
    pub fn counts_samples(&self) -> bool {
        !matches!(self.kind, Kind::Durations(_))
    }

    /// Runs an experiment's queries. Returns the distributions of the runs that count, by query.
    ///
    /// # Errors
    /// If the job or the profiler fails.
    pub fn run(
        &self,
        spark: &Spark,
        experiment: &Experiment,
        (warm_up, rounds): (u32, u32),
    ) -> Result<BTreeMap<String, Vec<Distribution>>> {
        let mut work = Work {
            warm_up,
            rounds,
            queries: experiment.queries.clone(),
            setup: Setup {
                spin: true,
                ..Setup::default()
            },
        };
        let tool = self.tool(spark, &mut work.setup)?;
        let run = spark.run(&work, &tool)?;
        let counted: Vec<CountedRun> = executions(&run.event_log)?
            .into_iter()
            .filter_map(|execution| {
                let (query, round) = execution.query_and_round()?;
                let counts = work.queries.contains_key(query) && !round.starts_with('-');
                let (query, recording) = (query.to_owned(), format!("{query}_{round}"));
                counts.then_some(CountedRun {
                    execution,
                    query,
                    recording,
                })
            })
            .collect();
        let read = self.read(spark, experiment, &run, &counted)?;
        let mut found: BTreeMap<String, Vec<Distribution>> = BTreeMap::new();
        for (one, (operators, all)) in counted.into_iter().zip(read) {
            let (_, cpu_s) = experiment.counted(&one.execution);
            found.entry(one.query).or_default().push(Distribution {
                operators,
                all,
                cpu_s,
            });
        }
        if found.len() != work.queries.len() {
            bail!("the event log {} lacks queries", run.event_log.display());
        }
        // Removes the run's directory, because many profiles would fill the disk.
        let _ = run.event_log.ancestors().nth(2).map(fs::remove_dir_all);
        Ok(found)
    }

    /// The tool of the JVM. Adds to `setup` what the job has to do for it.
    fn tool(&self, spark: &Spark, setup: &mut Setup) -> Result<Tool> {
        // With rate 0 our agent takes no samples. It only records which operator each line belongs to.
        let regions = |conf| Tool::Unfuse("rate=0".to_owned(), conf);
        let into = spark.scratch().to_owned();
        match &self.kind {
            Kind::Unfuse => Ok(Tool::Unfuse(format!("rate={}", self.rate), Vec::new())),
            Kind::FlightRecorder => {
                setup.flight_recorder = Some(FlightRecorder {
                    period_ms: (1000 / self.rate).max(1),
                    into,
                });
                Ok(regions(Vec::new()))
            }
            Kind::SparkProfiler(jars) => tools::spark_profiler(jars, &self.interval(), &into),
            Kind::Durations(jar) => tools::dataflint(jar),
            Kind::Lines => Ok(regions(self.async_profiler(into, "jfr", setup)?)),
            Kind::Methods(split) => {
                let mut conf = self.async_profiler(into, "collapsed", setup)?;
                conf.push(format!(
                    "spark.sql.codegen.splitConsumeFuncByOperator={}",
                    *split != Split::Off
                ));
                let mut java = tools::DEBUG_INFORMATION.map(str::to_owned).to_vec();
                if *split == Split::All {
                    java.push(spark.split_all()?);
                }
                Ok(Tool::Other { java, conf })
            }
        }
    }

    /// Lets async-profiler sample each query. Returns the settings of Spark for that.
    fn async_profiler(
        &self,
        into: PathBuf,
        kind: &'static str,
        setup: &mut Setup,
    ) -> Result<Vec<String>> {
        let profiler = tools::async_profiler()?;
        setup.async_profiler = Some(AsyncProfiler {
            library: profiler.library,
            interval: self.interval(),
            into,
            kind,
        });
        let jar = profiler.jar.display();
        Ok(vec![format!("spark.driver.extraClassPath={jar}")])
    }

    /// CPU time between samples, in the form that async-profiler accepts.
    fn interval(&self) -> String {
        format!("{}us", 1_000_000 / self.rate)
    }

    /// For each execution the samples by operator, and all samples.
    fn read(
        &self,
        spark: &Spark,
        experiment: &Experiment,
        run: &Run,
        counted: &[CountedRun],
    ) -> Result<Vec<(Vec<f64>, f64)>> {
        let file = |one: &CountedRun, kind: &str| {
            spark.scratch().join(&one.recording).with_extension(kind)
        };
        match &self.kind {
            Kind::Unfuse => by_regions(experiment, run, counted),
            Kind::Lines | Kind::FlightRecorder => {
                // The converter recognises no thread state of the JDK's recorder as CPU use, so no filter is given.
                let options: &[&str] = if self.kind == Kind::Lines {
                    &["--cpu"]
                } else {
                    &[]
                };
                let folded: Result<Vec<(Execution, String)>> = counted
                    .iter()
                    .map(|one| {
                        let recording = file(one, "jfr");
                        let text = tools::folded_with_lines(&recording, options)?;
                        fs::remove_file(recording)?;
                        Ok((one.execution.clone(), text))
                    })
                    .collect();
                foreign::add(&run.profile, &folded?)?;
                by_regions(experiment, run, counted)
            }
            Kind::Methods(_) => counted
                .iter()
                .map(|one| {
                    let collapsed = file(one, "collapsed");
                    let text = fs::read_to_string(&collapsed).with_context(|| {
                        format!("async-profiler left no {}", collapsed.display())
                    })?;
                    fs::remove_file(collapsed)?;
                    Ok(by_methods(&text))
                })
                .collect(),
            Kind::SparkProfiler(_) => {
                let recording = spark.scratch().join("profile-driver.jfr");
                let read = counted
                    .iter()
                    .map(|one| slice(&recording, &one.execution))
                    .collect();
                fs::remove_file(recording)?;
                read
            }
            Kind::Durations(_) => {
                let timings: Timings = timings(&run.event_log)?;
                let read = |one: &CountedRun| {
                    let of_stage: Option<&HashMap<_, _>> = timings.get(&one.execution.stage);
                    let all_ms = experiment.counted(&one.execution).1 * 1e3;
                    (by_durations(of_stage), all_ms)
                };
                Ok(counted.iter().map(read).collect())
            }
        }
    }
}

/// A run of a query that counts.
struct CountedRun {
    execution: Execution,
    query: String,
    /// The name of its recording, if the profiler writes one for each run.
    recording: String,
}

fn by_regions(
    experiment: &Experiment,
    run: &Run,
    counted: &[CountedRun],
) -> Result<Vec<(Vec<f64>, f64)>> {
    let profile = Profile::open(&run.profile)?;
    let read = |one: &CountedRun| {
        let (stages, _) = experiment.counted(&one.execution);
        experiment.by_regions(&profile, one.execution.id, stages)
    };
    Ok(counted.iter().map(read).collect())
}

/// Samples of a recording during an execution, by the names of methods.
fn slice(recording: &Path, execution: &Execution) -> Result<(Vec<f64>, f64)> {
    let (from, to) = (
        execution.started_ms.to_string(),
        execution.ended_ms.to_string(),
    );
    let folded = tools::folded_with_lines(recording, &["--cpu", "--from", &from, "--to", &to])?;
    Ok(by_methods(&folded))
}
