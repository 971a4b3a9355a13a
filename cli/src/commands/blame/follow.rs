//! `unfuse blame --follow`: answers while the application runs.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use anyhow::{Result, bail};

use super::Blame;
use super::alert::Printed;
use super::input::is_csv;
use crate::follow;

/// Answers again and again until no JVM writes to the profile.
pub(super) fn follow(blame: &Blame) -> Result<ExitCode> {
    if is_csv(&blame.dir) {
        bail!(
            "{}: --follow needs the profile of a running application, and this directory holds CSV files",
            blame.dir.display()
        );
    }
    let clear = std::io::stdout().is_terminal() && !blame.json && blame.alert.is_none();
    let mut printed = Printed::default();
    follow::follow(&blame.dir, blame.every, |root, _| {
        if clear {
            // Moves the cursor to the top left and clears the rest of the screen.
            print!("\x1b[H\x1b[J");
        }
        blame.answer(root, &mut printed)?;
        Ok(std::io::stdout().flush()?)
    })?;
    Ok(ExitCode::SUCCESS)
}
