//! `unfuse blame --follow`: answers while the application runs.

use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use unfuse_format::{LiveMarker, ProcessRow, ProfileDir};

use super::Blame;
use super::input::is_csv;
use crate::remote;

/// How long a JVM may take from creating its profile to its first write.
const BEGINNING: Duration = Duration::from_secs(5);

/// Answers again and again until no JVM writes to the profile.
pub(super) fn follow(blame: &Blame) -> Result<ExitCode> {
    if is_csv(&blame.dir) {
        bail!(
            "{}: --follow needs the profile of a running application, and this directory holds CSV files",
            blame.dir.display()
        );
    }
    let started = Instant::now();
    let clear = std::io::stdout().is_terminal() && !blame.json;
    loop {
        let root = remote::local(&blame.dir)?;
        let running = is_running(blame, &root)? || started.elapsed() < BEGINNING;
        if clear {
            // Moves the cursor to the top left and clears the rest of the screen.
            print!("\x1b[H\x1b[J");
        }
        match blame.answer(&root) {
            Ok(()) => {}
            Err(error) if running => crate::say!("unfuse: no answer yet: {error:#}"),
            Err(error) => return Err(error),
        }
        std::io::stdout().flush()?;
        if !running {
            return Ok(ExitCode::SUCCESS);
        }
        std::thread::sleep(blame.every);
    }
}

/// Whether the profile still grows. A profile at a URI has JVMs on other machines, which are not visible here. Its
/// drivers record when they end.
fn is_running(blame: &Blame, root: &Path) -> Result<bool> {
    let dir = ProfileDir::open(root)?;
    if !remote::is_uri(&blame.dir) {
        return Ok(!LiveMarker::at_work(&dir).is_empty());
    }
    let rows = dir.read::<ProcessRow>()?.rows;
    let drivers = rows.iter().filter(|row| row.executor == "driver");
    let of = |ended: bool| -> BTreeSet<(&str, u32, i64)> {
        let rows = drivers.clone().filter(|row| row.ended == Some(ended));
        rows.map(|row| (row.host.as_str(), row.pid, row.start_ns))
            .collect()
    };
    Ok(!of(false).is_subset(&of(true)))
}
