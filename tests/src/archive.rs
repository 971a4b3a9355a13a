//! Archives of Spark's classes (class-data sharing of the JVM). A JVM that maps one neither parses, verifies nor links these
//! classes, which is a third of the CPU time of a short job. The JVM ignores an archive of another JVM or class path.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use crate::cache::{cache, hash};
use crate::{BRIEF, in_spark, root, run, tpch};

/// The Spark that has an archive. With an agent that sees classes, JVM 17 crashes when it loads from an archive a class that
/// its jar has only in `META-INF/versions`. The log4j-api of Spark 3.5 has such a class.
const ARCHIVED: &str = "spark-4.3-";

/// Suppresses warnings about an archive that does not fit, because tests read the output of programs.
const QUIET: &str = "-Xlog:cds*=off";

/// The options with which a JVM of an installed Spark uses its archive, if it has one. Makes the archive if it is missing.
///
/// # Panics
/// If the archive cannot be made.
pub(crate) fn archive_options(spark: &Path) -> String {
    let name = spark.file_name().expect("a name").to_string_lossy();
    if !name.starts_with(ARCHIVED) {
        return String::new();
    }
    static MADE: Mutex<BTreeMap<PathBuf, PathBuf>> = Mutex::new(BTreeMap::new());
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let archive = made
        .entry(spark.to_owned())
        .or_insert_with(|| archive(spark, &name));
    format!("-XX:SharedArchiveFile={} {QUIET}", archive.display())
}

/// The archive in the cache directory, which is named after the Spark and the JVM that it is for.
fn archive(spark: &Path, name: &str) -> PathBuf {
    let home = std::env::var_os("JAVA_HOME").map(PathBuf::from);
    let java = home.map_or_else(|| "java".into(), |home| home.join("bin/java"));
    let version = run(Command::new(java).arg("-version")).stderr;
    let archive = cache().join(format!("{name}-{:08x}.jsa", hash(version)));
    if archive.exists() {
        return archive;
    }
    // Two processes that make it at the same time must not write to one file.
    let unfinished = archive.with_extension(std::process::id().to_string());
    let options = [
        BRIEF.join(" "),
        format!("-XX:ArchiveClassesAtExit={} {QUIET}", unfinished.display()),
    ];
    let mut job = Command::new(spark.join("venv/bin/spark-submit"));
    run(in_spark(spark, &mut job)
        .args(["--master", "local[2]", "--conf", "spark.ui.port=0"])
        .args(["--driver-java-options", &options.join(" ")])
        .arg(root().join("tests/programs/queries.py"))
        .arg(tpch("0.2"))
        .arg("0"));
    fs::rename(&unfinished, &archive).expect("the JVM has written the archive");
    archive
}
