//! Other profilers, downloaded to the user's cache.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use unfuse_machine::{cache_dir, run};

use crate::spark::Tool;

/// The path of async-profiler's agent in its jar.
const LIBRARY: &str = "linux-x64/libasyncProfiler.so";

/// Makes HotSpot describe all compiled code, not only its safepoints, so that samples in inlined methods can be separated.
pub const DEBUG_INFORMATION: [&str; 2] =
    ["-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints"];

/// The files of async-profiler.
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
    let dir = fetched()?;
    Ok(AsyncProfiler {
        library: dir.join(LIBRARY),
        jar: jar_in(&dir, "async-profiler")?,
    })
}

/// The DataFlint plugin, with its wrappers around operators, from a jar of its instrumentation for Spark 4.
///
/// # Errors
/// If there is no such jar.
pub fn dataflint(jar: &Path) -> Result<Tool> {
    let jar = fs::canonicalize(jar).with_context(|| format!("no jar {}", jar.display()))?;
    let jar = jar.display();
    let conf = vec![
        format!("spark.driver.extraClassPath={jar}"),
        "spark.sql.extensions=org.apache.spark.dataflint.DataFlintInstrumentationExtension"
            .to_owned(),
        "spark.dataflint.instrument.spark.enabled=true".to_owned(),
    ];
    Ok(Tool::Other {
        java: Vec::new(),
        conf,
    })
}

/// Spark's own profiler connector. It records the whole life of a JVM with async-profiler into `profile-driver.jfr`. `jars` are
/// its jar and that of async-profiler's loader.
///
/// # Errors
/// If there are no such jars.
pub fn spark_profiler(jars: &[PathBuf], interval: &str, into: &Path) -> Result<Tool> {
    let jars: Result<Vec<String>> = jars
        .iter()
        .map(|jar| {
            let jar = fs::canonicalize(jar).with_context(|| format!("no jar {}", jar.display()))?;
            Ok(jar.display().to_string())
        })
        .collect();
    let conf = vec![
        format!("spark.driver.extraClassPath={}", jars?.join(":")),
        "spark.plugins=org.apache.spark.profiler.ProfilerPlugin".to_owned(),
        // In local mode the driver's JVM is the executor as well.
        "spark.profiler.executor.enabled=true".to_owned(),
        "spark.profiler.executor.fraction=1.0".to_owned(),
        format!("spark.profiler.asyncProfiler.args=event=cpu,interval={interval}"),
        format!("spark.profiler.localDir={}", into.display()),
    ];
    Ok(Tool::Other {
        java: DEBUG_INFORMATION.map(str::to_owned).to_vec(),
        conf,
    })
}

/// Converts the samples of a recording to folded stacks of `package.Class.method:line`. `options` are more options of
/// async-profiler's converter.
///
/// # Errors
/// If the converter fails.
pub fn folded_with_lines(recording: &Path, options: &[&str]) -> Result<String> {
    let folded = recording.with_extension("collapsed");
    run(Command::new("java")
        .arg("-jar")
        .arg(jar_in(&fetched()?, "jfr-converter")?)
        .args(["--lines", "--dot", "-o", "collapsed"])
        .args(options)
        .arg(recording)
        .arg(&folded))?;
    let text = fs::read_to_string(&folded)?;
    fs::remove_file(folded)?;
    Ok(text)
}

/// The directory of the tools. Maven fills it once.
fn fetched() -> Result<PathBuf> {
    let dir = cache_dir()?.join("bench-tools");
    fs::create_dir_all(&dir)?;
    if !dir.join(LIBRARY).exists() || jar_in(&dir, "jfr-converter").is_err() {
        copy_dependencies(include_str!("../tools/pom.xml"), &dir)?;
        run(Command::new("jar")
            .current_dir(&dir)
            .arg("xf")
            .arg(jar_in(&dir, "async-profiler")?)
            .arg(LIBRARY))?;
    }
    Ok(dir)
}

/// Has Maven copy the dependencies of a project into a directory that exists.
///
/// # Errors
/// If Maven is missing or cannot fetch them.
pub fn copy_dependencies(project: &str, dir: &Path) -> Result<()> {
    let pom = dir.join("pom.xml");
    fs::write(&pom, project)?;
    run(Command::new("mvn")
        .args(["-q", "-B", "-f"])
        .arg(&pom)
        .arg("dependency:copy-dependencies")
        .arg(format!("-DoutputDirectory={}", dir.display())))
}

fn jar_in(dir: &Path, name: &str) -> Result<PathBuf> {
    let is_wanted = |path: &Path| {
        path.extension().is_some_and(|extension| extension == "jar")
            && path
                .file_name()
                .is_some_and(|file| file.to_string_lossy().starts_with(name))
    };
    fs::read_dir(dir)?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| is_wanted(path))
        .with_context(|| format!("Maven copied no {name}"))
}
