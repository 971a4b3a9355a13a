//! `unfuse`: which operator of a fused Spark pipeline uses the CPU, or waits.

mod attach;
mod commands;
mod curl;
mod event_log;
mod follow;
mod fresh;
mod help;
mod launch;
mod open;
mod output;
mod parts;
mod remote;
mod setup;
mod trial;
mod when;

use std::io;
use std::panic::PanicHookInfo;
use std::process::ExitCode;

use clap::{FromArgMatches, Parser, Subcommand};

/// mimalloc is faster here: reading a profile creates many
/// small texts on one thread and drops them on another.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Profiler for Apache Spark: which SQL operator, and which line of generated code, uses the CPU or waits
#[derive(Debug, Parser)]
#[command(name = "unfuse", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

// In the order of `unfuse --help`, see help/table.rs.
#[derive(Debug, Subcommand)]
enum Command {
    Run(commands::run::Run),
    Record(commands::record::Record),
    Trino(commands::trino::Trino),
    Pause(commands::pause::Pause),
    Resume(commands::pause::Resume),
    Report(commands::report::Report),
    Top(commands::top::Top),
    Plan(commands::plan::Plan),
    Flame(commands::flame::Flame),
    Source(commands::source::Source),
    History(commands::history::History),
    Export(commands::export::Export),
    Why(commands::why::Why),
    Check(commands::check::Check),
    WhatIf(commands::what_if::WhatIf),
    Advise(commands::advise::Advise),
    Blame(commands::blame::Blame),
    Skew(commands::skew::Skew),
    Impact(commands::impact::Impact),
    Size(commands::size::Size),
    Doctor(commands::doctor::Doctor),
    Demo(commands::demo::Demo),
    Setup(commands::setup::Setup),
    Completions(commands::completions::Completions),
    Man(commands::man::Man),
    Mcp(commands::mcp::Mcp),
    Schema(commands::schema::Schema),
    Agent(commands::agent::Agent),
    Launch(commands::launch::Launch),
}

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(report_panic));
    let matches = help::command().get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    // `unfuse check` exits with 1 for a regression and with 2 for an error.
    let error_code = match cli.command {
        Command::Check(_) => ExitCode::from(2),
        _ => ExitCode::FAILURE,
    };
    let result = match cli.command {
        Command::Run(run) => run.execute(),
        Command::Record(record) => record.execute(),
        Command::Trino(trino) => trino.execute(),
        Command::Pause(pause) => pause.execute(),
        Command::Resume(resume) => resume.execute(),
        Command::Report(report) => report.execute(),
        Command::Top(top) => top.execute(),
        Command::Plan(plan) => plan.execute(),
        Command::Flame(flame) => flame.execute(),
        Command::Source(source) => source.execute(),
        Command::History(history) => history.execute(),
        Command::Export(export) => export.execute(),
        Command::Why(why) => why.execute(),
        Command::Check(check) => check.execute(),
        Command::WhatIf(what_if) => what_if.execute(),
        Command::Advise(advise) => advise.execute(),
        Command::Blame(blame) => blame.execute(),
        Command::Skew(skew) => skew.execute(),
        Command::Impact(impact) => impact.execute(),
        Command::Size(size) => size.execute(),
        Command::Doctor(doctor) => doctor.execute(),
        Command::Demo(demo) => demo.execute(),
        Command::Setup(setup) => setup.execute(),
        Command::Completions(completions) => completions.execute(),
        Command::Man(man) => man.execute(),
        Command::Mcp(mcp) => mcp.execute(),
        Command::Schema(schema) => schema.execute(),
        Command::Agent(agent) => agent.execute(),
        Command::Launch(launch) => launch.execute(),
    };
    match result {
        Ok(code) => code,
        // `unfuse top DIR | head` is no error.
        Err(e) if is_broken_pipe(&e) => ExitCode::SUCCESS,
        Err(e) => {
            say!("unfuse: {e:#}");
            error_code
        }
    }
}

/// A panic is a bug in unfuse, or a damaged input that
/// no check finds yet. Prints one line with the place.
fn report_panic(panic: &PanicHookInfo<'_>) {
    let what = panic.payload_as_str().unwrap_or("no message");
    let place = panic
        .location()
        .map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
    say!(
        "unfuse: internal error at {place}: {what}. Please report it with the output of `unfuse doctor --report`, and with \
         the input if you may share it"
    );
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let kind = cause.downcast_ref().map(io::Error::kind);
        let in_json = || cause.downcast_ref::<serde_json::Error>()?.io_error_kind();
        kind.or_else(in_json) == Some(io::ErrorKind::BrokenPipe)
    })
}
