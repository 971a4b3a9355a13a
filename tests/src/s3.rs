//! A server that answers as S3 does, pinned by `tests/s3/requirements.lock`, and Hadoop's client for it, by `tests/s3/pom.xml`.

use std::fs::{self, File};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::cluster::{free_port, wait_for};
use crate::hdfs::{configure, jars};
use crate::processes::start;
use crate::python::python_environment;
use crate::run;

/// Any are right.
const KEYS: [(&str, &str); 2] = [
    ("AWS_ACCESS_KEY_ID", "unfuse"),
    ("AWS_SECRET_ACCESS_KEY", "unfuse"),
];

/// The bucket of a new server.
const BUCKET: &str = "profiles";

/// A server with an empty bucket. Dropping it ends it.
#[derive(Debug)]
pub struct S3 {
    server: Child,
    settings: [(&'static str, String); 3],
    conf: PathBuf,
}

impl S3 {
    /// Starts a server, with the client's settings and its log in `dir`.
    ///
    /// # Panics
    /// If that fails.
    pub fn start(dir: &Path) -> Self {
        let port = free_port();
        let log = File::create(dir.join("s3.log")).expect("a log");
        let server = start(
            Command::new(python_environment("s3").join("bin/moto_server"))
                .args(["-H", "127.0.0.1", "-p"])
                .arg(port.to_string())
                .stdin(Stdio::null())
                .stdout(log.try_clone().expect("a log"))
                .stderr(log),
        );
        let address = format!("http://127.0.0.1:{port}");
        let settings = [
            ("fs.s3a.endpoint", address.clone()),
            ("fs.s3a.endpoint.region", "us-east-1".to_owned()),
            ("fs.s3a.path.style.access", "true".to_owned()),
        ];
        let conf = dir.join("s3-conf");
        configure(&conf, &["core-site.xml"], &settings);
        wait_for("the server", || {
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        let bucket = format!("{address}/{BUCKET}");
        run(Command::new("curl").args(["--silent", "--fail", "--request", "PUT", &bucket]));
        Self {
            server,
            settings,
            conf,
        }
    }

    /// Options of `spark-submit`: the client's jars, which Spark copies to the executors, and its settings. Keys are taken from the
    /// environment, as [`with_keys`](Self::with_keys) sets it.
    ///
    /// # Panics
    /// If the jars cannot be installed.
    pub fn options(&self) -> Vec<String> {
        let jars = fs::read_dir(jars("s3")).expect("the jars").flatten();
        let jars: Vec<String> = jars
            .map(|jar| jar.path().display().to_string())
            .filter(|jar| jar.ends_with(".jar"))
            .collect();
        let mut options = vec!["--jars".to_owned(), jars.join(",")];
        for (name, value) in &self.settings {
            options.extend(["--conf".to_owned(), format!("spark.hadoop.{name}={value}")]);
        }
        for (name, value) in KEYS {
            options.extend([
                "--conf".to_owned(),
                format!("spark.executorEnv.{name}={value}"),
            ]);
        }
        options
    }

    /// Gives a command the keys.
    pub fn with_keys<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.envs(KEYS)
    }

    /// Gives a command that reads by a URI the client, its settings and the keys.
    ///
    /// # Panics
    /// If the jars cannot be installed.
    pub fn with_client<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        self.with_keys(command)
            .env("HADOOP_CONF_DIR", &self.conf)
            .env("HADOOP_CLASSPATH", jars("s3").join("*"))
    }

    /// The URI of a path in the bucket.
    pub fn uri(&self, path: &str) -> PathBuf {
        PathBuf::from(format!("s3a://{BUCKET}/{path}"))
    }
}

impl Drop for S3 {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
