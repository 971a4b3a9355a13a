//! `unfuse demo`: everything once, from nothing to a report.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use unfuse_files::{Access, Directory};

use crate::setup::{self, Spark};

/// Rounds of the query; the first ones warm the JIT compilers up.
const ROUNDS: u64 = 8;

/// Generate TPC-H data, profile the scan-filter-join-aggregate query on local Spark, show the result
#[derive(Debug, Args)]
pub struct Demo {
    /// Where to put the profile and the report
    #[arg(long, value_name = "DIR", default_value = "unfuse-demo")]
    pub out: PathBuf,
    /// TPC-H scale factor
    #[arg(long, default_value = "1")]
    pub scale: String,
}

impl Demo {
    /// Runs the demo: progress on a terminal, the top table on standard output.
    pub fn execute(self) -> Result<ExitCode> {
        setup::require_java()?;
        let bar = ProgressBar::new(ROUNDS + 3)
            .with_style(ProgressStyle::with_template("{spinner} [{bar:24}] {msg}")?);
        bar.enable_steady_tick(Duration::from_millis(120));
        bar.set_message("installing PySpark (first time only)");
        let spark = Spark::V4_3.install()?;
        bar.inc(1);
        bar.set_message(format!(
            "generating TPC-H data, scale factor {}",
            self.scale
        ));
        let data = setup::tpch(&spark, &self.scale)?;
        bar.inc(1);
        let profile = self.out.join("profile");
        let out = Directory::create(&self.out, Access::Private).with_context(|| {
            format!(
                "cannot write to {}; choose another with --out",
                self.out.display()
            )
        })?;
        if profile.exists() {
            std::fs::remove_dir_all(&profile)
                .with_context(|| format!("cannot replace {}", profile.display()))?;
        }
        out.write("query.py", include_bytes!("../../assets/demo.py"))?;
        let script = self.out.join("query.py");
        bar.set_message("starting Spark");
        let mut child = setup::inside(&spark, &mut Command::new(std::env::current_exe()?))
            .args(["run", "--out"])
            .arg(&profile)
            .arg("--")
            .arg(setup::program(&spark, "spark-submit"))
            .args(["--master", "local[2]", "--driver-memory", "3g"])
            .args([
                "--conf",
                "spark.ui.enabled=false",
                "--conf",
                "spark.log.level=ERROR",
            ])
            .arg(&script)
            .arg(&data)
            .arg(ROUNDS.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        // Read aside, so that a talkative Spark never fills the pipe and waits.
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
        bar.finish_and_clear();
        if !status.success() {
            bail!("Spark failed ({status}):\n{errors}");
        }
        self.show(&profile)
    }

    fn show(&self, profile: &std::path::Path) -> Result<ExitCode> {
        let page = self.out.join("report.html");
        let this = std::env::current_exe()?;
        let top = Command::new(&this).arg("top").arg(profile).status()?;
        let report = Command::new(&this)
            .arg("report")
            .arg(profile)
            .arg("-o")
            .arg(&page)
            .stderr(Stdio::null())
            .status()?;
        if !top.success() || !report.success() {
            bail!("the profile in {} could not be shown", profile.display());
        }
        let page = std::path::absolute(&page)?;
        println!(
            "\nreport: file://{}   (open it in a browser)",
            page.display()
        );
        println!(
            "next: unfuse flame {0} -o flame.svg   |   unfuse source {0}",
            profile.display()
        );
        Ok(ExitCode::SUCCESS)
    }
}
