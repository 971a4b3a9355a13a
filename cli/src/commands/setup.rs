//! `unfuse setup`: installs the pinned Spark, Java runtimes and data of demos and tests into the cache directory.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::setup::{self, Jdk, Spark};

/// Install the Spark and the data that the demo and the tests use, and Java runtimes
///
/// They go into the cache directory, ~/.cache/unfuse or what XDG_CACHE_HOME names. `unfuse demo` installs what it needs by itself.
#[derive(Debug, Args)]
pub struct Setup {
    /// Version of Spark; may be given several times
    #[arg(long = "spark", value_name = "VERSION", default_value = "4.3")]
    pub sparks: Vec<Spark>,
    /// A Java runtime (Temurin, without compiler) of this release; may be given several times
    #[arg(long = "jdk", value_name = "RELEASE")]
    pub jdks: Vec<Jdk>,
    /// TPC-H data of this scale factor; 1 is 350 MiB
    #[arg(long, value_name = "SF")]
    pub tpch: Vec<String>,
    /// TPC-DS data of this scale factor; 1 is 350 MiB
    #[arg(long, value_name = "SF")]
    pub tpcds: Vec<String>,
}

impl Setup {
    /// Installs, and prints a line for each directory.
    pub fn execute(self) -> Result<ExitCode> {
        setup::require_java()?;
        for spark in &self.sparks {
            println!("{}", spark.install()?.display());
        }
        for scale in &self.tpch {
            println!("{}", setup::tpch(&Spark::V4_3.install()?, scale)?.display());
        }
        for scale in &self.tpcds {
            println!(
                "{}",
                setup::tpcds(&Spark::V4_3.install()?, scale)?.display()
            );
        }
        for jdk in &self.jdks {
            println!("{}", jdk.install()?.display());
        }
        Ok(ExitCode::SUCCESS)
    }
}
