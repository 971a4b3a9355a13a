//! Other profilers, fetched into the user's cache.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

/// async-profiler's agent library.
///
/// # Errors
/// If Maven cannot fetch it or the JDK's `jar` cannot unpack it.
pub fn async_profiler() -> Result<PathBuf> {
    let home = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))
        .context("neither HOME nor XDG_CACHE_HOME is set")?;
    let dir = home.join("unfuse/bench-tools");
    let library = dir.join("linux-x64/libasyncProfiler.so");
    if library.exists() {
        return Ok(library);
    }
    fs::create_dir_all(&dir)?;
    let pom = dir.join("pom.xml");
    fs::write(&pom, include_str!("../tools/pom.xml"))?;
    run(Command::new("mvn")
        .args(["-q", "-B", "-f"])
        .arg(&pom)
        .arg("dependency:copy-dependencies")
        .arg(format!("-DoutputDirectory={}", dir.display())))?;
    let jar = fs::read_dir(&dir)?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|extension| extension == "jar"))
        .context("Maven copied no jar")?;
    run(Command::new("jar")
        .current_dir(&dir)
        .arg("xf")
        .arg(jar)
        .arg("linux-x64/libasyncProfiler.so"))?;
    Ok(library)
}

fn run(command: &mut Command) -> Result<()> {
    let output = command
        .output()
        .with_context(|| format!("cannot run {command:?}"))?;
    if !output.status.success() {
        bail!(
            "{command:?} failed: {}",
            String::from_utf8_lossy(&output.stdout)
        );
    }
    Ok(())
}
