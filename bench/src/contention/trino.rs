//! A second engine (appendix F of the paper): queries of Trino with equal overlap and unequal harm.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::Deserialize;
use serde_json::Value;
use unfuse_machine::{cache_dir, run, said};

use super::Contention;
use crate::page::{Figure, Measuring};
use crate::spark::Spark;
use crate::stats;
use crate::tools::copy_dependencies;

const MEASURES: [&str; 2] = ["analysis/contention/src", "analysis/trino/src"];
/// The directory of the unpacked server.
const HOME: &str = "trino-server-core-476";
/// How long the server may take to start.
const STARTING: Duration = Duration::from_secs(300);
const COMPUTES: &str = "computes";
const IDLE: &str = "idle";

/// A run of the victim, as the program `trino.py` prints it.
#[derive(Debug, Deserialize)]
struct Trial {
    run: u32,
    victim: String,
    seconds: f64,
    /// Ids of the neighbours, by name.
    beside: BTreeMap<String, String>,
}

/// Runs everything and writes `contention-trino.md`.
pub fn measure(asked: &Contention, results: &Path) -> Result<()> {
    let page = Measuring::begin(results, "contention-trino", &MEASURES)?;
    let scratch = tempfile::tempdir()?;
    let server = Server::start(&installed()?, scratch.path())?;
    let unfuse = std::env::current_exe()?.with_file_name("unfuse");
    let recorded = scratch.path().join("recorded");
    let mut recorder = Command::new(&unfuse)
        .args(["trino", &server.url, "--output"])
        .arg(&recorded)
        .stdout(Stdio::null())
        .spawn()
        .context("cannot run unfuse")?;
    let program = scratch.path().join("trino.py");
    fs::write(&program, include_str!("../../assets/trino.py"))?;
    let printed = said(
        Command::new("python3")
            .arg(&program)
            .args([&server.url, &asked.runs.to_string()]),
    );
    // The sums of the last query.
    sleep(Duration::from_secs(5));
    let _ = recorder.kill();
    recorder.wait()?;
    drop(server);
    let trials: Result<Vec<Trial>, _> = printed?.lines().map(serde_json::from_str).collect();
    let mut blamed = Vec::new();
    for trial in trials? {
        let answer = said(Command::new(&unfuse).arg("blame").arg(&recorded).args([
            "--json",
            "--limit",
            "100",
            "--victim",
            &trial.victim,
        ]))?;
        let answer: Value = serde_json::from_str(&answer)?;
        blamed.push(Blamed::new(trial, &answer));
    }
    page.finish(asked.runs, figures(&blamed), &body(&blamed))
}

/// A run of the victim, with blocked seconds that are blamed on others.
struct Blamed {
    trial: Trial,
    computes_s: f64,
    idle_s: f64,
    /// Whether the neighbour that computes is the first of the other queries.
    first: bool,
}

impl Blamed {
    fn new(trial: Trial, answer: &Value) -> Self {
        let rows = answer["ranked"].as_array().map_or(&[][..], Vec::as_slice);
        let id_of = |name: &str| trial.beside.get(name).map_or("none", String::as_str);
        let is_of =
            |row: &Value, id: &str| row["name"].as_str().is_some_and(|name| name.contains(id));
        let seconds = |name: &str| {
            let rows = rows.iter().filter(|row| is_of(row, id_of(name)));
            // Not `sum`, which is -0 of nothing.
            rows.filter_map(|row| row["seconds"].as_f64())
                .fold(0.0, |sum, seconds| sum + seconds)
        };
        let first = rows
            .iter()
            .find(|row| row["kind"] == "query" && !is_of(row, &trial.victim));
        Self {
            computes_s: seconds(COMPUTES),
            idle_s: seconds(IDLE),
            first: first.is_some_and(|row| is_of(row, id_of(COMPUTES))),
            trial,
        }
    }

    fn has(&self, name: &str) -> bool {
        self.trial.beside.contains_key(name)
    }
}

fn figures(blamed: &[Blamed]) -> Vec<Figure> {
    let beside_both: Vec<&Blamed> = blamed
        .iter()
        .filter(|run| run.has(COMPUTES) && run.has(IDLE))
        .collect();
    let first = beside_both.iter().filter(|run| run.first).count() as f64;
    let of = beside_both.len() as f64;
    let (share, ends) = stats::share(first, of);
    let slower = |name: &str| {
        let logs = blamed.iter().filter_map(|run| {
            let alone =
                |other: &&Blamed| other.trial.run == run.trial.run && other.trial.beside.is_empty();
            let is_wanted = run.has(name) && run.trial.beside.len() == 1;
            let alone = blamed.iter().find(alone).filter(|_| is_wanted)?;
            Some((run.trial.seconds / alone.trial.seconds).ln())
        });
        logs.collect::<Vec<f64>>()
    };
    let idle: f64 = beside_both.iter().map(|run| run.idle_s).sum();
    let both: f64 = beside_both.iter().map(|run| run.computes_s).sum::<f64>() + idle;
    vec![
        Figure::new(
            "first",
            &format!("runs beside both in which the query that computes is the first other query ({first} of {of})"),
            100.0 * share,
            "%",
            0,
        )
        .within(Some(ends.map(|end| 100.0 * end))),
        Figure::new(
            "idle",
            "blame on the query whose client does not fetch its result, of that on both",
            100.0 * idle / both,
            "%",
            1,
        ),
        Figure::from_logs(
            "slower_computes",
            "time of the victim beside the query that computes ÷ alone",
            &slower(COMPUTES),
        ),
        Figure::from_logs(
            "slower_idle",
            "time of the victim beside the query whose client does not fetch ÷ alone",
            &slower(IDLE),
        ),
    ]
}

fn body(blamed: &[Blamed]) -> String {
    let mut body = "Trino 476 (coordinator and worker in one JVM, JDK 25), TPC-H of its own connector at scale factor 0.3. The victim is a \
        join of three tables. Two neighbours overlap it completely: one computes hashes, the client of the other does not fetch its \
        result, so that it waits. Recorded with `unfuse trino`, asked with `unfuse blame`. The truth is in the times of the victim.\n\n\
        | run | beside | victim, s | blamed on the one that computes, s of drivers | on the one that waits | first is the one that computes |\n\
        |---|---|---|---|---|---|\n"
        .to_owned();
    for run in blamed {
        let beside: Vec<&str> = run.trial.beside.keys().map(String::as_str).collect();
        let _ = writeln!(
            body,
            "| {} | {} | {:.2} | {:.1} | {:.1} | {} |",
            run.trial.run + 1,
            if beside.is_empty() {
                "nothing".to_owned()
            } else {
                beside.join(", ")
            },
            run.trial.seconds,
            run.computes_s,
            run.idle_s,
            match (run.has(COMPUTES), run.first) {
                (false, _) => "-",
                (true, true) => "yes",
                (true, false) => "no",
            }
        );
    }
    body
}

/// A running server.
struct Server {
    process: Child,
    url: String,
}

impl Server {
    /// Starts a server that only this machine reaches, with its data below `dir`.
    fn start(home: &Path, dir: &Path) -> Result<Self> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let url = format!("http://127.0.0.1:{port}");
        let etc = dir.join("etc");
        fs::create_dir_all(etc.join("catalog"))?;
        let data = dir.join("data");
        let files = [
            (
                "catalog/tpch.properties",
                "connector.name=tpch\n".to_owned(),
            ),
            (
                "node.properties",
                format!(
                    "node.environment=bench\nnode.id=server\nnode.data-dir={}\nnode.bind-ip=127.0.0.1\nnode.internal-address=127.0.0.1\n",
                    data.display()
                ),
            ),
            (
                "config.properties",
                format!(
                    "coordinator=true\nnode-scheduler.include-coordinator=true\nhttp-server.http.port={port}\ndiscovery.uri={url}\n"
                ),
            ),
            (
                "jvm.config",
                "-Xmx3G\n-Djdk.attach.allowAttachSelf=true\n".to_owned(),
            ),
        ];
        for (name, text) in files {
            fs::write(etc.join(name), text)?;
        }
        let java = Spark::jdk("25")?;
        let path = std::env::var("PATH").unwrap_or_default();
        let process = Command::new(home.join("bin/launcher"))
            .arg("run")
            .arg(format!("--etc-dir={}", etc.display()))
            .env("JAVA_HOME", &java)
            .env("PATH", format!("{}:{path}", java.join("bin").display()))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start Trino")?;
        let mut server = Self { process, url };
        let begun = Instant::now();
        while !server.is_ready() {
            if begun.elapsed() > STARTING || server.process.try_wait()?.is_some() {
                bail!("Trino does not start");
            }
            sleep(Duration::from_millis(500));
        }
        Ok(server)
    }

    fn is_ready(&self) -> bool {
        let info = said(
            Command::new("curl")
                .args(["--silent", "--fail", "--max-time", "5"])
                .arg(format!("{}/v1/info", self.url)),
        );
        let info = info.ok().and_then(|text| serde_json::from_str(&text).ok());
        info.is_some_and(|info: Value| info["starting"] == false)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The launcher becomes the JVM.
        let _ = kill(
            Pid::from_raw(self.process.id().cast_signed()),
            Signal::SIGKILL,
        );
        let _ = self.process.wait();
    }
}

/// The directory of the server. Maven fetches it once.
fn installed() -> Result<PathBuf> {
    let dir = cache_dir()?.join("bench-trino");
    let home = dir.join(HOME);
    // The last thing that is made.
    let done = home.join("plugin/tpch");
    if !done.exists() {
        fs::create_dir_all(&dir)?;
        copy_dependencies(include_str!("../../tools/trino.xml"), &dir)?;
        run(Command::new("tar")
            .current_dir(&dir)
            .args(["xzf", "trino-server-core-476.tar.gz"]))?;
        run(Command::new("jar")
            .current_dir(&dir)
            .args(["xf", "trino-tpch-476.zip"]))?;
        fs::rename(dir.join("trino-tpch-476"), &done)?;
    }
    Ok(home)
}
