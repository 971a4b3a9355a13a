//! A Spark job that runs one query at a time on request, so that several jobs can take turns.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::json;
use unfuse_format::{LiveMarker, ProfileDir};

/// How long a profile's writer may take after the JVM's end.
const PATIENCE: Duration = Duration::from_secs(60);

/// A format that discards all rows.
pub const NOWHERE: &str = "noop";

/// A running JVM.
pub struct Session {
    child: ChildGuard,
    job: BufReader<UnixStream>,
    dir: PathBuf,
}

/// The result of a query.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It ended.
    Took(Round),
    /// Spark reported an error.
    Refused(RefusedQuery),
}

/// One query in one round.
#[derive(Debug, Clone, Deserialize)]
pub struct Round {
    /// Wall time, s.
    pub wall_s: f64,
    /// CPU time of the JVM during the query, s.
    pub jvm_cpu_s: f64,
    /// CPU time of the profiler's processes during the query, s.
    pub beside_cpu_s: f64,
    /// CPU time of the profiler's processes from their start to the query's start, s.
    pub beside_before_s: f64,
    /// CPU time of marked functions, s.
    pub marks: BTreeMap<String, f64>,
}

/// A query that failed in Spark.
#[derive(Debug, Clone, Deserialize)]
pub struct RefusedQuery {
    /// Name of the query.
    pub query: String,
    /// The first line of Spark's error message.
    pub reason: String,
}

impl Round {
    /// CPU time of the JVM and of the profiler, s.
    pub fn cpu_s(&self) -> f64 {
        self.jvm_cpu_s + self.beside_cpu_s
    }
}

impl Session {
    /// Runs a command `spark-submit … job.py …`.
    ///
    /// # Errors
    /// If the job does not start; the error has the end of Spark's log.
    pub fn start(mut command: Command, dir: PathBuf) -> Result<Self> {
        let socket = dir.join("socket");
        let listener = UnixListener::bind(&socket)
            .with_context(|| format!("cannot listen on {}", socket.display()))?;
        listener.set_nonblocking(true)?;
        let log = File::create(dir.join("log"))?;
        let child = command
            .env("UNFUSE_BENCH_SOCKET", &socket)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("cannot run spark-submit")?;
        let mut child = ChildGuard(child);
        let job = loop {
            match listener.accept() {
                Ok((job, _)) => break job,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error).context("cannot accept the job"),
            }
            if let Some(status) = child.0.try_wait()? {
                bail!("the job failed ({status}):\n{}", last_words(&dir));
            }
            sleep(Duration::from_millis(20));
        };
        job.set_nonblocking(false)?;
        let job = BufReader::new(job);
        Ok(Self { child, job, dir })
    }

    /// Process id of the JVM: Spark's scripts replace themselves with it.
    pub fn pid(&self) -> u32 {
        self.child.0.id()
    }

    /// Runs a statement and waits for its end. Discards its rows.
    ///
    /// # Errors
    /// If the job ended; the error has the end of Spark's log.
    pub fn ask(&mut self, query: &str, sql: &str, round: i32) -> Result<Answer> {
        self.ask_into(query, sql, round, NOWHERE)
    }

    /// The same, but writes the rows in a format of Spark.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn ask_into(&mut self, query: &str, sql: &str, round: i32, sink: &str) -> Result<Answer> {
        let question = json!({"query": query, "sql": sql, "round": round, "sink": sink});
        let mut question = question.to_string();
        question.push('\n');
        let mut line = String::new();
        let talk = self
            .job
            .get_mut()
            .write_all(question.as_bytes())
            .and_then(|()| self.job.read_line(&mut line));
        match talk {
            Ok(length) if length > 0 => Ok(serde_json::from_str(&line)?),
            _ => bail!("the job ended in {query}:\n{}", last_words(&self.dir)),
        }
    }

    /// Ends the job. Returns its profile, complete if there is one, and its event log.
    ///
    /// # Errors
    /// If Spark fails at its end, or a process still writes to the profile a minute later.
    pub fn finish(mut self) -> Result<(PathBuf, PathBuf)> {
        self.job.get_ref().shutdown(std::net::Shutdown::Both)?;
        let status = self.child.0.wait()?;
        if !status.success() {
            bail!("the job failed ({status}):\n{}", last_words(&self.dir));
        }
        let profile = complete(self.dir.join("profile"))?;
        let event_log = fs::read_dir(self.dir.join("events"))?
            .next()
            .context("Spark wrote no event log")??
            .path();
        Ok((profile, event_log))
    }
}

/// A process that is killed when this is dropped, so that it does not outlive an error.
pub struct ChildGuard(pub Child);

impl Drop for ChildGuard {
    fn drop(&mut self) {
        // Both fail without harm if the process was already waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until no process writes to a profile. Returns at once if there is no profile.
///
/// # Errors
/// If a process still writes to it a minute later.
pub fn complete(profile: PathBuf) -> Result<PathBuf> {
    if let Ok(dir) = ProfileDir::open(&profile)
        && !LiveMarker::wait_for_all(&dir, PATIENCE)
    {
        bail!("{} is still being written to", profile.display());
    }
    Ok(profile)
}

/// The end of Spark's output in the file `log` of a directory.
pub fn last_words(dir: &Path) -> String {
    let text = fs::read(dir.join("log")).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(12)..].join("\n")
}
