//! A Thrift server of Spark, and users who run statements on it at the same time.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::Serialize;
use unfuse_contention::Span;

use crate::session::{ChildGuard, complete, last_words};
use crate::spark::{Spark, Tool};

/// How long a server may take to start.
const STARTUP: Duration = Duration::from_secs(120);

/// A user, who runs one statement after the other.
#[derive(Debug, Clone, Serialize)]
pub struct User {
    /// The user's name, which is also the name of the scheduler pool.
    pub name: String,
    /// The statements, in order.
    pub statements: Vec<Statement>,
}

/// What a user runs.
#[derive(Debug, Clone, Serialize)]
pub struct Statement {
    /// The name, unique among all users.
    pub name: String,
    /// The text, which the server uses as the query's description.
    pub sql: String,
    /// Waits until this other statement has started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Waits until this other statement has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_end_of: Option<String>,
    /// Then waits this long, ms.
    pub delay_ms: u64,
    /// Is cancelled when this other statement has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until_end_of: Option<String>,
}

impl Statement {
    /// A statement whose text begins with its name, so that a profile identifies it.
    pub fn new(name: &str, sql: &str) -> Self {
        Self {
            name: name.to_owned(),
            sql: format!("/* {name} */ {sql}"),
            after: None,
            after_end_of: None,
            delay_ms: 0,
            until_end_of: None,
        }
    }

    /// The same, but starts `ms` after the statement before it.
    pub fn delayed(mut self, ms: u64) -> Self {
        self.delay_ms = ms;
        self
    }

    /// The same, but starts `delay_ms` after the start of another statement.
    pub fn after(mut self, other: &str, delay_ms: u64) -> Self {
        self.after = Some(other.to_owned());
        self.delay_ms = delay_ms;
        self
    }

    /// The same, but starts after the end of another statement.
    pub fn after_end_of(mut self, other: &str) -> Self {
        self.after_end_of = Some(other.to_owned());
        self
    }

    /// The same, but cancelled at the end of another statement.
    pub fn until_end_of(mut self, other: &str) -> Self {
        self.until_end_of = Some(other.to_owned());
        self
    }
}

/// When statements ran, ns since the epoch, by name.
pub type Times = BTreeMap<String, Span>;

/// A running server.
pub struct Server {
    child: ChildGuard,
    port: u16,
    dir: PathBuf,
    /// Of the client.
    classpath: OsString,
}

impl Server {
    /// Starts a server with this many task slots and this heap
    /// (`2g`), and creates the tables of the data.
    ///
    /// # Errors
    /// If it does not start; the error has the end of its log.
    pub fn start(spark: &Spark, tool: &Tool, slots: u32, heap: &str) -> Result<Self> {
        let dir = tempfile::Builder::new()
            .prefix("server-")
            .tempdir_in(spark.scratch())?
            .keep();
        // The port is free now, and another process is unlikely to take it.
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let log = File::create(dir.join("log"))?;
        let client = dir.join("client-classes");
        fs::create_dir(&client)?;
        let source = include_str!("../../assets/Users.java");
        spark.compile(&[("Users.java", source)], &client)?;
        let classpath = std::env::join_paths([client, spark.jars()?])?;
        let child = spark
            .submit(tool, &dir.join("profile"))
            .current_dir(&dir)
            .args(["--master", &format!("local[{slots}]")])
            .args(["--driver-memory", heap])
            .args(["--conf", "spark.ui.enabled=false"])
            .args(["--conf", "spark.log.level=ERROR"])
            .args(["--conf", "spark.scheduler.mode=FAIR"])
            .args(["--conf", "spark.sql.ansi.doubleQuotedIdentifiers=true"])
            .args([
                "--class",
                "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2",
            ])
            .args(["spark-internal", "--hiveconf"])
            .arg(format!("hive.server2.thrift.port={port}"))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("cannot run spark-submit")?;
        let mut server = Self {
            child: ChildGuard(child),
            port,
            dir,
            classpath,
        };
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if let Some(status) = server.child.0.try_wait()? {
                bail!(
                    "the Thrift server ended ({status}):\n{}",
                    last_words(&server.dir)
                );
            }
            if begun.elapsed() > STARTUP {
                bail!(
                    "the Thrift server does not answer:\n{}",
                    last_words(&server.dir)
                );
            }
            sleep(Duration::from_millis(100));
        }
        server.run(&[tables(spark.data())?])?;
        Ok(server)
    }

    /// Process id of the JVM: Spark's scripts replace themselves with it.
    pub fn pid(&self) -> u32 {
        self.child.0.id()
    }

    /// The profile that is being recorded.
    pub fn profile(&self) -> PathBuf {
        self.dir.join("profile")
    }

    /// Runs the users' statements.
    ///
    /// # Errors
    /// If a statement fails.
    pub fn run(&self, users: &[User]) -> Result<Times> {
        let (times, failed) = self.run_what_can(users, |_| Ok(()))?;
        if !failed.is_empty() {
            bail!("failed: {}\n{}", failed.join(", "), self.said());
        }
        Ok(times)
    }

    /// The same, but statements may fail; returns their names. Calls `started` with the name of each
    /// statement that starts.
    ///
    /// # Errors
    /// If the client or `started` fails.
    pub fn run_what_can(
        &self,
        users: &[User],
        mut started: impl FnMut(&str) -> Result<()>,
    ) -> Result<(Times, Vec<String>)> {
        let wishes = self.dir.join("users.json");
        fs::write(&wishes, serde_json::to_vec(users)?)?;
        let client = Command::new("java")
            .arg("-cp")
            .arg(&self.classpath)
            .arg("Users")
            .arg(self.port.to_string())
            .arg(&wishes)
            .stdout(Stdio::piped())
            .stderr(File::create(self.dir.join("client"))?)
            .spawn()
            .context("cannot run java")?;
        let mut client = ChildGuard(client);
        let lines = BufReader::new(client.0.stdout.take().context("it is piped")?).lines();
        let mut times = Times::new();
        let mut failed = Vec::new();
        for line in lines {
            let line = line?;
            let mut words = line.splitn(3, ' ');
            let (what, ms, name) = (words.next(), words.next(), words.next());
            let (Some(what @ ("START" | "END" | "FAILED")), Some(name)) = (what, name) else {
                continue;
            };
            let at: i64 = ms.unwrap_or_default().parse::<i64>()? * 1_000_000;
            let span = times
                .entry(name.to_owned())
                .or_insert(Span { start: at, end: at });
            span.end = at;
            match what {
                "START" => started(name)?,
                "FAILED" => failed.push(name.to_owned()),
                _ => {}
            }
        }
        let status = client.0.wait()?;
        if !status.success() {
            bail!("the users failed ({status})\n{}", self.said());
        }
        Ok((times, failed))
    }

    /// The first lines of the client's error output.
    fn said(&self) -> String {
        let said = fs::read_to_string(self.dir.join("client")).unwrap_or_default();
        let lines: Vec<&str> = said.lines().take(5).collect();
        lines.join("\n")
    }

    /// Ends the server. Returns its complete profile.
    ///
    /// # Errors
    /// If a process still writes to the profile a minute later.
    pub fn stop(mut self) -> Result<PathBuf> {
        Command::new("kill")
            .arg(self.child.0.id().to_string())
            .status()?;
        self.child.0.wait()?;
        complete(self.profile())
    }
}

/// The user who creates the tables of the data.
fn tables(data: &Path) -> Result<User> {
    let mut statements = Vec::new();
    for entry in fs::read_dir(data)? {
        let path = entry?.path();
        if path.extension().is_some_and(|kind| kind == "parquet")
            && let Some(name) = path.file_stem().and_then(|name| name.to_str())
        {
            let sql = format!(
                "CREATE TABLE {name} USING parquet LOCATION '{}'",
                path.display()
            );
            statements.push(Statement {
                sql,
                ..Statement::new(name, "")
            });
        }
    }
    Ok(User {
        name: "tables".to_owned(),
        statements,
    })
}
