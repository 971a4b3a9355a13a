//! Samples of tasks whose records were traced.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use unfuse_format::{
    Bounds, FormatError, Frame, ProfileDir, SampleKind, SampleRow, StackId, StackRow,
};

use super::RecordPlace;
use crate::{RecordRef, TaskTraces};

/// The writer's name for the thread of Python processes.
const PYTHON: &str = "Python worker";

/// Finds the lines that tasks ran while they processed records. Returns the number of traced tasks with a Python
/// process.
pub(super) fn look(
    dir: &ProfileDir,
    traces: &TaskTraces,
    places: &mut BTreeMap<RecordRef, RecordPlace>,
) -> Result<usize, FormatError> {
    let followed = traces.all.iter().flat_map(|trace| &trace.sources);
    let followed: HashSet<(&str, i64)> = followed.map(|row| (&*row.app, row.task)).collect();
    let tasks: HashSet<i64> = places
        .values()
        .filter(|place| place.busy.is_some())
        .map(|place| place.task)
        .collect();
    let columns = ["app", "kind", "task", "thread"];
    let samples = dir.read_chosen::<SampleRow>(&columns, &Bounds::ALL, |rows| {
        let (apps, kinds) = (rows.texts("app")?, rows.texts("kind")?);
        let (ids, threads) = (rows.i64s("task")?, rows.texts("thread")?);
        let is_of_task = |row| {
            let Some(task) = ids.get(row) else {
                return false;
            };
            let is_followed =
                || threads.get(row) == PYTHON && followed.contains(&(apps.get(row), task));
            SampleKind::from(kinds.get(row)) == SampleKind::Cpu
                && (tasks.contains(&task) || is_followed())
        };
        Ok((0..rows.rows()).map(is_of_task).collect())
    })?;
    let python = samples.rows.iter().filter(|row| row.thread == PYTHON);
    let python: HashSet<(&str, Option<i64>)> = python.map(|row| (&*row.app, row.task)).collect();
    let stacks: HashSet<StackId> = samples.rows.iter().map(|row| row.stack).collect();
    let names = dir.read_chosen::<StackRow>(&["stack"], &Bounds::ALL, |rows| {
        let ids = rows.i64s("stack")?;
        let is_wanted = |row| stacks.contains(&StackId(ids.or_zero(row)));
        Ok((0..rows.rows()).map(is_wanted).collect())
    })?;
    let names = names.rows.iter();
    let names: HashMap<StackId, Option<String>> = names
        .map(|row| (row.stack, hot_line(&row.frames)))
        .collect();
    for place in places.values_mut() {
        let Some((from, to)) = place.busy else {
            continue;
        };
        let mut weights: BTreeMap<&str, f64> = BTreeMap::new();
        for row in samples
            .rows
            .iter()
            .filter(|row| row.task == Some(place.task) && row.app == place.app)
        {
            // Samples with one stack are summed over a window.
            let window = row.end_ns.saturating_sub(row.start_ns).max(1) as f64;
            let both = row
                .end_ns
                .max(row.start_ns.saturating_add(1))
                .min(to)
                .saturating_sub(row.start_ns.max(from));
            if let (true, Some(Some(name))) = (both > 0, names.get(&row.stack)) {
                let weight = row.weight_ns as f64 * both as f64 / window;
                *weights.entry(name).or_default() += weight;
            }
        }
        let all: f64 = weights.values().sum();
        let mut lines: Vec<(String, f64)> = weights
            .into_iter()
            .map(|(name, weight)| (name.to_owned(), weight / all))
            .collect();
        lines.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        place.lines = lines;
    }
    Ok(python.len())
}

/// The line of interest: that of the innermost frame which is not the JDK's, Scala's, Spark's or ours or, without one,
/// the innermost.
fn hot_line(frames: &[Arc<Frame>]) -> Option<String> {
    const LIBRARIES: [&str; 8] = [
        "io.unfuse.",
        "java.",
        "javax.",
        "jdk.",
        "sun.",
        "scala.",
        "org.apache.spark.",
        "com.sun.",
    ];
    let is_theirs = |frame: &&Arc<Frame>| {
        !frame.class.is_empty()
            && !LIBRARIES
                .iter()
                .any(|library| frame.class.starts_with(library))
    };
    let innermost = frames.iter().rev();
    let frame = innermost
        .clone()
        .find(is_theirs)
        .or(innermost.clone().next())?;
    let name = match frame.class.as_str() {
        "" => frame.method.clone(),
        class => format!("{class}.{}", frame.method),
    };
    Some(match (frame.file.as_str(), frame.line) {
        ("", _) => name,
        (file, line) if line > 0 => format!("{name} ({file}:{line})"),
        (file, _) => format!("{name} ({file})"),
    })
}
