//! `unfuse blame`: which queries and processes slow a query down.

mod alert;
mod choices;
mod follow;
mod input;
mod prove;
mod when;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use clap::builder::RangedU64ValueParser;
use unfuse_contention::{self as contention, Graph, Input};
use unfuse_postprocess::plain::Form;
use unfuse_report::Report;
use unfuse_report::blame::{self, Answer, Window};
use unfuse_report::check::Limit;

use self::alert::Printed;
use self::choices::{BlockedSource, GraphFormat, Rank, SplitMode, Stages, What};
use self::input::{Part, Source, folded, read};
use self::prove::Prove;
use crate::follow::interval;
use crate::output::{form, write_plain_to};
use crate::remote;
use crate::when::Times;

/// Show which queries, stages, operators or other processes slow a query down
///
/// unfuse divides the blocked time of the query's tasks among those that used the same resource of the same host at the same
/// time. Without --victim every query is a victim, and the tables show which queries cost the others most.
#[derive(Debug, Args)]
pub struct Blame {
    /// The profile directory that `unfuse run` printed, or its URI; or a directory with intervals.csv, see docs/contention.md
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// The slow query: the id of its Spark SQL execution, or its name in CSV files
    #[arg(long, visible_alias = "query", value_name = "QUERY")]
    victim: Option<String>,
    #[command(flatten)]
    times: Times,
    /// Seconds since the first task, as before there was --since
    #[arg(long, value_name = "FROM..TO", allow_hyphen_values = true, hide = true, conflicts_with_all = ["since", "until"])]
    window: Option<Window>,
    /// Only waits for this resource; may be given several times
    #[arg(long, value_enum, value_name = "RESOURCE")]
    resource: Vec<What>,
    /// Only on this host; may be given several times
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
    /// Take the operators of stages from folded stacks, whose first frame is `query N stage M`: those of `unfuse export --format
    /// folded --level operator`, or of another profiler. The last frame counts as the operator; - reads standard input
    #[arg(long, value_name = "FILE", conflicts_with = "follow")]
    folded: Option<PathBuf>,
    /// Rows to print
    #[arg(long, alias = "top", value_name = "N", default_value_t = 10, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    limit: usize,
    /// Which stages of the victim count
    #[arg(long, value_enum, default_value = "critical")]
    stages: Stages,
    /// How the blocked time of a stage is divided
    #[arg(long, value_enum, default_value = "pooled")]
    split: SplitMode,
    /// Count what a query used less, the higher the weight of its scheduler pool is: who uses more than is due to it
    #[arg(long)]
    weighted: bool,
    /// Where blocked times come from
    #[arg(long, value_enum, default_value = "measured")]
    blocked: BlockedSource,
    /// Print JSON
    #[arg(long, conflicts_with = "graph")]
    json: bool,
    /// Write the graph of victims, stages, resources, hosts and culprits instead
    #[arg(long, value_enum, value_name = "FORMAT")]
    graph: Option<GraphFormat>,
    /// The file to write [default: standard output]
    #[arg(short, long, alias = "out", value_name = "FILE")]
    output: Option<PathBuf>,
    /// Answer again and again until the application ends
    #[arg(long, conflicts_with_all = ["graph", "output"])]
    follow: bool,
    /// Time between two answers with --follow
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = interval)]
    every: Duration,
    /// Print only a line for each query that others cost at least this part of its tasks' time, such as 30%; with --follow when it
    /// becomes true
    #[arg(long, value_name = "PART", conflicts_with_all = ["victim", "folded", "graph"])]
    alert: Option<Limit>,
    #[command(flatten)]
    prove: Prove,
}

impl Blame {
    /// Prints the answer.
    pub fn execute(self) -> Result<ExitCode> {
        if let (Some(victim), Some(culprit)) = (&self.victim, self.prove.culprit()) {
            let output = (self.json, self.output.as_deref());
            return self.prove.execute(&self.dir, (victim, culprit), output);
        }
        if self.follow {
            return follow::follow(&self);
        }
        self.answer(&remote::local(&self.dir)?, &mut Printed::default())?;
        Ok(ExitCode::SUCCESS)
    }

    /// Whether blocked time is what tasks waited while they ran, in an application that has ended.
    fn counts_measured_waits(&self, input: &Input) -> bool {
        matches!(self.blocked, BlockedSource::Measured) && input.waits_known && !self.follow
    }

    /// Answers from the present contents of a local directory. `printed` has the alerts that were printed before.
    fn answer(&self, root: &Path, printed: &mut Printed) -> Result<()> {
        let (window, span) = self.window(root)?;
        // A relative window begins with the first of all tasks, and
        // any task can have a given host. Both need the whole profile.
        let is_whole = (window.is_some() && span.is_none()) || !self.host.is_empty();
        let part = Part {
            victim: self.victim.as_deref().filter(|_| !is_whole),
            span: span.filter(|_| !is_whole),
        };
        let folded = self.folded.as_deref().map(folded).transpose()?;
        let source = Source {
            root,
            given: &self.dir,
            folded: folded.as_deref(),
        };
        let (profile, input, workload) = read(&source, self.blocked.into(), &part)?;
        let request = self.request(window);
        let options = request.options(&workload, input.origin_ns)?;
        options.check(&workload)?;
        let blamed = contention::Blame::new(&workload, &options);
        let notes = || blame::notes(&workload, &blamed, &input);
        let graph = || Graph::from_blame(&workload, &blamed);
        // These formats cannot hold notes.
        if let Some(GraphFormat::Graphml | GraphFormat::Cypher) = self.graph {
            for note in notes() {
                crate::say!("note: {note}");
            }
        }
        // Cypher accepts the escapes of JSON too.
        let form = match self.graph {
            Some(GraphFormat::Json | GraphFormat::Cypher) => Form::Json,
            Some(GraphFormat::Graphml) => Form::Text,
            None => form(self.json),
        };
        write_plain_to(self.output.as_deref(), form, |out| {
            let text = match self.graph {
                Some(GraphFormat::Json) => graph().to_json(&notes()) + "\n",
                Some(GraphFormat::Graphml) => graph().to_graphml(),
                Some(GraphFormat::Cypher) => graph().to_cypher(),
                None => {
                    let question = request.question(&options, self.by.into(), self.limit);
                    let mut answer = Answer::new(&workload, &blamed, &question, &input);
                    if let (Some(profile), Some(victim)) = (&profile, question.victim)
                        && question.is_about_all_waits()
                        && self.counts_measured_waits(&input)
                    {
                        let report = Report::new(profile)?;
                        let asked = (victim, options.split);
                        answer.add_victim_seconds(&report, &workload, &input, asked)?;
                    }
                    if let Some(least) = self.alert {
                        printed.lines(answer.alerts(least.part()), self.json)?
                    } else if self.json {
                        serde_json::to_string_pretty(&answer)? + "\n"
                    } else {
                        blame::render(&answer, self.by.into())
                    }
                }
            };
            Ok(out.write_all(text.as_bytes())?)
        })
    }
}
