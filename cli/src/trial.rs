//! Starts a JVM that does nothing with the agent.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use unfuse_format::{LiveMarker, ProfileDir};
use unfuse_machine::Java;

use crate::launch::agent_option;

/// How long the writer of a trial may run longer than its JVM.
const PATIENCE: Duration = Duration::from_secs(5);

/// Checks whether a JDK loads the agent's library.
///
/// # Errors
/// If it does not, with the reason for the user.
pub fn agent_loads(java: &Java, library: &Path) -> Result<(), String> {
    let home = tempfile::tempdir().map_err(|e| format!("no directory for a trial: {e}"))?;
    let dir = home.path().join("profile");
    let output = Command::new(&java.program)
        .arg(agent_option(library, &dir, 0))
        .arg("-version")
        .output();
    let made = ProfileDir::open(&dir);
    if let Ok(made) = &made {
        // The temporary directory cannot be removed while a writer still writes to it.
        LiveMarker::wait_for_all(made, PATIENCE);
    }
    match output {
        Ok(output) if output.status.success() && made.is_ok() => Ok(()),
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr);
            Err(text.lines().next().unwrap_or("no message").to_owned())
        }
        Err(e) => Err(e.to_string()),
    }
}
