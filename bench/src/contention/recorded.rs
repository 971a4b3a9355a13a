//! What was recorded of a server, and what `unfuse blame` says of it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;
use unfuse_format::TableId;
use unfuse_postprocess::Profile;

use super::judge::RecordedWorkload;
use super::server::Server;
use crate::spark::Spark;

/// The profile of a server that has ended.
pub struct Recorded {
    profile: PathBuf,
    /// Its tables.
    pub workload: RecordedWorkload,
    /// Times of SQL executions by the names of their statements, s.
    executions: BTreeMap<String, f64>,
}

impl Recorded {
    /// Ends a server and reads its profile.
    pub fn from_server(server: Server) -> Result<Self> {
        let profile = server.stop()?;
        let opened = Profile::open(&profile)?;
        Ok(Self {
            workload: RecordedWorkload::from_profile(&opened)?,
            executions: executions(&opened),
            profile,
        })
    }

    /// Where it is.
    pub fn profile(&self) -> &Path {
        &self.profile
    }

    /// Time of the SQL execution of a statement, s.
    pub fn time(&self, statement: &str) -> Result<f64> {
        let time = self.executions.get(statement).copied();
        time.with_context(|| format!("no execution of {statement} was recorded"))
    }

    /// The name of a statement's query in answers.
    pub fn name(&self, statement: &str) -> Result<&str> {
        let query = self.workload.query(statement)?;
        let query = self.workload.workload.query(query);
        Ok(&query.context("a known query")?.name)
    }

    /// Asks while the profile is as one without `switches=on`.
    pub fn by_use<T>(&self, ask: impl FnOnce(&Self) -> Result<T>) -> Result<T> {
        let counted = self.profile.join(TableId::CpuWaits.name());
        if !counted.exists() {
            return ask(self);
        }
        let aside = self.profile.with_extension("counted");
        fs::rename(&counted, &aside).context("cannot move what the kernel counted aside")?;
        let answer = ask(self);
        fs::rename(&aside, &counted)?;
        answer
    }

    /// What `unfuse blame` says of the query of a statement.
    pub fn blame(&self, spark: &Spark, statement: &str) -> Result<Value> {
        let options = ["--limit", "1000", "--victim", self.name(statement)?];
        spark.ask("blame", &self.profile, &options)
    }
}

fn executions(profile: &Profile) -> BTreeMap<String, f64> {
    let named = profile.executions.iter().filter_map(|(id, known)| {
        let text = profile.query_name(id);
        let (name, _) = text.strip_prefix("/* ")?.split_once(" */")?;
        Some((name.to_owned(), known.duration_ms()? as f64 / 1e3))
    });
    named.collect()
}

/// Whether a text has this name, and not one that begins like it, as `query 12` begins like `query 1`.
pub fn has_name(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let rest = &text[at + name.len()..];
        !rest.starts_with(|next: char| next.is_ascii_digit())
    })
}

/// How much sooner the victim ends, as a row of the answer says: likely, at least and at most, s.
pub fn victim_seconds(row: &Value) -> [f64; 3] {
    let fields = [
        "victim_seconds",
        "victim_seconds_low",
        "victim_seconds_high",
    ];
    fields.map(|field| row[field].as_f64().unwrap_or(0.0))
}
