//! `unfuse completions`: what a shell completes after `unfuse`.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueEnum};

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
        clap_complete::generate(shell, &mut crate::help::command(), "unfuse", &mut script);
        write_to(None, |out| Ok(out.write_all(&script)?))?;
        Ok(ExitCode::SUCCESS)
    }
}
