//! `unfuse`: takes Spark's fused pipelines apart.

mod attach;
mod commands;
mod duration;
mod fresh;
mod launch;
mod output;
mod remote;
mod setup;
mod trial;

use std::io;
use std::panic::PanicHookInfo;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Reading a profile is many small texts, made on one thread and dropped on another.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Which SQL operator, and which line of generated code, a Spark job's CPU time goes to.
///
/// Start with `unfuse demo`, or profile your own job: `unfuse run -- spark-submit job.py`, then
/// `unfuse report` (a page for the browser), `unfuse top`, `unfuse flame` and `unfuse source` on the
/// directory it prints.
#[derive(Debug, Parser)]
#[command(name = "unfuse", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(commands::run::Run),
    Record(commands::record::Record),
    Report(commands::report::Report),
    Top(commands::top::Top),
    Flame(commands::flame::Flame),
    Source(commands::source::Source),
    History(commands::history::History),
    Blame(commands::blame::Blame),
    Skew(commands::skew::Skew),
    Impact(commands::impact::Impact),
    Size(commands::size::Size),
    Export(commands::export::Export),
    Doctor(commands::doctor::Doctor),
    Demo(commands::demo::Demo),
    Setup(commands::setup::Setup),
    Agent(commands::agent::Agent),
}

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(tell_panic));
    let result = match Cli::parse().command {
        Command::Run(run) => run.execute(),
        Command::Record(record) => record.execute(),
        Command::Report(report) => report.execute(),
        Command::Top(top) => top.execute(),
        Command::Flame(flame) => flame.execute(),
        Command::Source(source) => source.execute(),
        Command::History(history) => history.execute(),
        Command::Blame(blame) => blame.execute(),
        Command::Skew(skew) => skew.execute(),
        Command::Impact(impact) => impact.execute(),
        Command::Size(size) => size.execute(),
        Command::Export(export) => export.execute(),
        Command::Doctor(doctor) => doctor.execute(),
        Command::Demo(demo) => demo.execute(),
        Command::Setup(setup) => setup.execute(),
        Command::Agent(agent) => agent.execute(),
    };
    match result {
        Ok(code) => code,
        // `unfuse top DIR | head` is no error.
        Err(e) if is_broken_pipe(&e) => ExitCode::SUCCESS,
        Err(e) => {
            say!("unfuse: {e:#}");
            ExitCode::FAILURE
        }
    }
}

/// A panic is a mistake of ours, or a damaged input that no check knows yet: one line says where.
fn tell_panic(panic: &PanicHookInfo<'_>) {
    let what = panic.payload_as_str().unwrap_or("no message");
    let place = panic
        .location()
        .map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
    say!(
        "internal error at {place}: {what}. Please report it, with what was read if that may be shown"
    );
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
    })
}
