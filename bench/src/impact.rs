//! Whether unfuse finds the known bottleneck of real Spark jobs: jobs that compute, that read, and that do both.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::Value;

use crate::page::{Figure, Measuring};
use crate::random::Random;
use crate::spark::{Spark, Tool};

/// Number of files that jobs read, with one task for each.
const FILES: usize = 16;

/// The jobs, and the resources that can limit them.
const JOBS: [(&str, &str, &[&str]); 3] = [
    ("compute", "computes only", &["cpu"]),
    ("read", "reads files only", &["disk"]),
    ("both", "computes, then reads files", &["cpu", "disk"]),
];

/// What limits real Spark jobs, of which it is known: `unfuse impact measure` on jobs that compute, read, or do both
#[derive(Debug, Args)]
pub struct Impact {
    /// Runs at each scheme
    #[arg(long, default_value_t = 3)]
    repeat: u32,
    /// MiB that jobs read
    #[arg(long, default_value_t = 256)]
    read: usize,
    /// How fast the base scheme's disk is
    #[arg(long, default_value = "16MBps")]
    disk: String,
}

impl Impact {
    /// Measures and writes `impact.md`.
    pub fn measure(&self, results: &Path) -> Result<()> {
        if self.repeat < 2 || self.read < FILES {
            bail!("--repeat must be at least 2, for intervals, and --read at least {FILES}");
        }
        let page = Measuring::begin(
            results,
            "impact",
            &["analysis/impact/src", "cli/machine/src"],
        )?;
        let spark = Spark::install("1")?;
        let data = spark.scratch().join("data");
        fs::create_dir(&data)?;
        for file in 0..FILES {
            let mut bytes = vec![0; self.read * (1 << 20) / FILES];
            let mut random = Random(file as u64);
            for eight in bytes.chunks_exact_mut(8) {
                eight.copy_from_slice(&random.below(u64::from(u32::MAX)).to_le_bytes());
            }
            File::create(data.join(format!("{file}.bin")))?.write_all(&bytes)?;
        }
        let mut table = String::new();
        let mut times = String::new();
        let (mut figures, mut told) = (Vec::new(), 0);
        for (job, what, expected) in JOBS {
            let out = spark.scratch().join(job);
            let answer = self.answer(&spark, job, &data, &out)?;
            let analysis = &answer["workloads"][0];
            figures.extend(
                ["cpu", "disk"]
                    .iter()
                    .filter_map(|of| figure(job, analysis, of)),
            );
            told += u32::from(
                matches!(&analysis["verdict"]["resources"], Value::String(one) if expected.contains(&one.as_str())),
            );
            let _ = writeln!(
                table,
                "| {job}: {what} | {} | {} | {} | {} |",
                indicator(analysis, "cpu"),
                indicator(analysis, "disk"),
                found(&analysis["verdict"]),
                expected.join(" or "),
            );
            for scheme in analysis["schemes"].as_array().into_iter().flatten() {
                let number = |field: &str| scheme[field].as_f64().unwrap_or_default();
                let (cpu, disk) = (&scheme["scheme"]["cpu"], scheme["scheme"]["disk"].as_str());
                let _ = writeln!(
                    times,
                    "| {job} | {cpu} | {} | {} | {:.1} | {} | {:.2} |",
                    disk.unwrap_or_default(),
                    scheme["runs"],
                    number("seconds"),
                    interval(&scheme["interval"], 1),
                    number("speedup"),
                );
            }
        }
        let body = format!(
            "Jobs on Spark 4.3 (local[2]), from the start of `spark-submit` to its end, so all times include the start of a JVM, which computes. Each ran \
             {} times at every scheme, in turns, after one run to warm up. The CPU has 1 or 2 CPUs' bandwidth; inputs \
             ({} MiB) come from a disk limited to {} or from memory. Intervals hold at 95%.\n\n\
             | job | CRI | DRI | bottleneck found | known |\n|---|---|---|---|---|\n{table}\n\
             DRI is not the part of the time that the disk takes: a job that waits for the disk for a part d of its time \
             and computes for a part c has a DRI of c·d/(1 − d) (docs/impact.md).\n\n\
             | job | CPUs | disk | runs | s | interval | speed-up |\n|---|---|---|---|---|---|---|\n{times}",
            self.repeat, self.read, self.disk
        );
        let what = "jobs for which the one resource that unfuse names is the known one";
        figures.push(Figure::new("told", what, f64::from(told), "of 3", 0).exact());
        page.finish(self.repeat, figures, &body)
    }

    /// The answer of `unfuse impact measure` for a job.
    fn answer(&self, spark: &Spark, job: &str, data: &Path, out: &Path) -> Result<Value> {
        let program = spark.scratch().join("impact.py");
        fs::write(&program, include_str!("../assets/impact.py"))?;
        let submit = spark.submit(&Tool::None, &PathBuf::new());
        let mut command = spark.unfuse();
        for (name, value) in submit.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
            .args([
                "impact",
                "measure",
                "--json",
                "--repeat",
                &self.repeat.to_string(),
            ])
            .args(["--schemes", "cpu=1,2", &format!("disk={},ram", self.disk)])
            .arg("--input")
            .arg(data)
            .arg("-o")
            .arg(out)
            .arg("--")
            .arg(submit.get_program())
            .args(["--master", "local[2]", "--driver-memory", "2g"])
            .args([
                "--conf",
                "spark.ui.enabled=false",
                "--conf",
                "spark.log.level=ERROR",
            ])
            .arg(program)
            .arg(job)
            .arg(data)
            .stderr(Stdio::inherit());
        let output = command
            .output()
            .context("unfuse cannot be run; `make build` first")?;
        if !output.status.success() {
            bail!("`unfuse impact measure` failed for {job}");
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }
}

/// An indicator of a job with its interval.
fn figure(job: &str, analysis: &Value, resource: &str) -> Option<Figure> {
    let mut all = analysis["indicators"].as_array()?.iter();
    let one = all.find(|indicator| indicator["resource"] == resource)?;
    let ends = (
        one["interval"]["low"].as_f64(),
        one["interval"]["high"].as_f64(),
    );
    let initial = if resource == "cpu" { "CRI" } else { "DRI" };
    let (name, what) = (
        format!("{resource}_{job}"),
        format!("{initial} of the job `{job}`"),
    );
    let figure = Figure::new(&name, &what, one["value"].as_f64()?, "", 2);
    Some(figure.within(ends.0.zip(ends.1).map(|(low, high)| [low, high])))
}

fn indicator(analysis: &Value, resource: &str) -> String {
    let mut all = analysis["indicators"].as_array().into_iter().flatten();
    let Some(one) = all.find(|indicator| indicator["resource"] == resource) else {
        return "-".to_owned();
    };
    let value = one["value"].as_f64().unwrap_or_default();
    format!("{value:.2} ({})", interval(&one["interval"], 2))
}

fn interval(value: &Value, digits: usize) -> String {
    match (value["low"].as_f64(), value["high"].as_f64()) {
        (Some(low), Some(high)) => format!("{low:.digits$} to {high:.digits$}"),
        _ => "-".to_owned(),
    }
}

/// A verdict in a few words.
fn found(verdict: &Value) -> String {
    let certainty = verdict["certainty"]
        .as_str()
        .unwrap_or_default()
        .replace('_', " ");
    match &verdict["resources"] {
        Value::String(one) => format!("{one} ({certainty})"),
        Value::Array(several) => {
            let names: Vec<&str> = several.iter().filter_map(Value::as_str).collect();
            format!("{} (not separated)", names.join(" or "))
        }
        _ => certainty,
    }
}
