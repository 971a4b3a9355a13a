//! What tasks share: the slots of an application with the tasks that had them, and the heap.

use std::collections::{BTreeMap, HashMap};

use unfuse_format::{ApplicationRow, ExecutionId, ExecutorRow, FormatError, HostRow};
use unfuse_postprocess::Profile;

use crate::verdict::slots_at;
use crate::{Report, TasksByStage};

/// The applications of a profile, with their executors and the tasks that these ran.
pub(crate) struct Executors {
    applications: Vec<ApplicationRow>,
    executors: Vec<ExecutorRow>,
    tasks: HashMap<String, Tasks>,
    heaps: HashMap<String, Vec<Heap>>,
}

/// The heap of a JVM.
struct Heap {
    /// Begin of its first row and end of its last one, ms since the epoch.
    span: (i64, i64),
    /// Maximum size, bytes.
    bytes: u64,
}

/// A task of another query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Other {
    /// Launch and end, ms since the epoch.
    pub(super) span: (i64, i64),
    query: Option<i64>,
}

/// Tasks of an application.
#[derive(Default)]
struct Tasks {
    /// By launch.
    all: Vec<Other>,
    /// The longest of them, ms.
    longest_ms: i64,
}

impl Executors {
    /// Reads them.
    ///
    /// # Errors
    /// If their tables cannot be read.
    pub(crate) fn new(report: &Report<'_>) -> Result<Self, FormatError> {
        Ok(Self {
            applications: report.profile.rows()?,
            executors: report.profile.rows()?,
            tasks: by_application(report.profile, &report.tasks),
            heaps: heaps(report.profile)?,
        })
    }

    /// The largest heap of an application's JVMs at some time, bytes; 0 if it is not known.
    pub(super) fn heap_bytes(&self, app: &str, (from, to): (i64, i64)) -> u64 {
        let heaps = self.heaps.get(app).into_iter().flatten();
        let heaps = heaps.filter(|heap| heap.span.0 < to && heap.span.1 > from);
        heaps.map(|heap| heap.bytes).max().unwrap_or(0)
    }

    /// Slots of an application at a time, ms since the epoch; none where no executor with cores is known.
    pub(super) fn slots(&self, app: &str, time: i64) -> Option<f64> {
        slots_at(
            self.executors.iter().filter(|row| row.app == app),
            self.applications.iter().filter(|row| row.app == app),
            time,
        )
    }

    /// Tasks of an application that are not of this query, at some time.
    pub(super) fn others(
        &self,
        app: &str,
        query: Option<i64>,
        (from, to): (i64, i64),
    ) -> Vec<Other> {
        let Some(tasks) = self.tasks.get(app) else {
            return Vec::new();
        };
        let earliest = from.saturating_sub(tasks.longest_ms);
        let first = tasks.all.partition_point(|task| task.span.0 < earliest);
        let rows = tasks.all[first..].iter();
        rows.take_while(|task| task.span.0 < to)
            .filter(|task| task.span.1 > from && task.query != query)
            .copied()
            .collect()
    }
}

/// By application: one of each JVM, because its maximum size stays the same.
fn heaps(profile: &Profile) -> Result<HashMap<String, Vec<Heap>>, FormatError> {
    let mut by_jvm: HashMap<(String, String, u32), Heap> = HashMap::new();
    for row in profile.rows::<HostRow>()? {
        let Some(bytes) = row.heap_bytes else {
            continue;
        };
        let span = (row.start_ns / 1_000_000, row.end_ns / 1_000_000);
        let heap = by_jvm.entry((row.app, row.host, row.pid));
        let heap = heap.or_insert(Heap { span, bytes });
        heap.span = (heap.span.0.min(span.0), heap.span.1.max(span.1));
        heap.bytes = heap.bytes.max(bytes);
    }
    let mut heaps: HashMap<String, Vec<Heap>> = HashMap::new();
    for ((app, ..), heap) in by_jvm {
        heaps.entry(app).or_default().push(heap);
    }
    Ok(heaps)
}

fn by_application(profile: &Profile, by_stage: &TasksByStage) -> HashMap<String, Tasks> {
    let mut by_app: HashMap<String, Tasks> = HashMap::new();
    for (stage, rows) in by_stage {
        let query = profile.stages.get(stage).and_then(|known| known.execution);
        let tasks = by_app.entry(stage.app.to_string()).or_default();
        tasks.all.extend(rows.iter().map(|task| Other {
            span: (task.launched_ms, task.finished_ms),
            query,
        }));
    }
    for tasks in by_app.values_mut() {
        tasks.all.sort_unstable_by_key(|task| task.span);
        let lengths = tasks
            .all
            .iter()
            .map(|task| task.span.1.saturating_sub(task.span.0));
        tasks.longest_ms = lengths.max().unwrap_or(0).max(0);
    }
    by_app
}

/// The name of the query that has at least half of the time of some tasks within a span.
pub(super) fn main_query(
    profile: &Profile,
    app: &str,
    others: &[Other],
    (from, to): (i64, i64),
) -> Option<String> {
    let mut by_query: BTreeMap<Option<i64>, i64> = BTreeMap::new();
    for Other { span, query } in others {
        let ms = span.1.min(to).saturating_sub(span.0.max(from)).max(0);
        let sum = by_query.entry(*query).or_default();
        *sum = sum.saturating_add(ms);
    }
    let all = by_query
        .values()
        .fold(0i64, |sum, ms| sum.saturating_add(*ms));
    let (query, most) = by_query.into_iter().max_by_key(|(_, ms)| *ms)?;
    let query = query.filter(|_| most > 0 && most >= all / 2)?;
    let name = profile.query_name(&ExecutionId::new(app, query));
    Some(format!("query {query}: {name}"))
}
