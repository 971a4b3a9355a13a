//! Which queries of a running application are meant, and in which JVMs of this host they run.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::{Context, Result, bail};
use unfuse_format::{
    ExecutionId, ExecutionRow, LiveMarker, ProcessRow, ProfileDir, latest_processes,
    merge_executions,
};
use unfuse_machine::priority::Process;
use unfuse_report::blame::ProofQuery;
use unfuse_report::text::list;

/// The most characters of a description in a message.
const LONGEST: usize = 40;

/// An application with JVMs that run on this host.
#[derive(Debug)]
pub(super) struct Application {
    pub(super) id: String,
    pub(super) jvms: Vec<Process>,
    /// JVMs of the application elsewhere.
    pub(super) elsewhere: usize,
    executions: Vec<ExecutionRow>,
}

/// A query that runs.
#[derive(Debug)]
pub(super) struct RunningQuery {
    pub(super) query: ProofQuery,
    /// Its start, ms since the epoch.
    pub(super) started_ms: Option<i64>,
}

impl Application {
    /// The application that writes to a profile now.
    ///
    /// # Errors
    /// If none does, or several do.
    pub(super) fn running(dir: &Path) -> Result<Self> {
        let profile = ProfileDir::open(dir)?;
        let at_work = LiveMarker::at_work(&profile);
        let processes = latest_processes(profile.read::<ProcessRow>()?.rows);
        let mut own: Vec<&ProcessRow> = processes
            .iter()
            .filter(|row| at_work.contains(&format!("{}-{}", row.host, row.pid)))
            .collect();
        own.sort_by_key(|row| &row.app);
        let Some(app) = own.first().map(|row| row.app.clone()) else {
            bail!(
                "{}: no JVM of this host writes to this profile now; --prove needs a running application that `unfuse run` or \
                 `unfuse record` profiles",
                dir.display()
            );
        };
        if own.iter().any(|row| row.app != app) {
            bail!(
                "{}: several applications write to this profile; --prove needs one",
                dir.display()
            );
        }
        if app.is_empty() {
            bail!(
                "{}: the JVM that writes to it runs no Spark application",
                dir.display()
            );
        }
        // Whoever wrote the profile names the processes: only their own are touched. Root's recorder checks whose they are.
        let owner = fs::metadata(dir).context("cannot read the profile")?.uid();
        let jvms = own.iter().filter_map(|row| {
            let process = Process::find(row.pid)?;
            let uid = fs::metadata(format!("/proc/{}", row.pid)).ok()?.uid();
            (uid == owner || owner == 0).then_some(process)
        });
        let jvms: Vec<Process> = jvms.collect();
        if jvms.is_empty() {
            bail!(
                "{}: the JVMs that write to it are not those of the profile's owner, or run in another container",
                dir.display()
            );
        }
        let of_app = processes.iter().filter(|row| row.app == app);
        let elsewhere = of_app.filter(|row| row.ended == Some(false)).count();
        let executions = merge_executions(profile.read::<ExecutionRow>()?.rows);
        let of_app = |(id, row): (ExecutionId, ExecutionRow)| (id.app == app).then_some(row);
        Ok(Self {
            executions: executions.into_iter().filter_map(of_app).collect(),
            elsewhere: elsewhere.saturating_sub(jvms.len()),
            id: app,
            jvms,
        })
    }

    /// The running query with this id or description.
    ///
    /// # Errors
    /// If there is none, or several have the description.
    pub(super) fn query(&self, name: &str) -> Result<RunningQuery> {
        let is_meant = |row: &&ExecutionRow| {
            row.execution.to_string() == name || (!name.is_empty() && row.description == name)
        };
        let known: Vec<&ExecutionRow> = self.executions.iter().filter(is_meant).collect();
        let runs = |row: &&ExecutionRow| row.ended_ms.is_none();
        let mut running = known.iter().copied().filter(runs);
        match (running.next(), running.next()) {
            (Some(row), None) => Ok(RunningQuery {
                query: ProofQuery {
                    execution: row.execution,
                    description: row.description.clone(),
                },
                started_ms: row.started_ms,
            }),
            (Some(_), Some(_)) => bail!(
                "several running queries are called {name:?}; give the id of one: {}",
                self.running_queries()
            ),
            (None, _) if known.is_empty() => bail!(
                "no query {name} runs (a new one is known after some seconds); these do: {}",
                self.running_queries()
            ),
            (None, _) => bail!(
                "query {name} has ended; --prove needs a running one, and these run: {}",
                self.running_queries()
            ),
        }
    }

    fn running_queries(&self) -> String {
        let running = self.executions.iter().filter(|row| row.ended_ms.is_none());
        let names: Vec<String> = running
            .map(|row| {
                let description = unfuse_report::text::shorten(&row.description, LONGEST);
                format!("{} ({description})", row.execution)
            })
            .collect();
        list(&names)
    }
}
