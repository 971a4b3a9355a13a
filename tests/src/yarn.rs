//! A real YARN on this machine: a ResourceManager and a NodeManager, from the jar of [`crate::Hdfs`].

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
        let (manager, node) = (address(), address());
        let path = |name: &str| dir.join(name).display().to_string();
        let settings = [
            ("fs.defaultFS", "file:///".to_owned()),
            ("yarn.resourcemanager.address", manager.clone()),
            ("yarn.resourcemanager.scheduler.address", address()),
            ("yarn.resourcemanager.resource-tracker.address", address()),
            ("yarn.resourcemanager.admin.address", address()),
            ("yarn.resourcemanager.webapp.address", address()),
            ("yarn.nodemanager.address", node.clone()),
            ("yarn.nodemanager.localizer.address", address()),
            ("yarn.nodemanager.webapp.address", address()),
            ("yarn.nodemanager.collector-service.address", address()),
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
        for (class, log, address) in [
            (
                "resourcemanager.ResourceManager",
                "resourcemanager.log",
                manager,
            ),
            ("nodemanager.NodeManager", "nodemanager.log", node),
        ] {
            let class = format!("yarn.server.{class}");
            let mut server = server(spark, &yarn.conf, &class, &dir.join(log));
            yarn.processes.push(start(&mut server));
            wait_for(&class, || TcpStream::connect(&address).is_ok());
        }
        yarn
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

impl Drop for Yarn {
    fn drop(&mut self) {
        for process in &mut self.processes {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}
