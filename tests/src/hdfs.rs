//! A real HDFS on this machine: a NameNode and a DataNode, pinned by `tests/hdfs/pom.xml`.

use std::ffi::OsString;
use std::fs::{self, File};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::cache::installed;
use crate::cluster::{free_port, pyspark, wait_for};
use crate::processes::start;
use crate::{BRIEF, root, run};

/// The processes of a file system. Dropping it ends them.
#[derive(Debug)]
pub struct Hdfs {
    address: String,
    conf: PathBuf,
    processes: Vec<Child>,
}

impl Hdfs {
    /// Starts a file system at this IP address, with its data, settings and logs in `dir`. `spark` is an installed
    /// Spark 4.3, which has the client's jars.
    ///
    /// # Panics
    /// If that fails.
    pub fn start(spark: &Path, host: &str, dir: &Path) -> Self {
        let address = format!("{host}:{}", free_port());
        let conf = dir.join("hdfs-conf");
        let path = |name: &str| format!("file://{}", dir.join(name).display());
        let any_port = format!("{host}:0");
        let settings = [
            ("fs.defaultFS", format!("hdfs://{address}")),
            ("dfs.namenode.name.dir", path("hdfs-names")),
            ("dfs.datanode.data.dir", path("hdfs-data")),
            ("dfs.namenode.http-address", any_port.clone()),
            ("dfs.datanode.http.address", any_port.clone()),
            ("dfs.datanode.address", any_port.clone()),
            ("dfs.datanode.ipc.address", any_port.clone()),
            ("dfs.replication", "1".to_owned()),
            // No name server knows the addresses of tests.
            (
                "dfs.namenode.datanode.registration.ip-hostname-check",
                "false".to_owned(),
            ),
        ];
        configure(&conf, &["core-site.xml", "hdfs-site.xml"], &settings);
        let server = |class: &str, log: &str| {
            server(
                spark,
                &conf,
                &format!("hdfs.server.{class}"),
                &dir.join(log),
            )
        };
        let name_node = "namenode.NameNode";
        run(server(name_node, "format.log").args(["-format", "-nonInteractive"]));
        let mut hdfs = Self {
            address,
            conf: conf.clone(),
            processes: Vec::new(),
        };
        hdfs.spawn(&mut server(name_node, "namenode.log"));
        wait_for("the NameNode", || TcpStream::connect(&hdfs.address).is_ok());
        hdfs.spawn(&mut server("datanode.DataNode", "datanode.log"));
        hdfs
    }

    fn spawn(&mut self, command: &mut Command) {
        self.processes.push(start(command));
    }

    /// Copies a directory to the root directory; returns the URI of the copy.
    ///
    /// # Panics
    /// If that fails.
    pub fn put(&self, spark: &Path, from: &Path) -> PathBuf {
        let mut class_path = pyspark(spark).join("jars/*").into_os_string();
        class_path.push(":");
        class_path.push(&self.conf);
        // The DataNode may not have registered with the NameNode yet.
        wait_for("room in HDFS", || {
            let put = Command::new("java")
                .args(BRIEF)
                .args(["-Xmx256m", "-cp"])
                .arg(&class_path)
                .args(["org.apache.hadoop.fs.FsShell", "-put", "-f"])
                .arg(from)
                .arg(self.uri(""))
                .output();
            put.is_ok_and(|output| output.status.success())
        });
        let name = from.file_name().expect("a name").to_string_lossy();
        self.uri(&name)
    }

    /// The URI of a path in it.
    pub fn uri(&self, path: &str) -> PathBuf {
        PathBuf::from(format!("hdfs://{}/{path}", self.address))
    }
}

impl Drop for Hdfs {
    fn drop(&mut self) {
        for process in &mut self.processes {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// Writes files of Hadoop's settings.
pub(crate) fn configure(conf: &Path, files: &[&str], settings: &[(&str, String)]) {
    fs::create_dir_all(conf).expect("a directory");
    let properties: String = settings
        .iter()
        .map(|(name, value)| {
            format!("<property><name>{name}</name><value>{value}</value></property>")
        })
        .collect();
    for file in files {
        let text = format!("<configuration>{properties}</configuration>");
        fs::write(conf.join(file), text).expect("a file");
    }
}

/// A server of Hadoop, by its class below `org.apache.hadoop`, with its settings and its log.
pub(crate) fn server(spark: &Path, conf: &Path, class: &str, log: &Path) -> Command {
    let mut class_path = OsString::from(conf);
    for jars in [jars("hdfs"), pyspark(spark).join("jars")] {
        class_path.push(":");
        class_path.push(jars.join("*"));
    }
    let log = File::create(log).expect("a log");
    let mut command = Command::new("java");
    command
        .args(BRIEF)
        .args(["-Xmx256m", "-cp"])
        .arg(&class_path)
        .arg(format!("org.apache.hadoop.{class}"))
        .stdin(Stdio::null())
        .stdout(log.try_clone().expect("a log"))
        .stderr(log);
    command
}

/// The directory with the jars of `tests/NAME/pom.xml`, in the cache directory. They are copied there at first.
///
/// # Panics
/// If that fails.
pub(crate) fn jars(name: &str) -> PathBuf {
    let pom = format!("{name}/pom.xml");
    installed(&format!("{name}-jars"), &[&pom], |home| {
        run(Command::new("mvn")
            .args(["-q", "-B", "-f"])
            .arg(root().join("tests").join(&pom))
            .arg("org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies")
            .arg(format!("-DoutputDirectory={}", home.display())));
    })
}
