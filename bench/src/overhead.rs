//! What profiling costs: the same queries without and with each tool, in alternation.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};

use crate::spark::{Round, Spark, Tool, Work, canonical, statements, tpch_queries};
use crate::{report, tools};

/// Section 5.3's cross section of TPC-H.
const SECTION_5_3: [&str; 6] = ["q01", "q03", "q06", "q08", "q09", "q18"];
/// Many tasks of a few milliseconds.
const FINE: &str = "SELECT sum(id * 3 % 7) FROM range(0, 400000000, 1, 10000)";

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
    /// Rates of unfuse, Hz; 0 loads it and takes no sample
    #[arg(long, value_delimiter = ',', default_value = "0,20,200,1000")]
    pub rates: Vec<u32>,
    /// Also async-profiler, at 200 Hz, with its events cpu and ctimer
    #[arg(long)]
    pub async_profiler: bool,
    /// Runs of each, in alternation
    #[arg(long, default_value_t = 5)]
    pub runs: u32,
    /// Rounds of the queries that count in each run, after `--warm-up`
    #[arg(long, default_value_t = 5)]
    pub rounds: u32,
    /// Rounds before
    #[arg(long, default_value_t = 3)]
    pub warm_up: u32,
}

/// A tool's runs: in each, the median wall time and the CPU times by query.
struct Contender {
    name: String,
    tool: Tool,
    runs: Vec<BTreeMap<String, Cost>>,
}

#[derive(Clone, Copy)]
struct Cost {
    wall_s: f64,
    jvm_cpu_s: f64,
    beside_cpu_s: f64,
}

impl Overhead {
    /// Measures and writes `overhead-SET.md`.
    pub fn measure(&self, results: &Path) -> Result<()> {
        let spark = Spark::install("1")?;
        let mut contenders = self.contenders()?;
        let queries = match &self.sql {
            Some(path) => statements(
                &fs::read_to_string(path)
                    .with_context(|| format!("cannot read the queries of {}", path.display()))?,
            ),
            None => self.queries.sql(),
        };
        if queries.is_empty() {
            bail!("no queries; a line `-- NAME` stands before each");
        }
        let work = Work {
            warm_up: self.warm_up,
            rounds: self.rounds,
            queries,
            spin: false,
            async_profiler: None,
        };
        let bar = ProgressBar::new(u64::from(self.runs) * contenders.len() as u64).with_style(
            ProgressStyle::with_template("[{bar:24}] {pos} of {len} runs, {msg}, {elapsed}")?,
        );
        for run in 0..self.runs as usize {
            // Another order each time, so that a drift of the machine hits all alike.
            let count = contenders.len();
            for turn in 0..count {
                let contender = &mut contenders[(turn + run) % count];
                bar.set_message(contender.name.clone());
                let rounds = spark.run(&work, &contender.tool)?.rounds;
                contender.runs.push(costs(&rounds));
                bar.inc(1);
            }
        }
        bar.finish_and_clear();
        let name = format!("overhead-{}", self.name());
        report::write(
            results,
            &name,
            &format!("unfuse-bench overhead {}", self.arguments()),
            &self.body(&contenders),
        )
    }

    fn contenders(&self) -> Result<Vec<Contender>> {
        if self.runs == 0 || self.rounds == 0 {
            bail!("--runs and --rounds must be at least 1");
        }
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
                Tool::Metadata,
            ));
        }
        for rate in &self.rates {
            tools.push((
                format!("unfuse, {rate} Hz"),
                Tool::Unfuse(*rate, Vec::new()),
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
        Ok(tools
            .into_iter()
            .map(|(name, tool)| Contender {
                name,
                tool,
                runs: Vec::new(),
            })
            .collect())
    }

    /// What the results are called after.
    fn name(&self) -> String {
        match &self.sql {
            Some(path) => path.file_stem().map_or_else(
                || "sql".to_owned(),
                |stem| stem.to_string_lossy().into_owned(),
            ),
            None => self.queries.name().to_owned(),
        }
    }

    fn arguments(&self) -> String {
        let rates: Vec<String> = self.rates.iter().map(u32::to_string).collect();
        let queries = match &self.sql {
            Some(path) => format!("--sql {}", path.display()),
            None => format!("--queries {}", self.queries.name()),
        };
        format!(
            "{queries} --rates {}{}{} --runs {} --rounds {} --warm-up {}",
            rates.join(","),
            if self.breakdown { " --breakdown" } else { "" },
            if self.async_profiler {
                " --async-profiler"
            } else {
                ""
            },
            self.runs,
            self.rounds,
            self.warm_up
        )
    }

    fn body(&self, contenders: &[Contender]) -> String {
        let plain = &contenders[0].runs;
        let mut body = format!(
            "TPC-H SF 1, local[2], Spark 4.3; {} runs of each in alternation, each a JVM of its own with {} rounds \
             to warm up and {} that count (their median). Ratios are with ÷ without of the same run, the geometric \
             mean over queries and runs with its 95% confidence interval. CPU is the JVM's and that of the \
             profiler's processes; the share of the latter stands beside it.\n\n\
             | with | wall, ratio | CPU, ratio | processes beside, % of the JVM's CPU |\n|---|---|---|---|\n",
            self.runs, self.warm_up, self.rounds
        );
        for contender in &contenders[1..] {
            let ratio = |of: fn(&Cost) -> f64| {
                let by_run: Vec<f64> = contender
                    .runs
                    .iter()
                    .zip(plain)
                    .map(|(with, without)| mean_log_ratio(with, without, of))
                    .collect();
                report::geometric(&by_run)
            };
            let all = || contender.runs.iter().flat_map(BTreeMap::values);
            let beside: f64 = all().map(|cost| cost.beside_cpu_s).sum();
            let jvm: f64 = all().map(|cost| cost.jvm_cpu_s).sum();
            let _ = writeln!(
                body,
                "| {} | {} | {} | {:.2} |",
                contender.name,
                ratio(|cost| cost.wall_s),
                ratio(|cost| cost.jvm_cpu_s + cost.beside_cpu_s),
                100.0 * beside / jvm
            );
        }
        body += &self.per_query(contenders);
        if self.queries == Set::Fine && self.sql.is_none() {
            body += &per_task(contenders);
        }
        body + "\n"
    }

    /// Wall time of each query, where there are several.
    fn per_query(&self, contenders: &[Contender]) -> String {
        let names: Vec<&String> = contenders[0].runs[0].keys().collect();
        if names.len() < 2 {
            return String::new();
        }
        let mut table = String::from("\nWall time, ratio of medians over the runs:\n\n| query |");
        for contender in &contenders[1..] {
            let _ = write!(table, " {} |", contender.name);
        }
        let _ = write!(table, "\n|---|{}\n", "---|".repeat(contenders.len() - 1));
        for name in names {
            let _ = write!(table, "| {name} |");
            let median = |contender: &Contender| {
                let mut walls: Vec<f64> =
                    contender.runs.iter().map(|run| run[name].wall_s).collect();
                report::median(&mut walls)
            };
            for contender in &contenders[1..] {
                let _ = write!(
                    table,
                    " {:.3} |",
                    median(contender) / median(&contenders[0])
                );
            }
            table.push('\n');
        }
        table
    }
}

impl Set {
    fn name(self) -> &'static str {
        match self {
            Self::Canonical => "canonical",
            Self::Six => "six",
            Self::Tpch => "tpch",
            Self::Fine => "fine",
        }
    }

    fn sql(self) -> BTreeMap<String, String> {
        let one = |sql: &str| BTreeMap::from([(self.name().to_owned(), sql.to_owned())]);
        match self {
            Self::Canonical => one(&canonical(
                "l_commitdate",
                "l_suppkey",
                "(l_suppkey * 100) + s_nationkey",
            )),
            Self::Fine => one(FINE),
            Self::Tpch => tpch_queries(),
            Self::Six => tpch_queries()
                .into_iter()
                .filter(|(name, _)| SECTION_5_3.contains(&name.as_str()))
                .collect(),
        }
    }
}

/// Median wall time and mean CPU times of each query's rounds.
fn costs(rounds: &[Round]) -> BTreeMap<String, Cost> {
    let mut by_query: BTreeMap<&String, Vec<&Round>> = BTreeMap::new();
    for round in rounds {
        by_query.entry(&round.query).or_default().push(round);
    }
    by_query
        .into_iter()
        .map(|(query, rounds)| {
            let mean = |of: fn(&Round) -> f64| {
                rounds.iter().map(|round| of(round)).sum::<f64>() / rounds.len() as f64
            };
            let mut walls: Vec<f64> = rounds.iter().map(|round| round.wall_s).collect();
            let cost = Cost {
                wall_s: report::median(&mut walls),
                jvm_cpu_s: mean(|round| round.jvm_cpu_s),
                beside_cpu_s: mean(|round| round.beside_cpu_s),
            };
            (query.clone(), cost)
        })
        .collect()
}

fn mean_log_ratio(
    with: &BTreeMap<String, Cost>,
    without: &BTreeMap<String, Cost>,
    of: fn(&Cost) -> f64,
) -> f64 {
    let logs = with
        .iter()
        .map(|(query, cost)| (of(cost) / of(&without[query])).ln());
    logs.sum::<f64>() / with.len() as f64
}

/// What a task costs more, µs of CPU and of wall time on its core.
fn per_task(contenders: &[Contender]) -> String {
    const TASKS: f64 = 10_000.0;
    let mean = |contender: &Contender, of: fn(&Cost) -> f64| {
        let costs = contender.runs.iter().flat_map(BTreeMap::values);
        costs.map(of).sum::<f64>() / contender.runs.len() as f64
    };
    let mut table = String::from(
        "\nMore than without, for each of the 10,000 tasks:\n\n| with | CPU, µs | wall on its core, µs |\n|---|---|---|\n",
    );
    for contender in &contenders[1..] {
        let more = |of| 1e6 * (mean(contender, of) - mean(&contenders[0], of)) / TASKS;
        let _ = writeln!(
            table,
            "| {} | {:.1} | {:.1} |",
            contender.name,
            more(|cost| cost.jvm_cpu_s + cost.beside_cpu_s),
            2.0 * more(|cost| cost.wall_s)
        );
    }
    table
}
