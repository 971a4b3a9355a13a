//! CSV files of any engine: the input tables as text (docs/contention.md describes the columns).

mod clocks;
mod error;
mod outside;
mod rows;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use unfuse_format::counted;

pub use self::error::CsvError;
use self::outside::Wholes;
use self::rows::{HostRow, IntervalRow, QueryRow, StageRow, read, read_if_there};
use super::{Builder, Input, position};
use crate::{
    Capacity, Executor, HostId, Kind, Query, QueryId, Resource, Span, Stage, StageId, TaskId,
};

/// A directory with this file is one of CSV files.
pub const INTERVALS_CSV: &str = "intervals.csv";

/// Reads `intervals.csv` and, if they exist, `hosts.csv`, `queries.csv` and `stages.csv`.
///
/// # Errors
/// [`CsvError`] with the file and the row. Errors that no single row shows are left to
/// [`Workload::new`](crate::Workload::new).
pub fn from_csv(dir: &Path) -> Result<Input, CsvError> {
    let path = dir.join(INTERVALS_CSV);
    let mut rows: Vec<IntervalRow> = read(&path)?;
    if rows.is_empty() {
        return Err(CsvError::Empty(path));
    }
    let kinds: Result<Vec<Kind>, CsvError> = rows
        .iter()
        .enumerate()
        .map(|(index, row)| row.checked(&path, index))
        .collect();
    let kinds = kinds?;
    let hosts_path = dir.join("hosts.csv");
    let mut hosts: Vec<HostRow> = read_if_there(&hosts_path)?;
    let resources: Result<Vec<Resource>, CsvError> = hosts
        .iter()
        .enumerate()
        .map(|(index, row)| row.checked(&hosts_path, index))
        .collect();
    let resources = resources?;
    let mut reader = Reader::default();
    reader
        .builder
        .notes
        .extend(clocks::align(&mut rows, &mut hosts));
    reader.queries(&dir.join("queries.csv"), &rows)?;
    reader.stages(&dir.join("stages.csv"), &rows)?;
    let empty = rows.iter().filter(|row| row.start_ns == row.end_ns).count();
    if empty > 0 {
        reader.builder.notes.push(format!(
            "{} without length left out: they have no rate",
            counted(empty, "interval")
        ));
    }
    for (row, kind) in rows.into_iter().zip(kinds) {
        reader.interval(row, kind);
    }
    reader.blocked_for_too_long();
    if hosts_path.exists() {
        reader.hosts(&hosts_path, &hosts, &resources)?;
    } else {
        reader.builder.notes.push(
            "no hosts.csv: the capacity is what was used, and processes outside the queries are not seen"
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
}

impl Reader {
    /// Numeric names stay; others are numbered after the largest one.
    fn queries(&mut self, path: &Path, intervals: &[IntervalRow]) -> Result<(), CsvError> {
        let rows: Vec<QueryRow> = read_if_there(path)?;
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
        let mut described: BTreeMap<&str, usize> = BTreeMap::new();
        for (index, row) in rows.iter().enumerate() {
            if let Some(before) = described.insert(&row.query, index) {
                let reason = format!(
                    "query {} is described by row {} already; keep one of them",
                    row.query,
                    before + 1
                );
                return Err(CsvError::impossible(path, index, reason));
            }
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
                weight: row.weight(path, index)?,
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
        Ok(())
    }

    /// A stage spans the rows of its tasks on the host where they last longest, as no clock is valid for several hosts.
    /// A stage without rows takes no time, but leads to its parents.
    fn stages(&mut self, path: &Path, intervals: &[IntervalRow]) -> Result<(), CsvError> {
        let rows: Vec<StageRow> = read_if_there(path)?;
        if rows.is_empty() {
            self.builder.notes.push(
                "no stages.csv: the dependencies of stages are unknown, so the longest stage of a query stands for its critical path; \
                 `--stages all` counts all stages"
                    .to_owned(),
            );
        }
        let mut first: BTreeMap<QueryId, i64> = BTreeMap::new();
        let mut on_hosts: BTreeMap<(StageId, &str), Span> = BTreeMap::new();
        for row in intervals {
            let span = on_hosts
                .entry((self.stage_id(row), &row.host))
                .or_insert(row.span());
            *span = span.hull(row.span());
            let first = first.entry(self.names[&row.query]).or_insert(row.start_ns);
            *first = row.start_ns.min(*first);
        }
        let mut spans: BTreeMap<StageId, Span> = BTreeMap::new();
        for ((id, _), span) in on_hosts {
            let longest = spans.entry(id).or_insert(span);
            if span.end - span.start > longest.end - longest.start {
                *longest = span;
            }
        }
        let mut parents: BTreeMap<StageId, Vec<u32>> = BTreeMap::new();
        for (index, row) in rows.iter().enumerate() {
            let numbers = row.parents(path, index)?;
            let Some(query) = self.names.get(&row.query) else {
                let reason = format!(
                    "there is no query {}: neither {INTERVALS_CSV} nor queries.csv has it",
                    row.query
                );
                return Err(CsvError::impossible(path, index, reason));
            };
            // Nothing is known about a query without intervals.
            let Some(first) = first.get(query) else {
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
        let span = row.span();
        // Engines may number the tasks of each host from the start.
        let key = (stage, host, row.task);
        let task = match self.tasks.get(&key) {
            Some(task) => *task,
            None => self.builder.task(stage, host, Executor::default(), true),
        };
        self.tasks.insert(key, task);
        self.builder
            .interval(task, kind, span, row.units, row.blocked_ns);
    }

    /// Returns a note on tasks that were blocked for longer than they lived: of simultaneous waits only one counts
    /// (section 3.4).
    fn blocked_for_too_long(&mut self) {
        let tables = &self.builder.tables;
        let mut blocked: BTreeMap<TaskId, i64> = BTreeMap::new();
        for row in tables
            .intervals
            .iter()
            .filter(|row| !row.kind.is_for_slots())
        {
            let sum = blocked.entry(row.task).or_default();
            *sum = sum.saturating_add(row.blocked_ns);
        }
        let mut wrong = self.tasks.iter().filter_map(|((stage, host, name), task)| {
            let life = tables.tasks[position(*task)].span;
            let blocked = *blocked.get(task)?;
            (blocked > life.end - life.start).then(|| {
                let name = format!(
                    "{name} of {} on {}",
                    stage.name(),
                    tables.hosts[host.0 as usize].name
                );
                (name, blocked as f64 / 1e9, life.seconds())
            })
        });
        let Some((name, blocked, life)) = wrong.next() else {
            return;
        };
        let tasks = 1 + wrong.count();
        self.builder.notes.push(format!(
            "{} blocked for longer than the task ran, for example task {name} for {blocked:.1} s of {life:.1} s: where waits \
             overlap, {INTERVALS_CSV} should have one of them; these blocked seconds are too many",
            counted(tasks, "task")
        ));
    }

    fn hosts(
        &mut self,
        path: &Path,
        rows: &[HostRow],
        resources: &[Resource],
    ) -> Result<(), CsvError> {
        let mut wholes = Wholes::default();
        let mut capacities: BTreeMap<(HostId, Resource), f64> = BTreeMap::new();
        for (index, (row, resource)) in rows.iter().zip(resources).enumerate() {
            if row.start_ns == row.end_ns {
                continue;
            }
            let host = self.builder.host(&row.host);
            wholes.push(host, *resource, row.span(), index, row.units);
            if let Some(per_second) = row.capacity {
                let known = capacities.entry((host, *resource)).or_insert(per_second);
                *known = known.max(per_second);
            }
        }
        for ((host, resource), per_second) in capacities {
            self.builder.tables.capacities.push(Capacity {
                host,
                executor: Executor::default(),
                resource,
                per_second,
            });
        }
        wholes.add(&mut self.builder, path)
    }
}

/// The number in a name; `01` is not a number.
fn number(name: &str) -> Option<u64> {
    let number = name.parse::<u64>().ok()?;
    (number.to_string() == name).then_some(number)
}
