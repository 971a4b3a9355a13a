//! `unfuse demo`: installs Spark, runs an example query, and writes its report.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use unfuse_files::{Access, Directory};

use crate::parts::Parts;
use crate::setup::{self, Spark};

/// Rounds of the query; the JIT compilers warm up in the first ones.
const ROUNDS: u64 = 8;
/// Rows of the table. With its header and the notes it fits into about ten lines.
const ROWS: &str = "8";

/// Profile an example query on local Spark, and show the result
///
/// The first time it installs Spark and generates TPC-H data in the cache directory (`unfuse setup` does the same).
#[derive(Debug, Args)]
pub struct Demo {
    /// Directory for the profile and the report
    #[arg(
        short,
        long,
        alias = "out",
        value_name = "DIR",
        default_value = "unfuse-demo"
    )]
    pub output: PathBuf,
    /// TPC-H scale factor
    #[arg(long, default_value = "1", value_name = "SF")]
    pub scale: String,
    /// Open the report in the browser
    #[arg(long)]
    pub open: bool,
}

impl Demo {
    /// Runs the demo: progress on a terminal, the table of `unfuse top` on standard output.
    pub fn execute(self) -> Result<ExitCode> {
        setup::require_java()?;
        let mut parts = Parts::begin();
        let bar = ProgressBar::new(ROUNDS + 3)
            .with_style(ProgressStyle::with_template("{spinner} [{bar:24}] {msg}")?);
        bar.enable_steady_tick(Duration::from_millis(120));
        bar.set_message("installing PySpark (first time only)");
        let spark = Spark::V4_3.install()?;
        parts.end("Spark");
        bar.inc(1);
        bar.set_message(format!(
            "generating TPC-H data, scale factor {}",
            self.scale
        ));
        let data = setup::tpch(&spark, &self.scale)?;
        parts.end("data");
        bar.inc(1);
        let profile = self.profile(&spark, &data, &bar)?;
        bar.finish_and_clear();
        parts.end("query");
        self.show(&profile)?;
        parts.end("report");
        crate::say!("unfuse: demo took {}", parts.render());
        Ok(ExitCode::SUCCESS)
    }

    /// Profiles the query; returns the directory of the profile.
    fn profile(&self, spark: &Path, data: &Path, bar: &ProgressBar) -> Result<PathBuf> {
        let profile = self.output.join("profile");
        let out = Directory::create(&self.output, Access::Private).with_context(|| {
            format!(
                "cannot write to {}; choose another directory with -o",
                self.output.display()
            )
        })?;
        if profile.exists() {
            std::fs::remove_dir_all(&profile)
                .with_context(|| format!("cannot replace {}", profile.display()))?;
        }
        out.write("query.py", include_bytes!("../../assets/demo.py"))?;
        bar.set_message("starting Spark");
        let mut child = setup::inside(spark, &mut Command::new(std::env::current_exe()?))
            .args(["run", "--output"])
            .arg(&profile)
            .arg("--")
            .arg(setup::program(spark, "spark-submit"))
            .args(["--master", "local[2]", "--driver-memory", "3g"])
            .args(["--conf", "spark.ui.enabled=false"])
            .args(["--conf", "spark.log.level=ERROR"])
            .arg(self.output.join("query.py"))
            .arg(data)
            .arg(ROUNDS.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        // Another thread reads standard error. Otherwise Spark would stop at a full pipe.
        let stderr = child.stderr.take().context("stderr is piped")?;
        let errors =
            std::thread::spawn(move || std::io::read_to_string(stderr).unwrap_or_default());
        for line in BufReader::new(child.stdout.take().context("stdout is piped")?).lines() {
            if let Some(round) = line?.strip_prefix("round ") {
                bar.set_message(format!("running the query, round {round} of {ROUNDS}"));
                bar.inc(1);
            }
        }
        let status = child.wait()?;
        let errors = errors.join().unwrap_or_default();
        if !status.success() {
            bar.finish_and_clear();
            bail!("Spark failed ({status}):\n{errors}");
        }
        Ok(profile)
    }

    fn show(&self, profile: &Path) -> Result<()> {
        let page = self.output.join("report.html");
        let this = std::env::current_exe()?;
        let top = Command::new(&this)
            .arg("top")
            .arg(profile)
            .args(["--limit", ROWS])
            .status()?;
        let mut report = Command::new(&this);
        report.arg("report").arg(profile).arg("-o").arg(&page);
        if self.open {
            report.arg("--open");
        } else {
            report.stderr(Stdio::null());
        }
        if !top.success() || !report.status()?.success() {
            bail!("cannot show the profile in {}", profile.display());
        }
        println!(
            "\nreport: file://{}   (open it in a browser)",
            std::path::absolute(&page)?.display()
        );
        println!(
            "next: unfuse flame {0} -o flame.svg   |   unfuse source {0}",
            profile.display()
        );
        Ok(())
    }
}
