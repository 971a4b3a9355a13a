//! What profiling costs: the canonical query with and without the agent, in alternation.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::report;

/// The job: warms up, then prints the CPU and wall seconds of its rounds.
const JOB: &str = r#"
import sys, time
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
for table in ("lineitem", "supplier"):
    spark.read.parquet(f"{sys.argv[1]}/{table}.parquet").createOrReplaceTempView(table)
query = """SELECT (l_suppkey * 100) + s_nationkey, AVG(l_extendedprice), SUM(l_quantity), AVG(l_discount)
    FROM lineitem JOIN (SELECT * FROM supplier ORDER BY s_acctbal DESC LIMIT 10000) ON l_suppkey = s_suppkey
    WHERE l_commitdate > DATE '1993-01-01' GROUP BY (l_suppkey * 100) + s_nationkey"""
def run():
    spark.sql(query).write.format("noop").mode("overwrite").save()
bean = spark._jvm.java.lang.management.ManagementFactory.getPlatformMXBean(
    spark._jvm.java.lang.Class.forName("com.sun.management.OperatingSystemMXBean"))
for _ in range(5): run()
cpu, wall = bean.getProcessCpuTime(), time.time()
for _ in range(int(sys.argv[2])): run()
print("RESULT", (bean.getProcessCpuTime() - cpu) / 1e9, time.time() - wall)
spark.stop()
"#;

/// The canonical query with and without the agent, in alternation
#[derive(Debug, Args)]
pub struct Overhead {
    /// Pairs of runs
    #[arg(long, default_value_t = 5)]
    pub pairs: usize,
    /// Rounds of the query that are measured in each run, after five to warm up
    #[arg(long, default_value_t = 8)]
    pub rounds: usize,
    /// Samples a second
    #[arg(long, default_value_t = 200)]
    pub rate: u32,
}

impl Default for Overhead {
    fn default() -> Self {
        Self {
            pairs: 5,
            rounds: 8,
            rate: 200,
        }
    }
}

impl Overhead {
    /// Measures and writes `overhead.md`.
    pub fn measure(&self, results: &Path) -> Result<()> {
        let unfuse = std::env::current_exe()?.with_file_name("unfuse");
        let line = |arguments: &[&str]| -> Result<PathBuf> {
            let output = Command::new(&unfuse).args(arguments).output()?;
            let text = String::from_utf8(output.stdout)?;
            text.lines()
                .last()
                .map(PathBuf::from)
                .context("unfuse setup prints a path")
        };
        let (spark, data) = (
            line(&["setup", "--spark", "4.3"])?,
            line(&["setup", "--tpch", "1"])?,
        );
        let scratch = std::env::temp_dir().join(format!("unfuse-overhead-{}", std::process::id()));
        std::fs::create_dir_all(&scratch)?;
        std::fs::write(scratch.join("job.py"), JOB)?;
        let (mut cpu, mut wall) = (Vec::new(), Vec::new());
        let mut rows = String::new();
        for pair in 1..=self.pairs {
            let plain = self.run(&unfuse, &spark, &data, &scratch, None)?;
            let profile = scratch.join(format!("profile-{pair}"));
            let with = self.run(&unfuse, &spark, &data, &scratch, Some(&profile))?;
            cpu.push(with.0 / plain.0);
            wall.push(with.1 / plain.1);
            rows += &format!(
                "| {pair} | {:.2} | {:.2} | {:.3} | {:.2} | {:.2} | {:.3} |\n",
                plain.0,
                with.0,
                with.0 / plain.0,
                plain.1,
                with.1,
                with.1 / plain.1
            );
        }
        let _ = std::fs::remove_dir_all(&scratch);
        let spread = |ratios: &mut Vec<f64>| {
            let median = report::median(ratios);
            format!(
                "{:.3} ({:.3} to {:.3})",
                median,
                ratios[0],
                ratios[ratios.len() - 1]
            )
        };
        let body = format!(
            "TPC-H SF 1, local[2], {} rounds after five to warm up, {} Hz. CPU is the JVM's own; the samplers' \
             shows in the wall time, since tasks use both cores.\n\nRatio with agent ÷ without, median (least to \
             most): **CPU {}, wall {}**.\n\n| pair | CPU s without | with | ratio | wall s without | with | ratio |\n\
             |---|---|---|---|---|---|---|\n{rows}\n",
            self.rounds,
            self.rate,
            spread(&mut cpu),
            spread(&mut wall),
        );
        let command = format!(
            "unfuse-bench overhead --pairs {} --rounds {} --rate {}",
            self.pairs, self.rounds, self.rate
        );
        report::write(results, "overhead", &command, &body)
    }

    /// CPU and wall seconds of the measured rounds.
    fn run(
        &self,
        unfuse: &Path,
        spark: &Path,
        data: &Path,
        scratch: &Path,
        profile: Option<&Path>,
    ) -> Result<(f64, f64)> {
        let bin = spark.join("venv/bin");
        let submit = bin.join("spark-submit");
        let mut command = match profile {
            Some(profile) => {
                let mut command = Command::new(unfuse);
                command
                    .args(["run", "--rate", &self.rate.to_string(), "--out"])
                    .arg(profile)
                    .arg("--")
                    .arg(submit);
                command
            }
            None => Command::new(submit),
        };
        let path = format!(
            "{}:{}",
            bin.display(),
            std::env::var("PATH").unwrap_or_default()
        );
        command
            .env("PATH", path)
            .env("PYSPARK_PYTHON", bin.join("python"))
            .env_remove("SPARK_HOME");
        command.args([
            "--master",
            "local[2]",
            "--driver-memory",
            "3g",
            "--conf",
            "spark.ui.enabled=false",
        ]);
        command
            .arg(scratch.join("job.py"))
            .arg(data)
            .arg(self.rounds.to_string());
        let output = command.output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let Some(result) = text.lines().find_map(|line| line.strip_prefix("RESULT ")) else {
            bail!(
                "the job failed: {}",
                String::from_utf8_lossy(&output.stderr)
            );
        };
        let mut numbers = result.split(' ').map(str::parse::<f64>);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(cpu)), Some(Ok(wall))) => Ok((cpu, wall)),
            _ => bail!("the job printed {result}"),
        }
    }
}
