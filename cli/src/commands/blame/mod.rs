//! `unfuse blame`: who slowed a query down.

mod window;

use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::builder::RangedU64ValueParser;
use clap::{Args, ValueEnum};
use unfuse_contention as contention;
use unfuse_contention::{
    BlockedTime, Filter, Graph, HostId, Input, Options, Query, QueryId, Resource, Split,
    VictimStages, Workload, from_csv, from_profile,
};
use unfuse_format::{LiveMarker, ProcessRow, ProfileDir};
use unfuse_postprocess::plain::Form;
use unfuse_report::blame::{self, Answer, Found, Question};
use unfuse_report::text::list;

use self::window::Window;
use super::open;
use crate::output::{form, write_plain_to};
use crate::remote;

/// How long a JVM may take from making its profile to writing to it.
const BEGINNING: Duration = Duration::from_secs(5);

/// Show who slows a query down: other queries, their stages and operators, or processes outside Spark
///
/// Seconds in which the query's tasks could not go on are shared out among those who used the resource they waited for, on the same
/// host at the same time. Without --victim all queries are victims, and the tables show who hurts the others most.
#[derive(Debug, Args)]
pub struct Blame {
    /// The profile directory that `unfuse run` printed, or its URI; or a directory with intervals.csv of any engine
    /// (docs/contention.md)
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// The slow query: its Spark SQL execution id, or its name in CSV files
    #[arg(long, value_name = "QUERY")]
    victim: Option<String>,
    /// Only this part of the time, in seconds since the first task: 10..60, 30.. or -60.. (the last minute)
    #[arg(long, value_name = "FROM..TO", allow_hyphen_values = true)]
    window: Option<Window>,
    /// Only waits for these
    #[arg(long, value_enum, value_name = "RESOURCE")]
    resource: Vec<What>,
    /// Only on these hosts
    #[arg(long, value_name = "HOST")]
    host: Vec<String>,
    /// Only culprits of this user
    #[arg(long)]
    user: Option<String>,
    /// Only culprits of this scheduler pool
    #[arg(long)]
    pool: Option<String>,
    /// What to rank
    #[arg(long, value_enum, default_value = "culprit")]
    by: Rank,
    /// Rows to show
    #[arg(long, value_name = "K", default_value_t = 10, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    top: usize,
    /// Which of the victim's stages count
    #[arg(long, value_enum, default_value = "critical")]
    stages: Stages,
    /// How a stage's blocked time is shared out: by blame summed over all windows (eq. 10 of the paper), or in each window
    #[arg(long, value_enum, default_value = "pooled")]
    split: Sharing,
    /// Where blocked times come from: context switches with their stacks, or as in the paper, Spark's metrics and the rest
    #[arg(long, value_enum, default_value = "measured")]
    blocked: Blocked,
    /// Print JSON
    #[arg(long, conflicts_with = "graph")]
    json: bool,
    /// Write the graph of victims, stages, resources, hosts and culprits instead
    #[arg(long, value_enum, value_name = "FORMAT")]
    graph: Option<GraphFormat>,
    /// The file to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Answer again and again while the application runs
    #[arg(long, conflicts_with_all = ["graph", "out"])]
    follow: bool,
    /// Seconds between two answers with --follow
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    every: u64,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum What {
    Cpu,
    Memory,
    Io,
    Network,
    Slots,
}

impl From<What> for Resource {
    fn from(what: What) -> Self {
        match what {
            What::Cpu => Self::Cpu,
            What::Memory => Self::Memory,
            What::Io => Self::Io,
            What::Network => Self::Network,
            What::Slots => Self::Slots,
        }
    }
}

/// What to rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Rank {
    /// Queries and processes
    Culprit,
    /// Their stages
    Stage,
    /// Their operators, as far as CPU time goes
    Operator,
    /// CPU, memory, IO, network, slots
    Resource,
    /// Ways of waiting
    Kind,
    /// Hosts
    Host,
}

impl From<Rank> for blame::Rank {
    fn from(rank: Rank) -> Self {
        match rank {
            Rank::Culprit => Self::Culprit,
            Rank::Stage => Self::Stage,
            Rank::Operator => Self::Operator,
            Rank::Resource => Self::Resource,
            Rank::Kind => Self::Kind,
            Rank::Host => Self::Host,
        }
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Stages {
    /// Those on the critical path
    Critical,
    /// All
    All,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Sharing {
    Pooled,
    Window,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Blocked {
    Measured,
    Paper,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum GraphFormat {
    /// Nodes and edges, JSON
    Json,
    /// For Gephi, yEd, NetworkX
    Graphml,
    /// For Neo4j
    Cypher,
}

impl Blame {
    /// Prints the answer.
    pub fn execute(self) -> Result<ExitCode> {
        if self.follow {
            return self.follow();
        }
        self.answer(&remote::local(&self.dir)?)?;
        Ok(ExitCode::SUCCESS)
    }

    /// Answers from what is in a local directory now.
    fn answer(&self, root: &Path) -> Result<()> {
        let Read { input, workload } = self.read(root)?;
        let options = self.options(&workload, input.origin_ns)?;
        options.check(&workload)?;
        let graph = Graph::build(&workload, &options);
        let notes = || blame::notes(&workload, &graph, &input);
        // These formats have no place for them.
        if let Some(GraphFormat::Graphml | GraphFormat::Cypher) = self.graph {
            for note in notes() {
                crate::say!("note: {note}");
            }
        }
        // Cypher takes the escapes of JSON too.
        let form = match self.graph {
            Some(GraphFormat::Json | GraphFormat::Cypher) => Form::Json,
            Some(GraphFormat::Graphml) => Form::Text,
            None => form(self.json),
        };
        write_plain_to(self.out.as_deref(), form, |out| {
            let text = match self.graph {
                Some(GraphFormat::Json) => graph.to_json(&notes()) + "\n",
                Some(GraphFormat::Graphml) => graph.to_graphml(),
                Some(GraphFormat::Cypher) => graph.to_cypher(),
                None => {
                    let found = Found::of(&workload, &graph);
                    let answer = Answer::of(&found, &self.question(&options), &input);
                    if self.json {
                        serde_json::to_string_pretty(&answer)? + "\n"
                    } else {
                        blame::render(&answer, self.by.into())
                    }
                }
            };
            Ok(out.write_all(text.as_bytes())?)
        })
    }

    /// Answers until no JVM writes to the profile any more.
    fn follow(&self) -> Result<ExitCode> {
        if is_csv(&self.dir) {
            bail!(
                "{}: CSV files do not grow; --follow is for the profile of an application that runs",
                self.dir.display()
            );
        }
        let started = Instant::now();
        let clear = std::io::stdout().is_terminal() && !self.json;
        loop {
            let root = remote::local(&self.dir)?;
            let running = self.is_running(&root)? || started.elapsed() < BEGINNING;
            if clear {
                // Home, and everything below away.
                print!("\x1b[H\x1b[J");
            }
            match self.answer(&root) {
                Ok(()) => {}
                Err(error) if running => crate::say!("unfuse: nothing to tell yet: {error:#}"),
                Err(error) => return Err(error),
            }
            std::io::stdout().flush()?;
            if !running {
                return Ok(ExitCode::SUCCESS);
            }
            std::thread::sleep(Duration::from_secs(self.every));
        }
    }

    /// Whether more is to come. Who writes elsewhere is not seen here; there a driver says in its last word that it ends.
    fn is_running(&self, root: &Path) -> Result<bool> {
        let dir = ProfileDir::open(root)?;
        if !remote::is_uri(&self.dir) {
            return Ok(!LiveMarker::at_work(&dir).is_empty());
        }
        let rows = dir.read::<ProcessRow>()?.rows;
        let drivers = rows.iter().filter(|row| row.executor == "driver");
        let of = |ended: bool| -> BTreeSet<(&str, u32, i64)> {
            let rows = drivers.clone().filter(|row| row.ended == Some(ended));
            rows.map(|row| (row.host.as_str(), row.pid, row.start_ns))
                .collect()
        };
        Ok(!of(false).is_subset(&of(true)))
    }

    fn read(&self, root: &Path) -> Result<Read> {
        let mut input = if is_csv(root) {
            from_csv(root)?
        } else {
            let profile = open(root)?;
            let blocked = match self.blocked {
                Blocked::Measured => BlockedTime::Measured,
                Blocked::Paper => BlockedTime::Paper,
            };
            let input = from_profile(&profile, blocked)?;
            // Samples are not needed: engines that write the tables of tasks or intervals have none.
            if input.tables.tasks.is_empty() && !profile.has_spark() {
                bail!(
                    "{}: no task was recorded, and only tasks can be in each other's way",
                    self.dir.display()
                );
            }
            input
        };
        let workload = Workload::new(std::mem::take(&mut input.tables))
            .with_context(|| format!("{}: rows that cannot be", self.dir.display()))?;
        Ok(Read { input, workload })
    }

    fn options(&self, workload: &Workload, origin_ns: i64) -> Result<Options> {
        let queries = &workload.tables().queries;
        let victim = self.victim.as_ref().map(|name| self.called(queries, name));
        let victims: BTreeSet<QueryId> = victim.transpose()?.into_iter().collect();
        let mut hosts: BTreeSet<HostId> = BTreeSet::new();
        for name in &self.host {
            let known = &workload.tables().hosts;
            let Some(host) = known.iter().find(|host| host.name == *name) else {
                let names: Vec<&str> = known.iter().map(|host| host.name.as_str()).collect();
                bail!(
                    "{} has no host {name}; it has {}",
                    self.dir.display(),
                    list(&names)
                );
            };
            hosts.insert(host.id);
        }
        some_have("user", self.user.as_deref(), queries, |query| &query.user)?;
        some_have("pool", self.pool.as_deref(), queries, |query| &query.pool)?;
        let ends = workload.tables().tasks.iter().map(|task| task.span.end);
        let within = self
            .window
            .map(|window| window.span(origin_ns, ends.max().unwrap_or(origin_ns)))
            .transpose()?;
        Ok(Options {
            victims,
            hosts,
            within,
            resources: self.resource.iter().map(|what| (*what).into()).collect(),
            stages: match self.stages {
                Stages::Critical => VictimStages::CriticalPath,
                Stages::All => VictimStages::All,
            },
            split: match self.split {
                Sharing::Pooled => Split::Pooled,
                Sharing::Window => Split::ByWindow,
            },
            ..Options::default()
        })
    }

    /// The query that is called so.
    fn called(&self, queries: &[Query], name: &str) -> Result<QueryId> {
        if let Some(query) = queries.iter().find(|query| query.name == name) {
            return Ok(query.id);
        }
        // Numbers alone do not tell whose they are where there are several applications.
        let known = queries.iter().map(|query| match query.title() {
            title if title == format!("query {}", query.name) => query.name.clone(),
            title => format!("{} ({title})", query.name),
        });
        bail!(
            "{} has no query {name}; it has queries {}",
            self.dir.display(),
            list(&known.collect::<Vec<_>>())
        );
    }

    fn question<'a>(&self, options: &'a Options) -> Question<'a> {
        Question {
            options,
            victim: options.victims.first().copied(),
            filter: Filter {
                user: self.user.clone(),
                pool: self.pool.clone(),
                // Who asks about everybody wants to know who hurts others.
                others_only: self.victim.is_none(),
                ..Filter::default()
            },
            by: self.by.into(),
            top: self.top,
        }
    }
}

struct Read {
    input: Input,
    workload: Workload,
}

/// Whether a directory holds CSV files of some engine, and no profile.
fn is_csv(dir: &Path) -> bool {
    !remote::is_uri(dir) && !ProfileDir::is_at(dir) && dir.join(contention::INTERVALS_CSV).exists()
}

/// Refuses a name that no query has.
fn some_have(
    what: &str,
    name: Option<&str>,
    queries: &[Query],
    of: impl Fn(&Query) -> &String,
) -> Result<()> {
    let Some(name) = name else { return Ok(()) };
    if queries.iter().any(|query| of(query) == name) {
        return Ok(());
    }
    let known: BTreeSet<&String> = queries.iter().map(of).filter(|n| !n.is_empty()).collect();
    let known: Vec<&String> = known.into_iter().collect();
    bail!("no query has {what} {name}; there are: {}", list(&known))
}
