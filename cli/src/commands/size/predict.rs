//! `unfuse size predict`: how long a job takes on a cluster.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use unfuse_report::size::{PredictionAnswer, render_prediction};

use super::cluster::cluster;
use super::job_args::{JobArgs, deadline};
use crate::output::print;

/// Predict the running time on a number of slots or on a cluster
#[derive(Debug, Args)]
pub(super) struct Predict {
    #[command(flatten)]
    job: JobArgs,
    /// Tasks that can run at once
    #[arg(
        long,
        value_name = "N",
        required_unless_present = "cluster",
        conflicts_with = "cluster"
    )]
    slots: Option<f64>,
    /// Machines of the price table, such as m5.xlarge=3,c5.large=2
    #[arg(long, value_name = "TYPE=N,…", requires = "prices")]
    cluster: Option<String>,
    /// The price table (TOML, see docs/sizing.md)
    #[arg(long, value_name = "FILE")]
    prices: Option<PathBuf>,
    /// Also print how likely the job ends before, such as 90s or 10m after its start
    #[arg(long, value_name = "DURATION", value_parser = deadline)]
    deadline: Option<Duration>,
}

impl Predict {
    pub(super) fn execute(self) -> Result<()> {
        let job = self.job.open()?;
        let (cluster, slots) = match (&self.cluster, &self.prices, self.slots) {
            (Some(text), Some(prices), _) => {
                let (cluster, slots) = cluster(text, prices)?;
                (Some(cluster), slots)
            }
            (_, _, Some(slots)) => (None, slots),
            _ => bail!("give --slots N, or --cluster with --prices"),
        };
        let deadline = self.deadline.map(|deadline| deadline.as_secs_f64());
        let predicted = PredictionAnswer::new(&job, cluster, slots, deadline)?;
        print(None, self.job.json, &predicted, || {
            render_prediction(&job, &predicted)
        })
    }
}
