//! A real YARN on this machine: a ResourceManager and a NodeManager, from the jar of [`crate::Hdfs`].

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use crate::cluster::{free_port, pyspark, wait_for};
use crate::hdfs::{configure, server};
use crate::processes::start;

/// The processes; they end with it.
#[derive(Debug)]
pub struct Yarn {
    conf: PathBuf,
    processes: Vec<Child>,
}

impl Yarn {
    /// Starts one with its settings, logs and the containers' directories in `dir`. `spark` is an installed Spark 4.3,
    /// which has the client's part.
    ///
    /// # Panics
    /// If that fails.
    pub fn start(spark: &Path, dir: &Path) -> Self {
        let conf = dir.join("yarn-conf");
        let address = || format!("127.0.0.1:{}", free_port());
        let (manager, page) = (address(), address());
        // Each server takes a free port where nothing else has to know it.
        let any = || "127.0.0.1:0".to_owned();
        let path = |name: &str| dir.join(name).display().to_string();
        let settings = [
            ("fs.defaultFS", "file:///".to_owned()),
            ("yarn.resourcemanager.address", manager.clone()),
            ("yarn.resourcemanager.scheduler.address", address()),
            ("yarn.resourcemanager.resource-tracker.address", address()),
            ("yarn.resourcemanager.admin.address", any()),
            ("yarn.resourcemanager.webapp.address", page.clone()),
            ("yarn.nodemanager.address", any()),
            ("yarn.nodemanager.localizer.address", any()),
            ("yarn.nodemanager.webapp.address", any()),
            ("yarn.nodemanager.collector-service.address", any()),
            ("yarn.nodemanager.local-dirs", path("yarn-local")),
            ("yarn.nodemanager.log-dirs", path("yarn-logs")),
            ("yarn.nodemanager.resource.memory-mb", "6144".to_owned()),
            ("yarn.nodemanager.resource.cpu-vcores", "8".to_owned()),
            ("yarn.nodemanager.vmem-check-enabled", "false".to_owned()),
            ("yarn.nodemanager.pmem-check-enabled", "false".to_owned()),
            (
                "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage",
                "99.9".to_owned(),
            ),
            (
                "yarn.scheduler.capacity.maximum-am-resource-percent",
                "1.0".to_owned(),
            ),
            ("yarn.scheduler.capacity.root.queues", "default".to_owned()),
            (
                "yarn.scheduler.capacity.root.default.capacity",
                "100".to_owned(),
            ),
        ];
        let files = ["core-site.xml", "yarn-site.xml", "capacity-scheduler.xml"];
        configure(&conf, &files, &settings);
        let mut yarn = Self {
            conf,
            processes: Vec::new(),
        };
        let is_open = || TcpStream::connect(&manager).is_ok();
        yarn.start_server(spark, dir, "resourcemanager.ResourceManager", is_open);
        let has_node = || metrics(&page).is_ok_and(|text| text.contains("\"activeNodes\":1"));
        yarn.start_server(spark, dir, "nodemanager.NodeManager", has_node);
        yarn
    }

    /// Starts a server, by its class, and waits until it is ready.
    fn start_server(
        &mut self,
        spark: &Path,
        dir: &Path,
        class: &str,
        mut is_ready: impl FnMut() -> bool,
    ) {
        let log = dir.join(format!("{class}.log"));
        let class = format!("yarn.server.{class}");
        let process = start(&mut server(spark, &self.conf, &class, &log));
        self.processes.push(process);
        let process = self.processes.last_mut().expect("it was pushed");
        wait_for(&class, || {
            let has_ended = !matches!(process.try_wait(), Ok(None));
            let text = || fs::read_to_string(&log).unwrap_or_default();
            assert!(!has_ended, "{class} has ended: {}", text());
            is_ready()
        });
    }

    /// Lets `spark-submit --master yarn` find it. Spark's jars are those of the installation.
    pub fn configure<'a>(&self, command: &'a mut Command, spark: &Path) -> &'a mut Command {
        let jars = pyspark(spark).join("jars/*");
        command
            .env("HADOOP_CONF_DIR", &self.conf)
            .env("YARN_CONF_DIR", &self.conf)
            .arg("--conf")
            .arg(format!("spark.yarn.jars=local:{}", jars.display()))
    }
}

/// What the ResourceManager at an address says of its cluster, as JSON with a header.
fn metrics(address: &str) -> std::io::Result<String> {
    let mut connection = TcpStream::connect(address)?;
    let request = "GET /ws/v1/cluster/metrics HTTP/1.0\r\nAccept: application/json\r\n\r\n";
    connection.write_all(request.as_bytes())?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer)?;
    Ok(answer)
}

impl Drop for Yarn {
    fn drop(&mut self) {
        for process in &mut self.processes {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}
