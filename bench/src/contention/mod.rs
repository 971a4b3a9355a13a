//! Whether the known culprits are found: the experiments of iQCAR's section 6.

mod act;
mod cases;
mod collection;
mod harm;
mod heartbeat;
mod judge;
mod nobody;
mod pairs;
mod recorded;
mod replay;
mod scaling;
mod scenario;
mod server;
mod trino;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};

use self::scenario::Case;
use crate::spark::Spark;

/// The code that all experiments with a running Spark measure.
const MEASURES: [&str; 8] = [
    "analysis/contention/src",
    // The seconds of the victim.
    "analysis/sizing/src/what_if",
    "analysis/sizing/src/replay",
    "report/src/what_if",
    "report/src/blame",
    "profiler",
    "jvmti-agent/src",
    "spark-patches/src",
];

/// Who slows whom down: users on TPC-DS with known culprits, against what `unfuse blame` finds
#[derive(Debug, Args)]
pub struct Contention {
    /// Which experiments
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "cases,pairs,harm,harm-duty,harm-allocation,harm-locks,harm-weights,harm-sleeper,harm-cache,harm-stages,nobody,replay,collection,scaling,trino"
    )]
    pub parts: Vec<Part>,
    /// Carry out what `unfuse blame` suggests, and say what came of it, instead of the other experiments
    #[arg(long, conflicts_with = "parts")]
    pub act: bool,
    /// Which of the cases; the figures of the page are about these
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Case::ALL)]
    pub cases: Vec<Case>,
    /// Scale factor of TPC-DS
    #[arg(long, default_value = "1")]
    pub scale: String,
    /// The query that is slowed down: one that runs for a while and needs memory
    #[arg(long, value_name = "QUERY", default_value = "q67")]
    pub victim: String,
    /// How long users of the cases think before each query, s: at most twice this, the mean of all is this
    #[arg(long, default_value_t = 20.0)]
    pub think: f64,
    /// Task slots; more than there are cores, so that tasks have to share these
    #[arg(long, default_value_t = 6)]
    pub slots: u32,
    /// Queries of each of the six users, beside the victim
    #[arg(long, default_value_t = 3)]
    pub queries: usize,
    /// Runs of everything
    #[arg(long, default_value_t = 3)]
    pub runs: u32,
    /// How long mixes are replayed, min
    #[arg(long, default_value_t = 60)]
    pub minutes: u64,
    /// Keep the profiles of neighbours in this directory, on the file system of the cache
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Where the choice of queries begins
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// An experiment; each writes `contention-NAME.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// The induced culprits of table 1, each with a control run, and figure 13
    Cases,
    /// Blame and simpler methods against the slow-down that one query causes another
    Pairs,
    /// Neighbours with equal overlap, of which some do harm: the truth is found by leaving each out
    Harm,
    /// The same: CPU used for 100%, 25% and 0% of the time
    HarmDuty,
    /// The same: one allocates, one computes
    HarmAllocation,
    /// The same: one holds the victim's lock, one another lock
    HarmLocks,
    /// The same: scheduler pools of different weights
    HarmWeights,
    /// The same: one sleeps for long, one computes for a short time
    HarmSleeper,
    /// The same: one reads the disk, one the page cache
    HarmCache,
    /// The same: one computes beside the victim's critical stage, one beside another stage
    HarmStages,
    /// A query that slows itself down, beside neighbours that do no harm
    Nobody,
    /// Mixes of queries, replayed without the neighbour that is blamed most, and without another one
    Replay,
    /// What collecting costs (figure 14)
    Collection,
    /// How long the analysis takes (figure 15)
    Scaling,
    /// Queries of Trino, of which one does harm
    Trino,
}

impl Contention {
    /// Measures and writes the pages.
    pub fn measure(&self, results: &Path) -> Result<()> {
        if self.runs == 0 || self.queries == 0 {
            bail!("--runs and --queries must be at least 1");
        }
        if !(0.0..=3600.0).contains(&self.think) {
            bail!("--think is from 0 to 3600 s");
        }
        let spark = || Spark::install_tpcds(&self.scale);
        if self.act {
            return act::measure(self, &spark()?, results);
        }
        for part in &self.parts {
            match part {
                Part::Cases => cases::measure(self, &spark()?, results)?,
                Part::Pairs => pairs::measure(self, &spark()?, results)?,
                Part::Nobody => nobody::measure(self, &spark()?, results)?,
                Part::Replay => replay::measure(self, &spark()?, results)?,
                Part::Collection => collection::measure(self, &spark()?, results)?,
                Part::Scaling => scaling::measure(self, results)?,
                Part::Trino => trino::measure(self, results)?,
                Part::Harm
                | Part::HarmDuty
                | Part::HarmAllocation
                | Part::HarmLocks
                | Part::HarmWeights
                | Part::HarmSleeper
                | Part::HarmCache
                | Part::HarmStages => harm::measure(self, *part, &spark()?, results)?,
            }
        }
        Ok(())
    }
}
