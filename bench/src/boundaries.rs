//! Adds inline arithmetic to one operator of a fused pipeline at a time, and measures
//! to which operators its time is attributed.

mod differences;
mod figures;
pub(crate) mod shapes;
pub(crate) mod turns;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use anyhow::Result;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use unfuse_postprocess::{By, Selection, Totals};

use crate::page::{ATTRIBUTION, Measuring};
use crate::spark::Spark;
use differences::{Differences, Held, Run};
use figures::figures;
use shapes::{Shape, Shapes, Variant};
use turns::Turns;

/// Inline arithmetic in one operator of a fused pipeline at a time, and where its time appears
#[derive(Debug, Args)]
pub struct Boundaries {
    /// Samples a second of CPU time
    #[arg(long, default_value_t = 1000)]
    pub rate: u32,
    /// Runs of each query in a JVM that count, after two to warm up
    #[arg(long, default_value_t = 8)]
    pub runs: u32,
    /// JVMs for each setting of `regions`, at most
    #[arg(long, default_value_t = 6)]
    pub jvms: u32,
    /// No more JVMs once the intervals of all shares at other operators are within this, % of the added time
    #[arg(long, default_value_t = 0.5)]
    pub within: f64,
    /// Steps of arithmetic that are added for each row
    #[arg(long, default_value_t = 60)]
    pub steps: u32,
    /// Only these queries, such as broadcast,generate
    #[arg(long, value_delimiter = ',')]
    pub only: Vec<String>,
    /// Only these places, such as Filter,BroadcastHashJoin.key
    #[arg(long, value_delimiter = ',')]
    pub places: Vec<String>,
    /// More settings of Spark, key=value
    #[arg(long)]
    pub conf: Vec<String>,
}

/// Settings of the agent's option `regions`.
pub(crate) const SETTINGS: [&str; 2] = ["plain", "exact"];
/// Work of no operator: reading the plan, compiling it, sending results.
const HEADINGS: &str = "[headings]";
/// The name of the query without added work.
const BASE: &str = "base";

impl Boundaries {
    /// Measures and writes `boundaries.md`.
    pub fn measure(&self, results: &Path) -> Result<()> {
        let page = Measuring::begin(results, "boundaries", &ATTRIBUTION)?;
        let shapes = Shapes::wanted(&self.only)?;
        let spark = Spark::install("1")?;
        let bar = ProgressBar::new(u64::from(self.jvms) * SETTINGS.len() as u64).with_style(
            ProgressStyle::with_template("[{bar:24}] JVM {pos} of {len}, {msg}, {elapsed}")?,
        );
        let mut measured: BTreeMap<&str, Measured> = BTreeMap::new();
        for jvm in 0..self.jvms {
            for setting in SETTINGS {
                bar.set_message(format!("regions={setting}"));
                let runs = self.run(&spark, &shapes, setting, u64::from(jvm))?;
                measured.entry(setting).or_default().add(&shapes, &runs);
                bar.inc(1);
            }
            let widest = measured
                .values()
                .flat_map(|measured| &measured.variants)
                .filter_map(|(variant, differences)| differences.most(variant))
                .fold(0.0, |widest, (_, (_, half))| f64::max(widest, half));
            if widest <= self.within / 100.0 {
                break;
            }
        }
        bar.finish_and_clear();
        page.finish(self.runs, figures(&measured), &self.body(&measured))
    }

    /// Runs all queries in turn in one JVM. Returns the runs that count, by query.
    fn run(
        &self,
        spark: &Spark,
        shapes: &[Shape],
        setting: &str,
        seed: u64,
    ) -> Result<BTreeMap<String, Vec<Run>>> {
        let mut queries: Vec<(String, String)> = Vec::new();
        for shape in shapes {
            queries.push((format!("{}/{BASE}", shape.name), shape.text(None)));
            let variants = shape.variants();
            let is_wanted =
                |variant: &Variant| self.places.is_empty() || self.places.contains(&variant.place);
            for variant in variants.into_iter().filter(is_wanted) {
                queries.push((variant.name(), shape.text(Some((&variant, self.steps)))));
            }
        }
        let options = format!("rate={},regions={setting}", self.rate);
        let turns = Turns::record(spark, options, &self.conf, &mut queries, self.runs, seed)?;
        let mut runs: BTreeMap<String, Vec<Run>> = BTreeMap::new();
        for (execution, name) in turns.runs {
            let selection = Selection {
                query: Some(execution),
                ..Selection::default()
            };
            let mut run = Run::new();
            let totals = Totals::new(&turns.profile, selection, By::Operator);
            let bound = |share: Option<f64>| share.unwrap_or_default() * totals.cpu_seconds;
            for row in totals.rows {
                let to = if row.heading {
                    HEADINGS.to_owned()
                } else {
                    row.operator
                };
                let time = run.entry(to).or_default();
                time.s += row.cpu_seconds;
                time.low_s += bound(row.share_low);
                time.high_s += bound(row.share_high);
            }
            runs.entry(name).or_default().push(run);
        }
        Ok(runs)
    }

    fn body(&self, measured: &BTreeMap<&str, Measured>) -> String {
        let mut body = format!(
            "{} steps of arithmetic a row, written inline into one operator at a time; local[2], Spark 4.3, {} Hz, not ANSI; \
             all queries take turns in random order in one JVM. *added*: CPU time of the altered query less that of the base query of the same turn. \
             *at the altered*: the part of it that the altered operator shows; above 100% it does work meanwhile that others did before, so that \
             without it less would be saved than its share says. *under headings*: the part of it that no operator does, such as reading and compiling the larger plan. \
             *at others*: the operator that was not altered and shows the most of it, with its 95% interval. *Others show less*: the sum of what \
             other operators lose, which is work that the processor now does while it waits for the added arithmetic. Steps of dependent work each need the one \
             before; of independent work a processor computes several steps at once. *Ranges that hold the truth*: of each operator, in each run, the difference \
             of its ranges in `unfuse top --json` should hold what was added to it, which is 0 for all but one. *The same query twice*: the ranges of two runs of a base query, \
             whose difference should hold 0. What they miss is not an error of attribution: the operators really took another time.\n\n",
            self.steps, self.rate
        );
        for (setting, Measured { variants, .. }) in measured {
            let _ = writeln!(
                body,
                "### regions={setting}\n\n| query | altered | work | runs | added, s | at the altered, % | under headings, % | at others, the most, % | others show less, % | ranges that hold the truth, % |\n|---|---|---|---|---|---|---|---|---|---|"
            );
            for (variant, differences) in variants {
                body += &differences.row(variant);
            }
            body.push('\n');
        }
        body
    }
}

/// What was measured with one setting of `regions`.
#[derive(Default)]
struct Measured {
    variants: BTreeMap<Variant, Differences>,
    /// Number of operators' differences between two runs of the same query whose bounds contain 0, and number of all.
    same: Held,
}

impl Measured {
    /// Compares the runs of one JVM, turn by turn.
    fn add(&mut self, shapes: &[Shape], runs: &BTreeMap<String, Vec<Run>>) {
        let none = Vec::new();
        for shape in shapes {
            let base = runs.get(&format!("{}/{BASE}", shape.name)).unwrap_or(&none);
            for (before, after) in base.iter().zip(base.iter().skip(1)) {
                self.same.add(before, after, None);
            }
            for variant in shape.variants() {
                let Some(altered) = runs.get(&variant.name()) else {
                    continue;
                };
                let operator = variant.operator().to_owned();
                let differences = self.variants.entry(variant).or_default();
                for (base, altered) in base.iter().zip(altered) {
                    differences.add(base, altered);
                    differences.held.add(base, altered, Some(&operator));
                }
            }
        }
    }
}
