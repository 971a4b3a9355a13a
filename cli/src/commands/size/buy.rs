//! `unfuse size cheapest`, `best` and `curve`: which cluster to use.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use unfuse_postprocess::plain::Form;
use unfuse_report::size::{Answer, Curve, draw_curve, render_curve, render_offer};

use super::job_args::{JobArgs, Shop, deadline};
use crate::output::{print, write_plain_to};

/// Find the cheapest cluster that finishes before a deadline
#[derive(Debug, Args)]
pub(super) struct Cheapest {
    #[command(flatten)]
    job: JobArgs,
    #[command(flatten)]
    shop: Shop,
    /// When the job must be finished, such as 90s or 10m after its start
    #[arg(long, value_name = "DURATION", value_parser = deadline)]
    deadline: Duration,
    /// The upper end of the interval must be before the deadline, not only the estimate
    #[arg(long)]
    sure: bool,
}

/// Find the fastest cluster on which the job costs at most a budget
#[derive(Debug, Args)]
pub(super) struct Best {
    #[command(flatten)]
    job: JobArgs,
    #[command(flatten)]
    shop: Shop,
    /// For one run of the job, in the currency of the price table
    #[arg(long, value_name = "AMOUNT", allow_negative_numbers = true)]
    budget: f64,
    /// When the job must be finished, too, such as 90s or 10m after its start
    #[arg(long, value_name = "DURATION", value_parser = deadline)]
    deadline: Option<Duration>,
}

/// List the clusters that are worth their price: no other one is both faster and cheaper
#[derive(Debug, Args)]
pub(super) struct CurveOf {
    #[command(flatten)]
    job: JobArgs,
    #[command(flatten)]
    shop: Shop,
    /// Also write a plot of cost against time (SVG)
    #[arg(short, long, alias = "out", value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Cheapest {
    pub(super) fn execute(self) -> Result<()> {
        let job = self.job.open()?;
        let market = self.shop.market(&job)?;
        let (tariff, deadline) = (self.shop.tariff(), self.deadline.as_secs_f64());
        let answer = Answer::cheapest(&job, &market, tariff, deadline, self.sure);
        let answer = if self.sure {
            answer.context("with --sure the upper end of the interval counts")?
        } else {
            answer?
        };
        print(None, self.job.json, &answer, || render_offer(&job, &answer))
    }
}

impl Best {
    pub(super) fn execute(self) -> Result<()> {
        let job = self.job.open()?;
        let market = self.shop.market(&job)?;
        let deadline = self.deadline.map(|deadline| deadline.as_secs_f64());
        let answer = Answer::best(&job, &market, self.shop.tariff(), self.budget, deadline)?;
        print(None, self.job.json, &answer, || render_offer(&job, &answer))
    }
}

impl CurveOf {
    pub(super) fn execute(self) -> Result<()> {
        let job = self.job.open()?;
        let market = self.shop.market(&job)?;
        let curve = Curve::new(&job, &market, self.shop.tariff())?;
        if let Some(path) = &self.output {
            let svg = draw_curve(&curve)?;
            write_plain_to(Some(path), Form::Text, |out| {
                Ok(out.write_all(svg.as_bytes())?)
            })?;
        }
        print(None, self.job.json, &curve, || {
            render_curve(&job, &curve, self.output.as_deref())
        })
    }
}
