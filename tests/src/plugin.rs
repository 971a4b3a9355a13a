//! Spark with the plugin.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{archive_options, root, spark, spark_alone, with_archive};

/// `spark-submit` with the plugin, and nothing of unfuse around it. Driver and executors use the archive of Spark's
/// classes.
pub fn plugin_submit(version: &str, profile: &Path, options: &[&str]) -> Command {
    let spark = spark(version);
    let mut command = spark_alone(&spark);
    with_archive(&mut command, &spark)
        .arg("--jars")
        .arg(plugin_jar())
        .args(["--conf", "spark.plugins=io.unfuse.spark.UnfusePlugin"])
        .args(["--conf", &executor_options(&spark, "")])
        .arg("--conf")
        .arg(format!("spark.unfuse.dir={}", profile.display()))
        .args(options);
    command
}

/// The setting for options of the executors' JVMs, which also use the archive of Spark's classes.
pub fn executor_options(spark: &Path, options: &str) -> String {
    let archive = archive_options(spark);
    format!("spark.executor.extraJavaOptions={archive} {options}")
}

/// The jar that `make plugin` makes.
///
/// # Panics
/// If it is not built.
pub fn plugin_jar() -> PathBuf {
    let jar = root().join("target/release/unfuse-spark.jar");
    assert!(
        jar.is_file(),
        "{} is not built; run `make plugin`",
        jar.display()
    );
    jar
}
