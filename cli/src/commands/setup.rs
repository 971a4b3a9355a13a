//! `unfuse setup`: the pinned Spark and data of demos and tests, into the cache directory.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::setup::{self, Spark};

/// Install a pinned PySpark and TPC-H or TPC-DS data into the cache directory (what `demo` does by itself)
#[derive(Debug, Args)]
pub struct Setup {
    /// Which Spark; may be given several times
    #[arg(long = "spark", value_name = "VERSION", default_value = "4.3")]
    pub sparks: Vec<Spark>,
    /// TPC-H scale factors to generate
    #[arg(long, value_name = "SF")]
    pub tpch: Vec<String>,
    /// TPC-DS scale factors to generate
    #[arg(long, value_name = "SF")]
    pub tpcds: Vec<String>,
}

impl Setup {
    /// Installs and prints, a line each, where it is.
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
        Ok(ExitCode::SUCCESS)
    }
}
