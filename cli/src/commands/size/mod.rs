//! `unfuse size`: how long a job takes on another cluster, and which cluster to take.

mod answer;
mod asked;
mod fit;
mod plot;
mod text;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use serde::Serialize;
use unfuse_postprocess::plain::Form;
use unfuse_sizing::{Chance, Cluster, Offer, Prediction, best, cheapest, curve};

use self::answer::{Answer, Curve};
use self::asked::{Asked, Shop};
use super::record::duration;
use crate::output::{form, write_plain_to};

/// Predict how long a job takes on another cluster, and find the cheapest cluster before a deadline
///
/// `unfuse size fit` makes a profile of the job from event logs or profile directories of some runs; the other commands answer from it. docs/sizing.md says
/// which runs are wanted and what the models are.
#[derive(Debug, Args)]
pub struct Size {
    #[command(subcommand)]
    question: Question,
}

#[derive(Debug, Subcommand)]
enum Question {
    Fit(fit::Fit),
    Predict(Predict),
    Cheapest(Cheapest),
    Best(Best),
    Curve(CurveOf),
}

/// How long it takes on a number of slots or on a cluster, and whether that is before a deadline
#[derive(Debug, Args)]
struct Predict {
    #[command(flatten)]
    asked: Asked,
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
    /// The price table, TOML
    #[arg(long, value_name = "FILE")]
    prices: Option<PathBuf>,
    /// Says how likely it ends before, such as 90s or 10m
    #[arg(long, value_name = "TIME", value_parser = duration)]
    deadline: Option<Duration>,
}

/// The cheapest cluster that ends before a deadline
#[derive(Debug, Args)]
struct Cheapest {
    #[command(flatten)]
    asked: Asked,
    #[command(flatten)]
    shop: Shop,
    /// Such as 90s or 10m
    #[arg(long, value_name = "TIME", value_parser = duration)]
    deadline: Duration,
    /// The upper end of the interval must be before it, not only the estimate
    #[arg(long)]
    sure: bool,
}

/// The fastest cluster on which the job costs no more than a budget
#[derive(Debug, Args)]
struct Best {
    #[command(flatten)]
    asked: Asked,
    #[command(flatten)]
    shop: Shop,
    /// For one run of the job, in the currency of the price table
    #[arg(long, value_name = "AMOUNT", allow_negative_numbers = true)]
    budget: f64,
    /// It must end before, too, such as 90s or 10m
    #[arg(long, value_name = "TIME", value_parser = duration)]
    deadline: Option<Duration>,
}

/// All clusters that no other is both faster and cheaper than, with a plot
#[derive(Debug, Args)]
struct CurveOf {
    #[command(flatten)]
    asked: Asked,
    #[command(flatten)]
    shop: Shop,
    /// Draws cost against time, SVG
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Size {
    /// Answers.
    pub fn execute(self) -> Result<ExitCode> {
        match self.question {
            Question::Fit(fit) => fit.execute()?,
            Question::Predict(predict) => predict.execute()?,
            Question::Cheapest(cheapest) => cheapest.execute()?,
            Question::Best(best) => best.execute()?,
            Question::Curve(curve) => curve.execute()?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// What `predict` says.
#[derive(Serialize)]
struct Predicted {
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<Cluster>,
    #[serde(flatten)]
    prediction: Prediction,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline: Option<Chance>,
}

impl Predict {
    fn execute(self) -> Result<()> {
        let about = self.asked.open()?;
        let (cluster, slots) = match (&self.cluster, &self.prices, self.slots) {
            (Some(cluster), Some(prices), _) => {
                let (cluster, slots) = asked::cluster(cluster, prices)?;
                (Some(cluster), slots)
            }
            (_, _, Some(slots)) => (None, slots),
            _ => bail!("say --slots N, or --cluster with --prices"),
        };
        let prediction = about.predict(slots)?;
        let chance = self
            .deadline
            .map(|deadline| prediction.chance(deadline.as_secs_f64()));
        let predicted = Predicted {
            cluster,
            prediction,
            deadline: chance,
        };
        print(self.asked.json, &predicted, || {
            text::predicted(&about, &predicted)
        })
    }
}

impl Cheapest {
    fn execute(self) -> Result<()> {
        let about = self.asked.open()?;
        let market = self.shop.market(&about)?;
        let deadline = self.deadline.as_secs_f64();
        let time = |slots: f64| Ok(about.predict(slots)?.seconds);
        let upper = |slots: f64| Ok(about.predict(slots)?.high);
        let offer = if self.sure {
            cheapest(&market, &time, Some(&upper), deadline)
                .context("with --sure the upper ends of intervals count")?
        } else {
            cheapest(&market, &time, None, deadline)?
        };
        let mut answer = Answer::of(&about, &market, &self.shop, offer, Some(deadline))?;
        if !self.sure {
            // The answer holds without it.
            match about.bound(&market, deadline) {
                Ok(bound) => answer.bound = bound,
                Err(error) => answer
                    .notes
                    .push(format!("no bound of the cost is known: {error}")),
            }
        }
        print(self.asked.json, &answer, || text::offered(&about, &answer))
    }
}

impl Best {
    fn execute(self) -> Result<()> {
        let about = self.asked.open()?;
        let market = self.shop.market(&about)?;
        let time = |slots: f64| Ok(about.predict(slots)?.seconds);
        let offer = best(&market, &time, self.budget)?;
        let deadline = self.deadline.map(|deadline| deadline.as_secs_f64());
        if let Some(deadline) = deadline.filter(|deadline| offer.seconds >= *deadline) {
            // Says so if nothing meets it at any price.
            let needed = cheapest(&market, &time, None, deadline)?;
            bail!(
                "{budget} {currency} are not enough for a deadline of {deadline:.1} s: the fastest for it is {cluster}, which takes {seconds:.1} s; \
                 the cheapest that is in time is {other} and costs {cost:.4} {currency}",
                budget = self.budget,
                currency = market.currency,
                cluster = offer.cluster,
                seconds = offer.seconds,
                other = needed.cluster,
                cost = needed.cost,
            );
        }
        let answer = Answer::of(&about, &market, &self.shop, offer, deadline)?;
        print(self.asked.json, &answer, || text::offered(&about, &answer))
    }
}

impl CurveOf {
    fn execute(self) -> Result<()> {
        let about = self.asked.open()?;
        let market = self.shop.market(&about)?;
        let time = |slots: f64| Ok(about.predict(slots)?.seconds);
        let offers: Vec<Offer> = curve(&market, &time)?;
        let curve = Curve::of(&about, &market, &self.shop, offers)?;
        if let Some(path) = &self.out {
            let svg = plot::curve(&curve)?;
            write_plain_to(Some(path), Form::Text, |out| {
                Ok(out.write_all(svg.as_bytes())?)
            })?;
        }
        print(self.asked.json, &curve, || {
            text::curve(&about, &curve, self.out.as_deref())
        })
    }
}

/// Prints JSON or text.
fn print(json: bool, data: &impl Serialize, text: impl FnOnce() -> String) -> Result<()> {
    write_plain_to(None, form(json), |out| {
        if json {
            serde_json::to_writer_pretty(&mut *out, data)?;
            return Ok(writeln!(out)?);
        }
        Ok(out.write_all(text().as_bytes())?)
    })
}
