//! The use of hosts outside all tasks.
//!
//! It is computed for each whole row of a host, as for profiles: for the finer windows between, the host's use is
//! unknown and may be less or more than that of tasks. A burst of a task would be attributed to others.

use std::collections::BTreeMap;
use std::path::Path;

use super::CsvError;
use crate::input::Builder;
use crate::windows::spread;
use crate::{Heartbeat, HostId, KnownProcess, KnownUse, Resource, Span};

/// A note is only worth it if this part of the tasks' time has no rows of their host.
const MISSING: f64 = 0.01;

/// Span, index in the file, and the units of all processes together.
type Row = (Span, usize, f64);

/// Rows of hosts.
#[derive(Default)]
pub(super) struct Wholes(BTreeMap<(HostId, Resource), Vec<Row>>);

impl Wholes {
    pub(super) fn push(
        &mut self,
        host: HostId,
        resource: Resource,
        span: Span,
        index: usize,
        units: f64,
    ) {
        let rows = self.0.entry((host, resource)).or_default();
        rows.push((span, index, units));
    }

    /// Adds the use outside all tasks, and heartbeats at the begins and ends of rows. Returns a note on time of tasks
    /// without rows.
    pub(super) fn add(mut self, builder: &mut Builder, path: &Path) -> Result<(), CsvError> {
        let mut tasks = by_resource(builder);
        let mut missing = Vec::new();
        for ((host, resource), rows) in &mut self.0 {
            rows.sort_unstable_by_key(|(span, index, _)| (*span, *index));
            refuse_overlap(rows, path)?;
            let windows: Vec<Span> = rows.iter().map(|(span, ..)| *span).collect();
            let of_tasks = tasks.remove(&(*host, *resource)).unwrap_or_default();
            let used = used(&of_tasks, &windows);
            if let Some(process) = KnownProcess::external(*resource) {
                for ((span, _, units), used) in rows.iter().zip(used) {
                    let outside = units - used;
                    // The remainder of a difference of sums is rounding.
                    if outside > units * 1e-9 {
                        builder.tables.known.push(KnownUse {
                            host: *host,
                            process,
                            resource: *resource,
                            span: *span,
                            units: outside,
                        });
                    }
                }
                let name = &builder.tables.hosts[host.0 as usize].name;
                missing.extend(uncovered(&of_tasks, &windows).map(|(seconds, of)| {
                    format!("{seconds:.1} of {of:.1} s of {} on {name}", resource.name())
                }));
            }
            let ends = windows.iter().flat_map(|span| [span.start, span.end]);
            builder
                .tables
                .heartbeats
                .extend(ends.map(|at| Heartbeat { host: *host, at }));
        }
        let told = |host: &HostId| self.0.keys().any(|(known, _)| known == host);
        let untold = builder.tables.hosts.iter().filter(|host| !told(&host.id));
        missing.extend(untold.map(|host| format!("all of {}", host.name)));
        if !missing.is_empty() {
            builder.notes.push(format!(
                "{} has no rows for a part of the tasks' time ({}): processes outside the queries are not seen there",
                path.display(),
                missing.join(", ")
            ));
        }
        Ok(())
    }
}

type OfTasks = Vec<(Span, f64)>;

fn by_resource(builder: &Builder) -> BTreeMap<(HostId, Resource), OfTasks> {
    let mut tasks: BTreeMap<(HostId, Resource), OfTasks> = BTreeMap::new();
    for row in &builder.tables.intervals {
        let key = (builder.host_of(row.task), row.kind.resource());
        tasks.entry(key).or_default().push((row.span, row.units));
    }
    tasks
}

fn refuse_overlap(rows: &[Row], path: &Path) -> Result<(), CsvError> {
    for pair in rows.windows(2) {
        let [(first, a, _), (second, b, _)] = pair else {
            continue;
        };
        if second.start < first.end {
            let reason = format!(
                "it overlaps row {} of the same host and resource, so their common time would count twice; leave one of them out",
                a.min(b) + 1
            );
            return Err(CsvError::impossible(path, *a.max(b), reason));
        }
    }
    Ok(())
}

/// Use of tasks in each window.
fn used(tasks: &OfTasks, windows: &[Span]) -> Vec<f64> {
    let mut used = vec![0.0; windows.len()];
    for (span, units) in tasks {
        for (index, part) in spread(windows, *span) {
            used[index] += units * part;
        }
    }
    used
}

/// The seconds in which tasks used or waited for something outside all windows, and those inside and outside, if a note
/// is worth it.
fn uncovered(tasks: &OfTasks, windows: &[Span]) -> Option<(f64, f64)> {
    let mut spans: Vec<Span> = tasks.iter().map(|(span, _)| *span).collect();
    spans.sort_unstable();
    let mut merged: Vec<Span> = Vec::new();
    for span in spans {
        match merged.last_mut() {
            Some(last) if span.start <= last.end => *last = last.hull(span),
            _ => merged.push(span),
        }
    }
    let all: f64 = merged.iter().map(|span| span.seconds()).sum();
    let covered = merged.iter().map(|span| {
        let parts: f64 = spread(windows, *span).map(|(_, part)| part).sum();
        parts * span.seconds()
    });
    let outside = all - covered.sum::<f64>();
    (outside > all * MISSING).then_some((outside, all))
}
