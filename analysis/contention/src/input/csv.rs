//! CSV files of any engine: the tables of the contract as text (docs/contention.md describes the columns).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use super::{Builder, Input};
use crate::{
    Capacity, Heartbeat, HostId, HostWindow, Kind, Query, QueryId, Resource, Span, Stage, StageId,
    TaskId,
};

/// Why CSV files could not be read.
#[derive(Debug, Error)]
pub enum CsvError {
    /// A file cannot be read, or a row has the wrong columns or no number where one must be.
    #[error("{}: {reason}", path.display())]
    Row {
        /// The file.
        path: PathBuf,
        /// What is wrong, with the line.
        reason: String,
    },
    /// A word that is none of those expected.
    #[error("{}, row {row}: {what} {word:?} is not known; there are: {known}", path.display())]
    Word {
        /// The file.
        path: PathBuf,
        /// Which row after the heading, from 1.
        row: usize,
        /// What the word should be.
        what: &'static str,
        /// The word.
        word: String,
        /// What it could be.
        known: String,
    },
    /// A row that cannot have happened.
    #[error("{}, row {row}: {reason}", path.display())]
    Impossible {
        /// The file.
        path: PathBuf,
        /// Which row after the heading, from 1.
        row: usize,
        /// Why not.
        reason: String,
    },
    /// There are no rows.
    #[error("{}: no rows", .0.display())]
    Empty(PathBuf),
}

#[derive(Deserialize)]
struct IntervalRow {
    host: String,
    query: String,
    stage: u32,
    #[serde(default)]
    attempt: u32,
    task: String,
    kind: String,
    start_ns: i64,
    end_ns: i64,
    units: f64,
    blocked_ns: i64,
}

#[derive(Deserialize)]
struct HostRow {
    host: String,
    resource: String,
    start_ns: i64,
    end_ns: i64,
    units: f64,
    capacity: Option<f64>,
}

#[derive(Deserialize)]
struct QueryRow {
    query: String,
    label: Option<String>,
    user: Option<String>,
    pool: Option<String>,
    weight: Option<f64>,
}

#[derive(Deserialize)]
struct StageRow {
    query: String,
    stage: u32,
    #[serde(default)]
    attempt: u32,
    /// Numbers with spaces between them.
    parents: Option<String>,
}

/// The file that makes a directory one of CSV files.
pub const INTERVALS_CSV: &str = "intervals.csv";

/// Reads `intervals.csv` and, where they are there, `hosts.csv`, `queries.csv` and `stages.csv`.
///
/// # Errors
/// [`CsvError`] with the file and the row. Amounts that cannot be are left to [`Workload::new`](crate::Workload::new).
pub fn from_csv(dir: &Path) -> Result<Input, CsvError> {
    let path = dir.join(INTERVALS_CSV);
    let rows: Vec<IntervalRow> = read(&path)?;
    if rows.is_empty() {
        return Err(CsvError::Empty(path));
    }
    let stages_path = dir.join("stages.csv");
    let stages: Vec<StageRow> = read_if_there(&stages_path)?;
    let queries: Vec<QueryRow> = read_if_there(&dir.join("queries.csv"))?;
    let hosts_path = dir.join("hosts.csv");
    let hosts: Vec<HostRow> = read_if_there(&hosts_path)?;
    let mut reader = Reader::default();
    reader.queries(&queries, &rows);
    reader.stages(&stages_path, &stages, &rows)?;
    let mut empty = 0;
    for (at, row) in rows.into_iter().enumerate() {
        check(&path, at, (row.start_ns, row.end_ns), row.units)?;
        if !(0..=row.end_ns - row.start_ns).contains(&row.blocked_ns) {
            return Err(CsvError::Impossible {
                path,
                row: at + 1,
                reason: format!(
                    "blocked for {} ns in {} ns",
                    row.blocked_ns,
                    row.end_ns - row.start_ns
                ),
            });
        }
        empty += usize::from(row.start_ns == row.end_ns);
        let Some(kind) = Kind::of_word(&row.kind) else {
            let known = Kind::ALL.map(Kind::word).join(", ");
            return Err(word(&path, at, "kind", row.kind, known));
        };
        reader.interval(row, kind);
    }
    if empty > 0 {
        reader.builder.notes.push(format!(
            "{empty} intervals have no length and are left out: no rate can be told"
        ));
    }
    for (at, row) in hosts.into_iter().enumerate() {
        check(&hosts_path, at, (row.start_ns, row.end_ns), row.units)?;
        if row.capacity.is_some_and(|c| !(c.is_finite() && c > 0.0)) {
            return Err(CsvError::Impossible {
                path: hosts_path,
                row: at + 1,
                reason: "a capacity must be more than 0, or be left empty".to_owned(),
            });
        }
        if row.start_ns == row.end_ns {
            continue;
        }
        let resource = Resource::ALL
            .into_iter()
            .find(|resource| resource.name().eq_ignore_ascii_case(&row.resource));
        let Some(resource) = resource else {
            let known = Resource::ALL.map(Resource::name).join(", ");
            return Err(word(&hosts_path, at, "resource", row.resource, known));
        };
        reader.host(&row, resource);
    }
    for ((host, resource), per_second) in std::mem::take(&mut reader.capacities) {
        reader.builder.tables.capacities.push(Capacity {
            host,
            resource,
            per_second,
        });
    }
    if stages.is_empty() {
        reader.builder.notes.push(
            "no stages.csv: what reads from what is not known, so the longest stage of a query stands for its critical \
             path; `--stages all` counts all of them"
                .to_owned(),
        );
    }
    if !hosts_path.exists() {
        reader.builder.notes.push(
            "no hosts.csv: capacities are what was used, and no process outside the queries is seen"
                .to_owned(),
        );
    }
    Ok(reader.builder.finish())
}

#[derive(Default)]
struct Reader {
    builder: Builder,
    names: BTreeMap<String, QueryId>,
    tasks: BTreeMap<(StageId, HostId, String), TaskId>,
    capacities: BTreeMap<(HostId, Resource), f64>,
}

impl Reader {
    /// Numbers stay what they are; other names are numbered after the largest.
    fn queries(&mut self, rows: &[QueryRow], intervals: &[IntervalRow]) {
        let names: Vec<&String> = intervals
            .iter()
            .map(|row| &row.query)
            .chain(rows.iter().map(|row| &row.query))
            .collect();
        let taken: BTreeSet<u64> = names.iter().filter_map(|name| number(name)).collect();
        let mut next = taken.last().map_or(0, |largest| largest.wrapping_add(1));
        for name in names {
            if self.names.contains_key(name) {
                continue;
            }
            let number = number(name).unwrap_or_else(|| {
                while taken.contains(&next) {
                    next = next.wrapping_add(1);
                }
                let free = next;
                next = next.wrapping_add(1);
                free
            });
            self.names.insert(name.clone(), QueryId(number));
        }
        for row in rows {
            self.builder.query(Query {
                id: self.names[&row.query],
                name: row.query.clone(),
                application: String::new(),
                label: match row.label.as_deref().unwrap_or_default() {
                    "" => format!("query {}", row.query),
                    label => format!("query {}: {label}", row.query),
                },
                user: row.user.clone().unwrap_or_default(),
                pool: row.pool.clone().unwrap_or_default(),
                weight: row.weight.unwrap_or(1.0),
            });
        }
        for (name, id) in &self.names {
            self.builder.query(Query {
                id: *id,
                name: name.clone(),
                application: String::new(),
                label: format!("query {name}"),
                user: String::new(),
                pool: String::new(),
                weight: 1.0,
            });
        }
    }

    /// A stage lasts as long as the rows of its tasks; one without rows takes no time, but leads to its parents.
    fn stages(
        &mut self,
        path: &Path,
        rows: &[StageRow],
        intervals: &[IntervalRow],
    ) -> Result<(), CsvError> {
        let mut first: BTreeMap<QueryId, i64> = BTreeMap::new();
        let mut spans: BTreeMap<StageId, Span> = BTreeMap::new();
        for row in intervals {
            let span = spans.entry(self.stage_id(row)).or_insert(Span {
                start: row.start_ns,
                end: row.end_ns,
            });
            span.start = span.start.min(row.start_ns);
            span.end = span.end.max(row.end_ns);
            let first = first.entry(self.names[&row.query]).or_insert(row.start_ns);
            *first = row.start_ns.min(*first);
        }
        let mut parents: BTreeMap<StageId, Vec<u32>> = BTreeMap::new();
        for (at, row) in rows.iter().enumerate() {
            let numbers = row.parents.as_deref().unwrap_or_default();
            let numbers: Result<Vec<u32>, _> = numbers.split_whitespace().map(str::parse).collect();
            let numbers = numbers.map_err(|_| CsvError::Impossible {
                path: path.to_owned(),
                row: at + 1,
                reason: "parents must be numbers of stages with spaces between them".to_owned(),
            })?;
            // A query without rows did nothing that is known.
            let known = self.names.get(&row.query);
            let Some((query, first)) = known.and_then(|query| Some((query, first.get(query)?)))
            else {
                continue;
            };
            let id = StageId {
                query: *query,
                stage: row.stage,
                attempt: row.attempt,
            };
            parents.entry(id).or_default().extend(numbers);
            spans.entry(id).or_insert(Span {
                start: *first,
                end: *first,
            });
        }
        for (id, span) in spans {
            self.builder.stage(Stage {
                id,
                parents: parents.remove(&id).unwrap_or_default(),
                span,
            });
        }
        Ok(())
    }

    fn stage_id(&self, row: &IntervalRow) -> StageId {
        StageId {
            query: self.names[&row.query],
            stage: row.stage,
            attempt: row.attempt,
        }
    }

    fn interval(&mut self, row: IntervalRow, kind: Kind) {
        let host = self.builder.host(&row.host);
        let stage = self.stage_id(&row);
        // Engines may number the tasks of each host anew.
        let key = (stage, host, row.task);
        let task = match self.tasks.get(&key) {
            Some(task) => *task,
            None => self.builder.task(stage, host, None, true),
        };
        self.tasks.insert(key, task);
        let span = Span {
            start: row.start_ns,
            end: row.end_ns,
        };
        self.builder
            .interval(task, kind, span, row.units, row.blocked_ns);
    }

    fn host(&mut self, row: &HostRow, resource: Resource) {
        let host = self.builder.host(&row.host);
        let span = Span {
            start: row.start_ns,
            end: row.end_ns,
        };
        if let Some(per_second) = row.capacity {
            let known = self
                .capacities
                .entry((host, resource))
                .or_insert(per_second);
            *known = known.max(per_second);
        }
        self.builder.tables.host_windows.push(HostWindow {
            host,
            resource,
            span,
            units: row.units,
        });
        self.builder.tables.heartbeats.push(Heartbeat {
            host,
            at: row.end_ns,
        });
    }
}

/// The number that a name is; `01` is a name.
fn number(name: &str) -> Option<u64> {
    let number = name.parse::<u64>().ok()?;
    (number.to_string() == name).then_some(number)
}

fn check(path: &Path, at: usize, (start, end): (i64, i64), units: f64) -> Result<(), CsvError> {
    let reason = if start < 0 || end < start {
        format!("it begins at {start} ns and ends at {end} ns")
    } else if !(units.is_finite() && units >= 0.0) {
        format!("{units} is no possible amount")
    } else {
        return Ok(());
    };
    Err(CsvError::Impossible {
        path: path.to_owned(),
        row: at + 1,
        reason,
    })
}

fn read_if_there<Row: DeserializeOwned>(path: &Path) -> Result<Vec<Row>, CsvError> {
    if path.exists() {
        read(path)
    } else {
        Ok(Vec::new())
    }
}

fn read<Row: DeserializeOwned>(path: &Path) -> Result<Vec<Row>, CsvError> {
    let wrong = |error: csv::Error| CsvError::Row {
        path: path.to_owned(),
        reason: error.to_string(),
    };
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .comment(Some(b'#'))
        .from_path(path)
        .map_err(wrong)?;
    reader.deserialize().map(|row| row.map_err(wrong)).collect()
}

fn word(path: &Path, at: usize, what: &'static str, word: String, known: String) -> CsvError {
    CsvError::Word {
        path: path.to_owned(),
        row: at + 1,
        what,
        word,
        known,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;
    use crate::{Graph, Options, Workload};

    const HEAD: &str = "host,query,stage,attempt,task,kind,start_ns,end_ns,units,blocked_ns";

    /// What is read of these files, or why not.
    fn read(files: &[(&str, &str)]) -> Result<Workload, String> {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(dir.path().join(name), text).unwrap();
        }
        let input = from_csv(dir.path()).map_err(|e| e.to_string())?;
        Workload::new(input.tables).map_err(|e| e.to_string())
    }

    #[test]
    fn names_that_read_as_numbers_stay_apart() {
        let rows = ["1", "01", "+1", "18446744073709551615", "a", "b"]
            .map(|query| format!("\nh,{query},0,0,0,cpu,0,10,1e-9,0"));
        let workload = read(&[(INTERVALS_CSV, &format!("{HEAD}{}", rows.concat()))]).unwrap();
        let ids: BTreeSet<QueryId> = workload.tables().queries.iter().map(|q| q.id).collect();
        assert_eq!(ids.len(), 6);
    }

    #[test]
    fn a_critical_path_leads_through_stages_without_rows() {
        let intervals = format!("{HEAD}\nh,q,0,0,0,cpu,0,50,1e-9,0\nh,q,2,0,1,cpu,60,90,1e-9,0");
        let stages = "query,stage,attempt,parents\nq,2,0,1\nq,1,0,0";
        let workload = read(&[(INTERVALS_CSV, &intervals), ("stages.csv", stages)]).unwrap();
        let query = workload.tables().queries[0].id;
        let path = crate::critical_path(&workload, query);
        let path: Vec<u32> = path.iter().map(|stage| stage.stage).collect();
        assert_eq!(path, [0, 1, 2]);
        assert_eq!(workload.span_of(query).unwrap(), Span { start: 0, end: 90 });
        let wrong = "query,stage,attempt,parents\nq,2,0,\"0,1\"";
        let error = read(&[(INTERVALS_CSV, &intervals), ("stages.csv", wrong)]);
        assert!(error.unwrap_err().contains("stages.csv, row 1: parents"));
    }

    proptest! {
        #[test]
        fn what_is_read_is_a_workload(
            rows in proptest::collection::vec(
                (0u8..3, 0u8..3, 0u8..2, 0u8..9, 0usize..9, 0i64..50, 0i64..50, 0.0f64..9.0, 0.0f64..1.0),
                1..30,
            ),
        ) {
            let dir = tempfile::tempdir().unwrap();
            let mut text = HEAD.to_owned();
            for (host, query, stage, task, kind, start, length, units, blocked) in rows {
                let kind = Kind::ALL[kind].word();
                let (end, blocked) = (start + length, (blocked * length as f64) as i64);
                text += &format!(
                    "\nh{host},q{query},{stage},0,{task},{kind},{start},{end},{units},{blocked}"
                );
            }
            fs::write(dir.path().join(INTERVALS_CSV), text).unwrap();
            let input = from_csv(dir.path()).unwrap();
            let workload = Workload::new(input.tables).unwrap();
            let graph = Graph::build(&workload, &Options::default());
            for path in graph.explanations() {
                prop_assert!(path.weight.is_finite() && path.seconds.is_finite());
            }
        }

        #[test]
        fn no_text_panics(text in "[\\PC\n,\"0-9a-z-]*") {
            let dir = tempfile::tempdir().unwrap();
            fs::write(dir.path().join(INTERVALS_CSV), format!("{HEAD}\n{text}")).unwrap();
            if let Ok(input) = from_csv(dir.path()) {
                let _ = Workload::new(input.tables);
            }
        }
    }
}
