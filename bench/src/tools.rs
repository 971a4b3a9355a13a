//! Other profilers, fetched into the user's cache.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use unfuse_toolkit::{cache_dir, run};

/// Where async-profiler is.
pub struct AsyncProfiler {
    /// Its agent library.
    pub library: PathBuf,
    /// Its Java interface.
    pub jar: PathBuf,
}

/// async-profiler from Maven Central.
///
/// # Errors
/// If Maven cannot fetch it or the JDK's `jar` cannot unpack it.
pub fn async_profiler() -> Result<AsyncProfiler> {
    let dir = cache_dir()?.join("bench-tools");
    fs::create_dir_all(&dir)?;
    let library = dir.join("linux-x64/libasyncProfiler.so");
    if jar_in(&dir).is_err() || !library.exists() {
        let pom = dir.join("pom.xml");
        fs::write(&pom, include_str!("../tools/pom.xml"))?;
        run(Command::new("mvn")
            .args(["-q", "-B", "-f"])
            .arg(&pom)
            .arg("dependency:copy-dependencies")
            .arg(format!("-DoutputDirectory={}", dir.display())))?;
        run(Command::new("jar")
            .current_dir(&dir)
            .arg("xf")
            .arg(jar_in(&dir)?)
            .arg("linux-x64/libasyncProfiler.so"))?;
    }
    Ok(AsyncProfiler {
        library,
        jar: jar_in(&dir)?,
    })
}

fn jar_in(dir: &Path) -> Result<PathBuf> {
    fs::read_dir(dir)?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|extension| extension == "jar"))
        .context("Maven copied no jar")
}
