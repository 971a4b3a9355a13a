//! `unfuse trino`: records what Trino says of its queries, for `unfuse blame`.

use std::collections::HashSet;
use std::fs::File;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use chrono::{DateTime, Utc};
use clap::Args;
use serde::Serialize;
use serde::de::DeserializeOwned;
use unfuse_files::Directory;
use unfuse_trino::{Listed, Meter, NodeStatus, QueryInfo, State};

use crate::curl::{self, Options, Url, read_headers};
use crate::follow::interval;
use crate::fresh::recording;

/// Largest answer of a server, bytes.
const MOST_ANSWER: u64 = 64 << 20;
/// Most queries that are asked for in a round.
const MOST_QUERIES: usize = 1_000;

/// Record what Trino says of its running queries, so that `unfuse blame` says who slows whom down
///
/// Asks the coordinator for its queries, and the servers for their CPU and memory, until --for is over or Ctrl-C ends it. Then
/// `unfuse blame DIR` reads the directory, also meanwhile. See docs/contention.md.
#[derive(Debug, Args)]
pub struct Trino {
    /// The coordinator's address, such as http://localhost:8080
    #[arg(value_name = "URL")]
    url: Url,
    /// The directory to make
    #[arg(long, short, value_name = "DIR", default_value = "unfuse-trino")]
    output: PathBuf,
    /// Time between two rounds of requests
    #[arg(long, value_parser = interval, default_value = "1s", value_name = "DURATION")]
    every: Duration,
    /// How long to record, such as 10m; without it until Ctrl-C
    #[arg(long = "for", value_parser = recording, value_name = "DURATION")]
    time: Option<Duration>,
    /// The user whose queries Trino shows; without --headers it believes any name
    #[arg(long, default_value = "unfuse", value_name = "NAME")]
    user: String,
    /// Headers for the coordinator, one on each line of a file that only you can read, such as `Authorization: Bearer …`
    #[arg(long, value_name = "FILE")]
    headers: Option<PathBuf>,
}

impl Trino {
    /// Records until the time is over.
    pub fn execute(self) -> Result<ExitCode> {
        let is_name = |c: char| c.is_ascii_graphic();
        ensure!(
            !self.user.is_empty() && self.user.chars().all(is_name),
            "--user: a name of letters, digits and punctuation is expected"
        );
        let mut headers = read_headers(self.headers.as_deref())?;
        headers.push(format!("X-Trino-User: {}", self.user));
        let coordinator = Coordinator {
            url: self.url,
            headers,
        };
        // Fails at once if there is no such server, before anything is made.
        coordinator.list()?;
        let output = Directory::create_new(&self.output)?
            .with_context(|| format!("{} exists already", self.output.display()))?;
        let mut recorder = Recorder {
            coordinator,
            meter: Meter::default(),
            going: HashSet::new(),
            lost: HashSet::new(),
            tables: Tables::create(&output)?,
        };
        let begun = Instant::now();
        let shows = std::io::stderr().is_terminal();
        if shows {
            crate::say!(
                "unfuse: records {} into {} (Ctrl-C ends it)",
                recorder.coordinator.url,
                self.output.display()
            );
        }
        while self.time.is_none_or(|time| begun.elapsed() < time) {
            let round = Instant::now();
            if let Err(error) = recorder.round() {
                crate::say!("unfuse: a part is missing: {error:#}");
            }
            std::thread::sleep(self.every.saturating_sub(round.elapsed()));
        }
        println!("{}", self.output.display());
        Ok(ExitCode::SUCCESS)
    }
}

/// The server that knows all queries.
struct Coordinator {
    url: Url,
    headers: Vec<String>,
}

impl Coordinator {
    fn list(&self) -> Result<Vec<Listed>> {
        self.get("v1/query")
    }

    fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        get(&self.url.below(path), &self.headers)
    }
}

struct Recorder {
    coordinator: Coordinator,
    meter: Meter,
    /// Queries that had not ended at the last round.
    going: HashSet<String>,
    /// Servers that were not reached, each named once.
    lost: HashSet<String>,
    tables: Tables,
}

impl Recorder {
    /// Asks for everything once.
    fn round(&mut self) -> Result<()> {
        let going: Vec<String> = {
            let listed = self.coordinator.list()?.into_iter();
            let going = listed.filter(|query| query.state == State::Going);
            going.map(|query| query.query_id).collect()
        };
        // Those that have ended since have more to say, once.
        let ended = self.going.iter().filter(|query| !going.contains(query));
        let ended: Vec<String> = ended.cloned().collect();
        for query in going.iter().chain(&ended).take(MOST_QUERIES) {
            let is_id = query
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'_');
            // A query can be forgotten between two requests.
            let path = format!("v1/query/{query}");
            if is_id && let Ok(info) = self.coordinator.get::<QueryInfo>(&path) {
                let rows = self.meter.look(&info);
                self.tables.queries.add(&rows.queries)?;
                self.tables.stages.add(&rows.stages)?;
                self.tables.intervals.add(&rows.intervals)?;
            }
        }
        for query in &ended {
            self.meter.end(query);
        }
        self.going = going.into_iter().collect();
        self.look_at_servers()?;
        self.tables.flush()
    }

    /// Asks each server for its status, which it tells anyone: only the coordinator gets the headers.
    fn look_at_servers(&mut self) -> Result<()> {
        let servers: Vec<String> = self.meter.servers().map(str::to_owned).collect();
        for server in servers {
            let Ok(url) = server.parse::<Url>() else {
                continue;
            };
            let status: Result<NodeStatus> = get(&url.below("v1/status"), &[]);
            match status {
                Ok(status) => {
                    let now: DateTime<Utc> = std::time::SystemTime::now().into();
                    self.tables.hosts.add(&self.meter.host(&status, now))?;
                }
                Err(error) => {
                    if self.lost.insert(server) {
                        crate::say!(
                            "unfuse: the CPU and memory of a server are unknown: {error:#}"
                        );
                    }
                }
            }
        }
        Ok(())
    }
}

fn get<T: DeserializeOwned>(url: &Url, headers: &[String]) -> Result<T> {
    let answer = curl::ask(url, &Options::new(url.whole(), headers), MOST_ANSWER)?;
    serde_json::from_str(&answer)
        .with_context(|| format!("{url} does not answer as Trino 476 does"))
}

/// The files.
struct Tables {
    intervals: Table,
    hosts: Table,
    queries: Table,
    stages: Table,
}

impl Tables {
    fn create(dir: &Directory) -> Result<Self> {
        Ok(Self {
            intervals: Table::create(
                dir,
                "intervals.csv",
                "host,query,stage,attempt,task,kind,start_ns,end_ns,units,blocked_ns",
            )?,
            hosts: Table::create(
                dir,
                "hosts.csv",
                "host,resource,start_ns,end_ns,units,capacity",
            )?,
            queries: Table::create(dir, "queries.csv", "query,label,user,pool,weight")?,
            stages: Table::create(dir, "stages.csv", "query,stage,attempt,parents")?,
        })
    }

    /// Makes what was recorded so far readable.
    fn flush(&mut self) -> Result<()> {
        for table in [
            // A row must only name queries that another file has.
            &mut self.queries,
            &mut self.stages,
            &mut self.hosts,
            &mut self.intervals,
        ] {
            table.0.flush()?;
        }
        Ok(())
    }
}

/// A CSV file.
struct Table(csv::Writer<File>);

impl Table {
    fn create(dir: &Directory, name: &str, columns: &str) -> Result<Self> {
        let mut file = dir
            .create_file(name)
            .with_context(|| format!("cannot write {name}"))?;
        writeln!(file, "{columns}")?;
        let mut builder = csv::WriterBuilder::new();
        Ok(Self(builder.has_headers(false).from_writer(file)))
    }

    fn add<R: Serialize>(&mut self, rows: &[R]) -> Result<()> {
        for row in rows {
            self.0.serialize(row).context("cannot write")?;
        }
        Ok(())
    }
}
