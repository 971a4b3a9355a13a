//! A module for each command: a clap `Args` with an `execute`.

pub mod advise;
pub mod agent;
pub mod blame;
pub mod check;
pub mod completions;
pub mod demo;
pub mod doctor;
pub mod export;
pub mod flame;
pub mod history;
pub mod impact;
pub mod launch;
pub mod man;
pub mod mcp;
pub mod pause;
pub mod plan;
pub mod record;
pub mod report;
pub mod run;
pub mod schema;
pub mod setup;
pub mod size;
pub mod skew;
pub mod source;
pub mod top;
pub mod trino;
pub mod what_if;
pub mod why;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use unfuse_format::EVENT_LOG;
use unfuse_postprocess::{Level, Period, Profile, Selection, Time};

use crate::remote;
use crate::when::{Times, recorded};
use unfuse_report::text::list;

/// Which profile, and which part of it.
#[derive(Debug, Args)]
pub struct Input {
    /// The profile directory that `unfuse run` printed, or its URI (hdfs://…, s3a://…); or an event log of Spark, see
    /// docs/event-logs.md
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Only this query: the id of a Spark SQL execution
    #[arg(long, value_name = "N")]
    query: Option<i64>,
    /// Only this stage
    #[arg(long, value_name = "N")]
    stage: Option<i32>,
    #[command(flatten)]
    times: Times,
}

impl Input {
    /// Reads the profile, reports on stderr what it leaves out, and checks the selection.
    fn open(&self) -> Result<(Profile, Selection)> {
        self.open_for(Time::Cpu)
    }

    /// The same for a given kind of time: on the CPU, waiting, or both.
    fn open_for(&self, time: Time) -> Result<(Profile, Selection)> {
        let dir = remote::local(&self.dir)?;
        let selection = Selection {
            period: self.times.period(&dir)?,
            ..self.selection(time)
        };
        let profile = Profile::open_selected(&dir, selection)?.named(&self.dir);
        if profile.selected(selection).next().is_none() {
            bail!("{}", self.why_nothing(&dir, time)?);
        }
        say_problems(&profile);
        Ok((profile, selection))
    }

    /// The selection of all the profile's time.
    fn selection(&self, time: Time) -> Selection {
        Selection {
            query: self.query,
            stage: self.stage,
            time,
            period: Period::ALL,
        }
    }

    /// Why the selection is empty. Only the whole profile shows what could be selected.
    fn why_nothing(&self, dir: &Path, time: Time) -> Result<String> {
        let profile = Profile::open(dir)?;
        say_problems(&profile);
        let dir = self.dir.display();
        if profile.groups.is_empty() && profile.waits.is_empty() {
            return Ok(format!("{dir}: {}", why_empty(&profile)));
        }
        if time == Time::OffCpu && profile.waits.is_empty() {
            return Ok(format!("{dir}: {NO_WAITS}"));
        }
        if time == Time::Cpu && profile.groups.is_empty() {
            return Ok(format!("{dir}: {ONLY_WAITS}"));
        }
        let (queries, stages) = (list(&profile.queries()), list(&profile.stage_ids()));
        if !self.times.is_all() {
            return Ok(format!(
                "{dir} has no samples of that time, query and stage; it was recorded {}, with samples of queries {queries} \
                 and stages {stages}",
                recorded(&profile.processes)
            ));
        }
        Ok(format!(
            "{dir} has no samples of that query and stage; it has samples of queries {queries} and stages {stages}"
        ))
    }
}

const NO_WAITS: &str = "the profile has no waits. Recording them needs perf_event (`unfuse doctor` checks this machine) \
     and the agent's option waits=on, which is the default";

/// For example, the JVM ended before its first sample was due.
const ONLY_WAITS: &str =
    "the profile has no samples of CPU time, only waits: `--kind off-cpu` shows them";

/// Which time to show.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Kind {
    /// CPU time
    Cpu,
    /// Wait time: for disks, the network, locks, a CPU …
    OffCpu,
    /// Both
    Wall,
}

impl From<Kind> for Time {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Cpu => Self::Cpu,
            Kind::OffCpu => Self::OffCpu,
            Kind::Wall => Self::Wall,
        }
    }
}

/// How much of a stack to write.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Depth {
    /// Operators only
    Operator,
    /// Every frame, with the operators between them
    Full,
}

impl From<Depth> for Level {
    fn from(depth: Depth) -> Self {
        match depth {
            Depth::Operator => Self::Operator,
            Depth::Full => Self::Full,
        }
    }
}

/// Reads a profile and reports on stderr what it leaves out.
fn open(dir: &Path) -> Result<Profile> {
    let profile = Profile::open(&remote::local(dir)?)?.named(dir);
    say_problems(&profile);
    Ok(profile)
}

/// Reports on stderr what was left out of a profile.
fn say_problems(profile: &Profile) {
    for problem in &profile.problems {
        crate::say!("unfuse: {problem}");
    }
    for failure in &profile.failures {
        crate::say!("unfuse: the profile is not complete: {failure}");
    }
}

fn why_empty(profile: &Profile) -> &'static str {
    if profile
        .processes
        .iter()
        .any(|process| process.source == EVENT_LOG)
    {
        "an event log has no samples; `unfuse why`, `plan`, `blame`, `skew`, `what-if` and `report` use what it has"
    } else if profile.processes.is_empty() && !profile.failures.is_empty() {
        "the profile is empty: the agent could not profile the JVM"
    } else if profile.processes.is_empty() {
        "the profile is empty: no JVM has written to it. Start the command with `unfuse run`, or java with -agentpath; \
         `unfuse doctor` checks this machine"
    } else if !profile.failures.is_empty() {
        "the profile has no samples: the writer could not write them"
    } else if profile.processes.iter().all(|process| process.rate_hz == 0) {
        "the profile has no samples: it was recorded with --rate 0"
    } else {
        "the profile has no samples: the JVM ended too soon, or the profiled threads did no work. \
         Try a higher --rate or --agent-options threads=all; `unfuse doctor` checks this machine"
    }
}
