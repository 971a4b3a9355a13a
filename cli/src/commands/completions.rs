//! `unfuse completions`: scripts that complete `unfuse` command lines in a shell.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Command, ValueEnum};

use crate::output::write_to;

/// Print completions for bash, zsh or fish
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Shell {
    /// Load them with `eval "$(unfuse completions bash)"` in ~/.bashrc
    Bash,
    /// Write them to a file `_unfuse` in a directory of $fpath
    Zsh,
    /// Write them to ~/.config/fish/completions/unfuse.fish
    Fish,
}

impl Completions {
    /// Prints the script.
    pub fn execute(self) -> Result<ExitCode> {
        let shell = match self.shell {
            Shell::Bash => clap_complete::Shell::Bash,
            Shell::Zsh => clap_complete::Shell::Zsh,
            Shell::Fish => clap_complete::Shell::Fish,
        };
        let mut script = Vec::new();
        let mut command = listed(&crate::help::command());
        clap_complete::generate(shell, &mut command, "unfuse", &mut script);
        write_to(None, |out| Ok(out.write_all(&script)?))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// A copy of the command without the subcommands that `--help` does not list. clap cannot remove a subcommand, so this builds a
/// new command from the parts that completions use.
fn listed(command: &Command) -> Command {
    // clap wants a name that lives as long as the program.
    let name: &'static str = command.get_name().to_owned().leak();
    let below = command.get_subcommands().filter(|of| !of.is_hide_set());
    let mut listed = Command::new(name)
        .args(command.get_arguments())
        .subcommands(below.map(self::listed));
    if let Some(about) = command.get_about() {
        listed = listed.about(about.clone());
    }
    if command.get_version().is_some() {
        listed = listed.version(env!("CARGO_PKG_VERSION"));
    }
    listed
}
