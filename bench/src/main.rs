//! `unfuse-bench`: measures unfuse and writes the figures to docs/results, each beside its aim and with the command,
//! commit and machine that it comes from. Timings on shared machines drift, so measurements alternate, and results are
//! ratios with their spread.

mod accuracy;
mod advise;
mod aims;
mod boundaries;
mod codemap;
mod contention;
mod coverage;
mod disk;
mod documents;
mod event_log;
mod foreign;
mod gate;
mod html_report;
mod impact;
mod instructions;
mod marked;
mod on_off;
mod overhead;
mod page;
mod pages;
mod plot;
mod plugin;
mod python;
mod random;
mod sampler;
mod scale;
mod session;
mod sizing;
mod skew;
mod soak;
mod spark;
mod stats;
mod synthetic;
mod tools;
mod versions;
mod what_if;
mod why;

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
    Advise(advise::Advise),
    Boundaries(boundaries::Boundaries),
    Codemap(codemap::Codemap),
    Overhead(overhead::Overhead),
    Accuracy(accuracy::Accuracy),
    Coverage(coverage::Coverage),
    Gate(gate::Gate),
    Contention(contention::Contention),
    Impact(impact::Impact),
    Instructions(instructions::Instructions),
    Marked(marked::Marked),
    OnOff(on_off::OnOff),
    Pages(pages::Pages),
    Plugin(plugin::Plugin),
    Python(python::Python),
    Sampler(sampler::Sampler),
    Scale(scale::Scale),
    Sizing(sizing::Sizing),
    Skew(skew::Skew),
    Soak(soak::Soak),
    Report(html_report::HtmlReport),
    Versions(versions::Versions),
    WhatIf(what_if::WhatIf),
    Why(why::Why),
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    match cli.what {
        What::Advise(advise) => advise.measure(&cli.results),
        What::Boundaries(boundaries) => boundaries.measure(&cli.results),
        What::Codemap(codemap) => codemap.measure(&cli.results),
        What::Contention(contention) => contention.measure(&cli.results),
        What::Coverage(coverage) => coverage.measure(&cli.results),
        What::Gate(gate) => gate.run(),
        What::Accuracy(accuracy) => accuracy.measure(&cli.results),
        What::Impact(impact) => impact.measure(&cli.results),
        What::Instructions(instructions) => instructions.measure(&cli.results),
        What::Marked(marked) => marked.measure(&cli.results),
        What::OnOff(on_off) => on_off.measure(&cli.results),
        What::Pages(pages) => pages.run(&cli.results),
        What::Plugin(plugin) => plugin.measure(&cli.results),
        What::Python(python) => python.measure(&cli.results),
        What::Report(report) => report.measure(&cli.results),
        What::Sampler(sampler) => sampler.measure(&cli.results),
        What::Scale(scale) => scale.measure(&cli.results),
        What::Sizing(sizing) => sizing.measure(&cli.results),
        What::Skew(skew) => skew.measure(&cli.results),
        What::Soak(soak) => soak.measure(&cli.results),
        What::Versions(versions) => versions.measure(&cli.results),
        What::WhatIf(what_if) => what_if.measure(&cli.results),
        What::Why(why) => why.measure(&cli.results),
        What::Overhead(overhead) => overhead.measure(&cli.results),
    }
}
