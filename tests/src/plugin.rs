//! Spark with the plugin.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{root, spark, spark_alone};

/// `spark-submit` with the plugin, and nothing of unfuse around it.
pub fn plugin_submit(version: &str, profile: &Path, options: &[&str]) -> Command {
    let mut command = spark_alone(&spark(version));
    command
        .arg("--jars")
        .arg(jar())
        .args(["--conf", "spark.plugins=io.unfuse.spark.UnfusePlugin"])
        .arg("--conf")
        .arg(format!("spark.unfuse.dir={}", profile.display()))
        .args(options);
    command
}

/// The jar that `make plugin` makes.
fn jar() -> PathBuf {
    let jar = root().join("target/release/unfuse-spark.jar");
    assert!(
        jar.is_file(),
        "{} is not built; run `make plugin`",
        jar.display()
    );
    jar
}
