//! Starts a command with the agent in its JVMs.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};

use anyhow::{Context, Result, bail};
use nix::sys::signal::Signal;
use unfuse_machine::agent_library;
use unfuse_machine::signals::IgnoredSignal;

/// The JVM option that loads the agent. The agent writes to `dir` and takes `rate` samples per second of each thread's
/// CPU time. The caller may append more agent options.
///
/// # Errors
/// If the agent's library is not found, or the option cannot hold a path.
pub fn agent_flag(dir: &Path, rate: u32) -> Result<String> {
    let library = agent_library()?;
    for path in [dir, &library] {
        let text = path.to_string_lossy();
        if text.contains([',', ' ', '"']) {
            bail!(
                "{text}: a path with a comma, a space or a quote cannot be passed to the agent; choose another with -o"
            );
        }
    }
    Ok(agent_option(&library, dir, rate))
}

/// The same option for any library, without a check of its path.
pub fn agent_option(library: &Path, dir: &Path, rate: u32) -> String {
    format!(
        "-agentpath:{}=dir={},rate={rate}",
        library.display(),
        dir.display()
    )
}

/// Runs a command, a program with its arguments, to its end. If it cannot run, prints why and returns `None`.
pub fn run(command: &[OsString], agent: &str) -> Option<ExitStatus> {
    let (program, arguments) = command.split_first()?;
    let mut prepared = prepare(program, arguments, agent);
    // Ctrl-C ends the command, not unfuse, which still has to write the profile.
    let _ignored = [Signal::SIGINT, Signal::SIGQUIT].map(IgnoredSignal::new);
    let status = prepared
        .status()
        .with_context(|| format!("cannot run {}", program.to_string_lossy()));
    status.map_err(|e| crate::say!("unfuse: {e:#}")).ok()
}

/// The command with the agent, in the form in which its program accepts JVM options.
fn prepare(program: &OsStr, arguments: &[OsString], agent: &str) -> Command {
    let mut command = Command::new(program);
    if Path::new(program).file_name() == Some(OsStr::new("java")) {
        command.arg(agent).args(arguments);
        return command;
    }
    // spark-submit, and every program that starts Spark through
    // it, reads JVM options for the driver from this variable.
    let mut options = std::env::var_os("SPARK_SUBMIT_OPTS").unwrap_or_default();
    if !options.is_empty() {
        options.push(" ");
    }
    options.push(agent);
    command.args(arguments).env("SPARK_SUBMIT_OPTS", options);
    command
}

/// The exit code of a command, as a shell returns it.
pub fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    ExitCode::from(code as u8)
}
