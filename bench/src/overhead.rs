//! The cost of profiling: the same queries without and with each tool. The JVMs of all tools are up at the same time and take
//! turns query by query. So the runs that are compared are seconds apart, because shared machines drift within minutes.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use unfuse_format::counted;

use crate::accuracy::LINEITEMS;
use crate::accuracy::thesis::THESIS;
use crate::page::{Figure, Measuring, slug};
use crate::session::{Answer, Round, Session};
use crate::spark::{Canonical, Setup, Spark, Tool, Work, statements_of, tpch_queries};
use crate::{stats, tools};

/// Section 5.3's cross section of TPC-H.
const SECTION_5_3: [&str; 6] = ["q01", "q03", "q06", "q08", "q09", "q18"];
/// Many tasks of a few milliseconds.
const FINE: &str = "SELECT sum(id * 3 % 7) FROM range(0, 400000000, 1, 10000)";

const MEASURES: [&str; 3] = ["profiler", "jvmti-agent/src", "spark-patches/src"];

/// Queries to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Set {
    /// The scan-filter-join-aggregate query
    Canonical,
    /// Q1, Q3, Q6, Q8, Q9, Q18, as the thesis's section 5.3
    Six,
    /// The 22 TPC-H queries
    Tpch,
    /// 10,000 tasks of a few milliseconds
    Fine,
}

/// Queries with and without profilers, in alternation
#[derive(Debug, Args)]
pub struct Overhead {
    /// Which queries
    #[arg(long, value_enum, default_value = "canonical")]
    pub queries: Set,
    /// Other queries over TPC-H's tables: a file of `-- NAME` lines, each with a statement after it
    #[arg(long, value_name = "FILE", conflicts_with = "queries")]
    pub sql: Option<PathBuf>,
    /// Also the parts of the cost: frame pointers, debug information, descriptions of compiled code
    #[arg(long)]
    pub breakdown: bool,
    /// Only what the option `regions=exact` costs: unfuse at 200 Hz with it against unfuse with `regions=plain`. A page of its own
    #[arg(long, conflicts_with_all = ["breakdown", "rates", "async_profiler", "dataflint", "attach"])]
    pub regions: bool,
    /// Only what methods for all operators cost (MLSS): the thesis's query on a Spark that splits them against Spark as it is, both
    /// without a profiler. A page of its own
    #[arg(long, conflicts_with_all = ["queries", "sql", "regions", "breakdown", "rates", "async_profiler", "dataflint", "attach"])]
    pub mlss: bool,
    /// How many times over the rows of `lineitem` are there with --mlss
    #[arg(long, default_value_t = LINEITEMS, requires = "mlss")]
    pub lineitems: u32,
    /// Rates of unfuse, Hz; 0 loads it and takes no sample
    #[arg(long, value_delimiter = ',', default_value = "0,20,200,1000")]
    pub rates: Vec<u32>,
    /// Also async-profiler, at 200 Hz, with its events cpu and ctimer
    #[arg(long)]
    pub async_profiler: bool,
    /// Also the DataFlint plugin's wrappers around operators: a jar with its instrumentation for Spark 4
    #[arg(long, value_name = "JAR")]
    pub dataflint: Option<PathBuf>,
    /// Also a JVM that was recorded for a while (`unfuse record`) before the rounds that count
    #[arg(long)]
    pub attach: bool,
    /// Runs, each with a new JVM for each tool
    #[arg(long, default_value_t = 5)]
    pub runs: u32,
    /// Rounds of the queries that count in each run, after `--warm-up`
    #[arg(long, default_value_t = 5)]
    pub rounds: u32,
    /// Rounds before
    #[arg(long, default_value_t = 3)]
    pub warm_up: u32,
}

/// A tool and the times of its JVMs.
struct Contender {
    name: String,
    tool: Tool,
    /// Whether `unfuse record` records its JVM in the middle of the warm-up.
    attach: bool,
    /// The rounds of each query in order, by run.
    runs: Vec<BTreeMap<String, Vec<Round>>>,
}

impl Overhead {
    /// Measures and writes `overhead-SET.md`.
    pub fn measure(&self, results: &Path) -> Result<()> {
        let name = format!("overhead-{}", self.name());
        let page = Measuring::begin(results, &name, &MEASURES)?;
        let mut spark = Spark::install("1")?;
        if self.mlss {
            spark = spark.repeat_lineitem(self.lineitems)?;
        }
        let mut contenders = self.contenders(&spark)?;
        let queries = match &self.sql {
            Some(path) => statements_of(path)?,
            None if self.mlss => BTreeMap::from([("canonical".to_owned(), THESIS.reference())]),
            None => self.queries.sql(),
        };
        if queries.is_empty() {
            bail!("no queries; a line `-- NAME` stands before each");
        }
        let work = Work {
            warm_up: self.warm_up,
            rounds: self.rounds,
            queries,
            setup: Setup::default(),
        };
        let bar = ProgressBar::new(
            u64::from(self.runs)
                * u64::from(self.warm_up + self.rounds)
                * work.queries.len() as u64,
        )
        .with_style(ProgressStyle::with_template(
            "[{bar:24}] {pos} of {len} turns, {msg}, {elapsed}",
        )?);
        for run in 0..self.runs as usize {
            self.take_turns(&spark, &work, &mut contenders, run, &bar)?;
        }
        bar.finish_and_clear();
        page.finish(
            self.runs,
            self.figures(&contenders),
            &self.body(&contenders),
        )
    }

    /// One run: starts a JVM for each contender, and runs each query in all of them, one after the other.
    fn take_turns(
        &self,
        spark: &Spark,
        work: &Work,
        contenders: &mut [Contender],
        run: usize,
        bar: &ProgressBar,
    ) -> Result<()> {
        let count = contenders.len();
        let mut sessions: Vec<Session> = Vec::with_capacity(count);
        for contender in contenders.iter_mut() {
            bar.set_message(format!("starting {}", contender.name));
            sessions.push(spark.start(&work.setup, &contender.tool)?);
            contender.runs.push(BTreeMap::new());
        }
        // The order changes each time, so that no contender always follows the same one,
        // which may still compile or collect garbage.
        let mut first = run;
        for round in work.numbers() {
            // The JVM compiles its code again for a recording, so it needs warm-up rounds afterwards.
            if round == -self.warm_up.cast_signed() / 2 {
                for (contender, session) in contenders.iter().zip(&mut sessions) {
                    if contender.attach {
                        bar.set_message("recording");
                        spark.record(session, work)?;
                    }
                }
            }
            for (query, sql) in &work.queries {
                for turn in 0..count {
                    let turn = (first + turn) % count;
                    bar.set_message(format!("{query} with {}", contenders[turn].name));
                    match sessions[turn].ask(query, sql, round)? {
                        Answer::Refused(why) => bail!("{} failed: {}", why.query, why.reason),
                        Answer::Took(_) if round < 0 => {}
                        Answer::Took(took) => contenders[turn].runs[run]
                            .entry(query.clone())
                            .or_default()
                            .push(took),
                    }
                }
                first += 1;
                bar.inc(1);
            }
            first += 1;
        }
        for session in sessions {
            session.finish()?;
        }
        Ok(())
    }

    fn contenders(&self, spark: &Spark) -> Result<Vec<Contender>> {
        if self.runs == 0 || self.rounds == 0 {
            bail!("--runs and --rounds must be at least 1");
        }
        if self.attach && self.warm_up < 2 {
            bail!(
                "--attach needs a --warm-up of at least 2: the JVM compiles its code anew for a recording"
            );
        }
        if self.regions {
            let with = |setting: &str| Contender {
                name: format!("regions={setting}"),
                tool: Tool::Unfuse(format!("rate=200,regions={setting}"), Vec::new()),
                attach: false,
                runs: Vec::new(),
            };
            return Ok(["plain", "exact"].map(with).into());
        }
        if self.mlss {
            let split = Tool::Other {
                java: vec![spark.split_all()?],
                conf: Vec::new(),
            };
            let with = |(name, tool): (&str, Tool)| Contender {
                name: name.to_owned(),
                tool,
                attach: false,
                runs: Vec::new(),
            };
            let tools = [
                ("without", Tool::None),
                ("methods for all operators", split),
            ];
            return Ok(tools.map(with).into());
        }
        let tools = self.tools()?;
        let tools = tools.into_iter().map(|(name, tool)| (name, tool, false));
        let attached = ("recorded before".to_owned(), Tool::None, true);
        Ok(tools
            .chain(self.attach.then_some(attached))
            .map(|(name, tool, attach)| Contender {
                name,
                tool,
                attach,
                runs: Vec::new(),
            })
            .collect())
    }

    /// The tools that are compared, each with its name in the results.
    fn tools(&self) -> Result<Vec<(String, Tool)>> {
        let mut tools = vec![("without".to_owned(), Tool::None)];
        if self.breakdown {
            let flags = |flags: &[&str]| Tool::Other {
                java: flags.iter().map(|flag| (*flag).to_owned()).collect(),
                conf: Vec::new(),
            };
            let pointers = "-XX:+PreserveFramePointer";
            let debug = [
                pointers,
                "-XX:+UnlockDiagnosticVMOptions",
                "-XX:+DebugNonSafepoints",
            ];
            tools.push(("no unfuse, frame pointers".to_owned(), flags(&[pointers])));
            tools.push((
                "no unfuse, frame pointers and debug information".to_owned(),
                flags(&debug),
            ));
            tools.push((
                "unfuse, code described, no sampling, Spark as it is".to_owned(),
                Tool::Unfuse("rate=0,spark=off".to_owned(), Vec::new()),
            ));
        }
        for rate in &self.rates {
            tools.push((
                format!("unfuse, {rate} Hz"),
                Tool::Unfuse(format!("rate={rate}"), Vec::new()),
            ));
        }
        if self.async_profiler {
            let library = tools::async_profiler()?.library;
            for event in ["cpu", "ctimer"] {
                let agent = format!(
                    "-agentpath:{}=start,event={event},interval=5ms,file=/dev/null,collapsed",
                    library.display()
                );
                tools.push((
                    format!("async-profiler {event}, 200 Hz"),
                    Tool::Other {
                        java: vec![agent],
                        conf: Vec::new(),
                    },
                ));
            }
        }
        if let Some(jar) = &self.dataflint {
            tools.push((
                "DataFlint, durations of operators".to_owned(),
                tools::dataflint(jar)?,
            ));
        }
        Ok(tools)
    }

    /// The name of the results.
    fn name(&self) -> String {
        let queries = match &self.sql {
            Some(path) => path.file_stem().map_or_else(
                || "sql".to_owned(),
                |stem| stem.to_string_lossy().into_owned(),
            ),
            None => self.queries.name().to_owned(),
        };
        if self.mlss {
            "mlss".to_owned()
        } else if self.regions {
            format!("{queries}-regions")
        } else {
            queries
        }
    }

    /// The ratios of each contender and, if tasks are short, the cost of a task.
    fn figures(&self, contenders: &[Contender]) -> Vec<Figure> {
        let plain = &contenders[0];
        let mut figures = Vec::new();
        for contender in &contenders[1..] {
            let (key, name) = (slug(&contender.name), &contender.name);
            let ratio = |what: &str, of: fn(&Round) -> f64| {
                Figure::from_logs(
                    &format!("{what}_{key}"),
                    &format!("{what} time, with ÷ {}: {name}", plain.name),
                    &contender.logs(plain, of),
                )
            };
            figures.push(ratio("CPU", Round::cpu_s));
            figures.push(ratio("wall", |round| round.wall_s));
            if self.tasks_are_short() {
                let runs = contender.more_per_task(plain, Round::cpu_s);
                figures.push(Figure::from_runs(
                    &format!("task_{key}"),
                    &format!("CPU time more for a task: {name}"),
                    &runs,
                    "µs",
                    0,
                ));
            }
        }
        for figure in &mut figures {
            figure.name = figure.name.to_lowercase();
        }
        figures
    }

    fn tasks_are_short(&self) -> bool {
        self.queries == Set::Fine && self.sql.is_none()
    }

    fn body(&self, contenders: &[Contender]) -> String {
        let mut body = format!(
            "TPC-H SF 1, local[2], Spark 4.3; {}. In each run the JVMs of all tools are up at the same time, and take turns query by query: {} \
             to warm up, {} that count. A ratio is with ÷ {} in the same round. Figures are medians over the rounds, then geometric means over queries and over runs, with a 95% confidence interval over the runs. CPU time is that of the JVM and of the profiler's processes; a column has the latter's share.\n\n\
             | with | wall, ratio | CPU, ratio | processes beside, % of the JVM's CPU |\n|---|---|---|---|\n",
            counted(self.runs, "run"),
            counted(self.warm_up, "round"),
            self.rounds,
            contenders[0].name
        );
        for contender in &contenders[1..] {
            let ratio =
                |of: fn(&Round) -> f64| stats::geometric_text(&contender.logs(&contenders[0], of));
            let all = || contender.runs.iter().flat_map(BTreeMap::values).flatten();
            let beside: f64 = all().map(|round| round.beside_cpu_s).sum();
            let jvm: f64 = all().map(|round| round.jvm_cpu_s).sum();
            let _ = writeln!(
                body,
                "| {} | {} | {} | {:.2} |",
                contender.name,
                ratio(|round| round.wall_s),
                ratio(Round::cpu_s),
                100.0 * beside / jvm
            );
        }
        if self.mlss {
            let _ = writeln!(
                body,
                "\nThe thesis found that methods for all operators add {}% of CPU time (SF 10, Spark 2.4.5). Here `lineitem` is there {} \
                 times over, and CPU is of the whole JVM. The query is that of `unfuse-bench accuracy --thesis`.",
                THESIS.mlss_overhead, self.lineitems
            );
        }
        body += &self.per_query(contenders);
        if self.tasks_are_short() {
            body += &per_task(contenders);
        }
        body + "\n"
    }

    /// Wall time of each query, if there are several.
    fn per_query(&self, contenders: &[Contender]) -> String {
        let names: Vec<&String> = contenders[0].runs[0].keys().collect();
        if names.len() < 2 {
            return String::new();
        }
        let mut table =
            String::from("\nWall time, median ratio over the rounds of all runs:\n\n| query |");
        for contender in &contenders[1..] {
            let _ = write!(table, " {} |", contender.name);
        }
        let _ = write!(table, "\n|---|{}\n", "---|".repeat(contenders.len() - 1));
        for name in names {
            let _ = write!(table, "| {name} |");
            for contender in &contenders[1..] {
                let mut ratios: Vec<f64> = contender
                    .runs
                    .iter()
                    .zip(&contenders[0].runs)
                    .flat_map(|(with, without)| with[name].iter().zip(&without[name]))
                    .map(|(with, without)| with.wall_s / without.wall_s)
                    .collect();
                let _ = write!(table, " {:.3} |", stats::median(&mut ratios));
            }
            table.push('\n');
        }
        table
    }
}

impl Contender {
    /// The logarithm of each run's ratio to the first contender: the median over rounds, then the mean over queries.
    fn logs(&self, plain: &Self, of: fn(&Round) -> f64) -> Vec<f64> {
        let runs = self.runs.iter().zip(&plain.runs);
        runs.map(|(with, without)| {
            let logs = with.iter().map(|(query, rounds)| {
                median_of_pairs(rounds, &without[query], |with, without| {
                    (of(with) / of(without)).ln()
                })
            });
            logs.sum::<f64>() / with.len() as f64
        })
        .collect()
    }

    /// By how much each of the 10,000 tasks takes longer than with the first contender, µs, by run.
    fn more_per_task(&self, plain: &Self, of: fn(&Round) -> f64) -> Vec<f64> {
        const TASKS: f64 = 10_000.0;
        let runs = self.runs.iter().zip(&plain.runs);
        let pairs = runs.flat_map(|(with, without)| {
            with.iter().map(|(query, rounds)| (rounds, &without[query]))
        });
        pairs
            .map(|(with, without)| {
                1e6 * median_of_pairs(with, without, |with, without| of(with) - of(without)) / TASKS
            })
            .collect()
    }
}

impl Set {
    pub fn name(self) -> &'static str {
        match self {
            Self::Canonical => "canonical",
            Self::Six => "six",
            Self::Tpch => "tpch",
            Self::Fine => "fine",
        }
    }

    pub fn sql(self) -> BTreeMap<String, String> {
        let one = |sql: &str| BTreeMap::from([(self.name().to_owned(), sql.to_owned())]);
        match self {
            Self::Canonical => one(&Canonical::REFERENCE.sql()),
            Self::Fine => one(FINE),
            Self::Tpch => tpch_queries(),
            Self::Six => tpch_queries()
                .into_iter()
                .filter(|(name, _)| SECTION_5_3.contains(&name.as_str()))
                .collect(),
        }
    }
}

/// The median over pairs of rounds.
fn median_of_pairs(with: &[Round], without: &[Round], of: impl Fn(&Round, &Round) -> f64) -> f64 {
    let mut pairs: Vec<f64> = with.iter().zip(without).map(|(a, b)| of(a, b)).collect();
    stats::median(&mut pairs)
}

/// The additional cost of a task, µs of CPU and of wall time on its core.
fn per_task(contenders: &[Contender]) -> String {
    let mut table = String::from(
        "\nMore than without, for each of the 10,000 tasks; the median of each run, their mean and its 95% confidence \
         interval:\n\n| with | CPU, µs | wall on its core, µs |\n|---|---|---|\n",
    );
    for contender in &contenders[1..] {
        let more = |of: fn(&Round) -> f64| {
            let by_run = contender.more_per_task(&contenders[0], of);
            let (mean, half) = stats::mean_and_half_width(&by_run);
            format!("{mean:.0} ± {half:.0}")
        };
        let _ = writeln!(
            table,
            "| {} | {} | {} |",
            contender.name,
            more(Round::cpu_s),
            more(|round| 2.0 * round.wall_s)
        );
    }
    table
}
