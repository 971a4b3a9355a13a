//! `unfuse blame`: who slowed a query down.

mod asked;
mod follow;
mod input;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use clap::builder::RangedU64ValueParser;
use unfuse_contention::Graph;
use unfuse_postprocess::plain::Form;
use unfuse_report::blame::{self, Answer, Found, Wanted, Window};

use self::asked::{Blocked, GraphFormat, Rank, Sharing, Stages, What};
use self::input::read;
use crate::output::{form, write_plain_to};
use crate::remote;

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

impl Blame {
    /// Prints the answer.
    pub fn execute(self) -> Result<ExitCode> {
        if self.follow {
            return follow::follow(&self);
        }
        self.answer(&remote::local(&self.dir)?)?;
        Ok(ExitCode::SUCCESS)
    }

    /// Answers from what is in a local directory now.
    fn answer(&self, root: &Path) -> Result<()> {
        // A window begins with the first task of all, and names of hosts may be those of any task.
        let victim = self.victim.as_deref();
        let victim = victim.filter(|_| self.window.is_none() && self.host.is_empty());
        let (input, workload) = read(root, &self.dir, self.blocked.into(), victim)?;
        let wanted = self.wanted();
        let options = wanted.options(&workload, input.origin_ns)?;
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
                    let answer = Answer::of(
                        &found,
                        &wanted.question(&options, self.by.into(), self.top),
                        &input,
                    );
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

    fn wanted(&self) -> Wanted<'_> {
        Wanted {
            place: self.dir.display().to_string(),
            victim: self.victim.as_deref(),
            window: self.window,
            resources: self.resource.iter().map(|what| (*what).into()).collect(),
            hosts: &self.host,
            user: self.user.as_deref(),
            pool: self.pool.as_deref(),
            stages: self.stages.into(),
            split: self.split.into(),
        }
    }
}
