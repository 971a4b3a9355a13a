//! `unfuse-bench`: measures unfuse and writes the figures to docs/results, each with the command that
//! made it. Timings on shared machines drift: everything is compared in alternation and reported as
//! ratios with their spread.

mod accuracy;
mod codemap;
mod contention;
mod coverage;
mod event_log;
mod foreign;
mod impact;
mod overhead;
mod page;
mod plot;
mod random;
mod report;
mod sampler;
mod session;
mod sizing;
mod skew;
mod soak;
mod spark;
mod synthetic;
mod tools;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Measure unfuse; results go to docs/results.
#[derive(Debug, Parser)]
#[command(name = "unfuse-bench", arg_required_else_help = true)]
struct Cli {
    /// Where to write the results
    #[arg(long, global = true, default_value = "docs/results")]
    results: PathBuf,
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Code map: insert and look up, against a skip list of pointers and a sorted array behind a lock
    Codemap,
    Overhead(overhead::Overhead),
    Accuracy(accuracy::Accuracy),
    Coverage(coverage::Coverage),
    Contention(contention::Contention),
    Impact(impact::Impact),
    Sampler(sampler::Sampler),
    Sizing(sizing::Sizing),
    Skew(skew::Skew),
    Soak(soak::Soak),
    Report(page::Page),
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    match cli.what {
        What::Codemap => codemap::measure(&cli.results),
        What::Contention(contention) => contention.measure(&cli.results),
        What::Coverage(coverage) => coverage.measure(&cli.results),
        What::Accuracy(accuracy) => accuracy.measure(&cli.results),
        What::Impact(impact) => impact.measure(&cli.results),
        What::Report(page) => page.measure(&cli.results),
        What::Sampler(sampler) => sampler.measure(&cli.results),
        What::Sizing(sizing) => sizing.measure(&cli.results),
        What::Skew(skew) => skew.measure(&cli.results),
        What::Soak(soak) => soak.measure(&cli.results),
        What::Overhead(overhead) => overhead.measure(&cli.results),
    }
}
