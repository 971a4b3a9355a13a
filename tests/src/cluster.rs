//! A standalone Spark cluster on this machine: real Master, Workers and executors, each a process.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::processes::start;
use crate::{PATIENCE, brief_driver, daemon_options, executor_options, spark_submit};

/// The processes of a cluster. Dropping it ends them.
#[derive(Debug)]
pub struct Cluster {
    spark: PathBuf,
    spools: PathBuf,
    master: String,
    processes: Vec<Child>,
}

impl Cluster {
    /// Starts a Master and Workers with one core each, of an installed Spark. Logs and work go to `dir`.
    ///
    /// # Panics
    /// If they do not start.
    pub fn start(spark: &Path, workers: u32, dir: &Path) -> Self {
        let port = free_port();
        let mut cluster = Self {
            spark: spark.to_owned(),
            spools: dir.join("spools"),
            master: format!("spark://127.0.0.1:{port}"),
            processes: Vec::new(),
        };
        fs::create_dir_all(&cluster.spools).expect("a directory");
        let port = port.to_string();
        let host = ["--host", "127.0.0.1", "--webui-port", "0"];
        let mut master = cluster.class("org.apache.spark.deploy.master.Master", dir, "master");
        cluster.spawn(master.args(host).args(["--port", &port]));
        wait_for("the Master", || {
            std::net::TcpStream::connect(cluster.master.trim_start_matches("spark://")).is_ok()
        });
        for number in 0..workers {
            let name = format!("worker-{number}");
            let mut worker = cluster.class("org.apache.spark.deploy.worker.Worker", dir, &name);
            worker
                .args(host)
                .args(["--cores", "1", "--memory", "1536m", "--work-dir"])
                .arg(dir.join(&name))
                .arg(&cluster.master);
            cluster.spawn(&mut worker);
        }
        cluster
    }

    fn class(&self, class: &str, dir: &Path, log: &str) -> Command {
        let home = pyspark(&self.spark);
        let log = File::create(dir.join(format!("{log}.log"))).expect("a log");
        let mut command = Command::new(home.join("bin/spark-class"));
        command
            .arg(class)
            .env("SPARK_HOME", home)
            .env("SPARK_LOCAL_IP", "127.0.0.1")
            .env("SPARK_DAEMON_MEMORY", "256m")
            .env("SPARK_DAEMON_JAVA_OPTS", daemon_options(&self.spark))
            .env("TMPDIR", &self.spools)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        command
    }

    fn spawn(&mut self, command: &mut Command) {
        self.processes.push(start(command));
    }

    /// The directory in which JVMs keep segments until they copy them.
    pub fn spools(&self) -> &Path {
        &self.spools
    }

    /// `unfuse run … spark-submit` to this cluster, which waits for all executors.
    pub fn submit(&self, profile: &Path, executors: u32, options: &[&str]) -> Command {
        let master = ["--master", &self.master];
        let mut command = spark_submit(&self.spark, profile, &master);
        for setting in [
            "spark.executor.cores=1",
            "spark.executor.memory=1g",
            "spark.scheduler.minRegisteredResourcesRatio=1.0",
            "spark.scheduler.maxRegisteredResourcesWaitingTime=60s",
            &format!("spark.cores.max={executors}"),
            &executor_options(&self.spark, ""),
        ] {
            command.args(["--conf", setting]);
        }
        command
            .args(brief_driver())
            .args(options)
            .env("SPARK_LOCAL_IP", "127.0.0.1")
            .env("TMPDIR", &self.spools);
        command
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for process in &mut self.processes {
            // SIGTERM lets a Worker end its executors; after SIGKILL they would stay.
            let _ = Command::new("kill").arg(process.id().to_string()).status();
        }
        let until = Instant::now() + Duration::from_secs(10);
        for process in &mut self.processes {
            while Instant::now() < until && matches!(process.try_wait(), Ok(None)) {
                std::thread::sleep(Duration::from_millis(50));
            }
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// Pids of the running executors whose command line contains this text, such as the path of their profile.
pub fn executors(text: &str) -> Vec<i32> {
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    processes
        .filter_map(|entry| {
            let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
            // The profiler's processes are forked from the JVM and show its arguments until they rename.
            let line = fs::read(entry.path().join("cmdline")).ok()?;
            let line = String::from_utf8_lossy(&line).into_owned();
            let backend = line.contains("CoarseGrainedExecutorBackend") && line.contains(text);
            (backend && !line.starts_with("unfuse")).then_some(pid)
        })
        .collect()
}

/// Waits until a condition holds.
///
/// # Panics
/// If it does not hold after a long time.
pub fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A port on which no process listens.
///
/// # Panics
/// If there is none.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

/// The Spark inside an installed PySpark.
///
/// # Panics
/// If it is not there.
pub fn pyspark(spark: &Path) -> PathBuf {
    let versions = fs::read_dir(spark.join("venv/lib")).expect("a virtual environment");
    versions
        .flatten()
        .map(|version| version.path().join("site-packages/pyspark"))
        .find(|home| home.is_dir())
        .expect("PySpark")
}
