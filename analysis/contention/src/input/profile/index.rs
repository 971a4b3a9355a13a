//! The stages of a profile, which decide the rows of its large tables that an answer needs.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use unfuse_format::{
    Bounds, CachedRow, Columns, FormatError, HostRow, IntervalRow, OutsideRow, ProfileDir,
    SampleRow, StageAttempt, StageRow, Table, TaskRow, merge_stages,
};
use unfuse_postprocess::{Profile, StackMeanings};

use super::needed::RowsNeeded;
use super::possible::{self, is_time};
use super::recorded::read;
use super::{NO_QUERY, PER_APPLICATION, application, ns};
use crate::input::{cpu_sets, limits, neighbours::Neighbours, pressure};
use crate::{QueryId, Span};

/// Rows of stages that ran this close to a victim's stages can share its windows: waits for slots are summed in buckets
/// of 2 s, and the driver's times are in ms; ns.
const MARGIN: i64 = 3_000_000_000;
/// The same for stages of other applications, whose drivers' clocks may differ, ns.
const MARGIN_OF_OTHERS: i64 = 600_000_000_000;

/// The stages of a profile. There are few of them, unlike rows of tasks and samples.
pub struct StageIndex<'a> {
    pub(super) profile: &'a Profile,
    pub(super) dir: ProfileDir,
    pub(super) stages: BTreeMap<StageAttempt, StageRow>,
    /// Activity of the tasks of each stage, including stages that the driver did not report.
    tasks: BTreeMap<StageAttempt, Activity>,
    pub(super) hosts: Vec<HostRow>,
    /// The same names and ids in all answers.
    pub(super) neighbours: Neighbours,
    pub(super) cached: Vec<CachedRow>,
    /// In order; a query's number contains the index of its application.
    pub(super) applications: Vec<String>,
    /// By application, the last time of any row. If an application is killed while others continue, nothing records the
    /// end of its stages.
    pub(super) ends_ns: BTreeMap<String, i64>,
    /// Names of hosts in the order of their ids, so an id means the same host in all answers.
    pub(super) host_names: Vec<String>,
    is_metered: bool,
    /// Margin around a victim's time in which rows count, ns.
    margin: i64,
    /// Every stage; computed on first use.
    extents: OnceCell<Vec<Extent>>,
    pub(super) meanings: StackMeanings,
    pub(super) notes: Vec<String>,
    /// Number of impossible rows in the small tables.
    pub(super) impossible: usize,
}

/// By the number of an application.
type Spans = BTreeMap<u32, Span>;

fn widen(spans: &mut Spans, app: u32, span: Span) {
    let known = spans.entry(app).or_insert(span);
    *known = known.hull(span);
}

/// When a stage ran, and how many rows it has.
struct Extent {
    stage: StageAttempt,
    /// The number of its application.
    app: u32,
    /// None for a stage that the driver did not report.
    query: Option<QueryId>,
    /// None if unknown.
    span: Option<Span>,
    /// Approximate number of rows of its tasks and samples.
    rows: u64,
}

/// Activity of a stage's tasks.
#[derive(Debug, Clone, Copy)]
struct Activity {
    span: Span,
    rows: u64,
}

impl Activity {
    fn add(&mut self, other: Self) {
        self.span = self.span.hull(other.span);
        self.rows += other.rows;
    }
}

type ByStage = BTreeMap<StageAttempt, Activity>;

/// The columns with the times of tasks.
struct Times {
    attempt: &'static str,
    start: &'static str,
    end: &'static str,
    ns_per_unit: i64,
}

const OF_TASKS: Times = Times {
    attempt: "attempt",
    start: "launched_ms",
    end: "finished_ms",
    ns_per_unit: 1_000_000,
};
const OF_INTERVALS: Times = Times {
    attempt: "attempt",
    start: "start_ns",
    end: "end_ns",
    ns_per_unit: 1,
};
const OF_SAMPLES: Times = Times {
    attempt: "stage_attempt",
    ..OF_INTERVALS
};

impl Times {
    /// Reads the activity of each stage from a table.
    fn read<T: Table>(&self, dir: &ProfileDir) -> Result<ByStage, FormatError> {
        let columns = ["app", "stage", self.attempt, self.start, self.end];
        let add = |sums: &mut ByStage, parts: &[Columns]| {
            parts.iter().try_for_each(|rows| self.add(sums, rows))
        };
        let read = dir.fold::<T, ByStage>(&columns, &Bounds::ALL, ByStage::new, add)?;
        let mut sums = ByStage::new();
        for (stage, activity) in read.rows.into_iter().flatten() {
            insert(&mut sums, stage, activity);
        }
        Ok(sums)
    }

    /// Adds the rows of a segment. Rows of a stage mostly follow each other.
    fn add(&self, sums: &mut ByStage, rows: &Columns) -> Result<(), String> {
        let apps = rows.texts("app")?;
        let (stages, attempts) = (rows.i32s("stage")?, rows.i32s(self.attempt)?);
        let (starts, ends) = (rows.i64s(self.start)?, rows.i64s(self.end)?);
        let mut last: Option<(StageAttempt, Activity)> = None;
        for row in 0..rows.rows() {
            let (Some(stage), Some(attempt)) = (stages.get(row), attempts.get(row)) else {
                continue;
            };
            let times = [starts.or_zero(row), ends.or_zero(row)];
            let [start, end] = times.map(|time| time.saturating_mul(self.ns_per_unit));
            if stage < 0 || attempt < 0 || !is_time(start) || !is_time(end) {
                continue;
            }
            let activity = Activity {
                span: Span {
                    start,
                    end: end.max(start),
                },
                rows: 1,
            };
            let app = apps.get(row);
            match &mut last {
                Some((known, sum)) if known.is_of(app, stage) && known.attempt == attempt => {
                    sum.add(activity);
                }
                _ => {
                    let stage = StageAttempt::new(app, stage, attempt);
                    if let Some((stage, sum)) = last.replace((stage, activity)) {
                        insert(sums, stage, sum);
                    }
                }
            }
        }
        if let Some((stage, sum)) = last {
            insert(sums, stage, sum);
        }
        Ok(())
    }
}

fn insert(sums: &mut ByStage, stage: StageAttempt, activity: Activity) {
    sums.entry(stage)
        .and_modify(|sum| sum.add(activity))
        .or_insert(activity);
}

impl<'a> StageIndex<'a> {
    /// Reads the small tables of a profile, and from the large ones when tasks of each stage were active.
    ///
    /// # Errors
    /// If the profile cannot be read.
    pub fn read(profile: &'a Profile) -> Result<Self, FormatError> {
        let dir = ProfileDir::open(profile.path())?;
        let mut notes = Vec::new();
        let mut stages = merge_stages(read(&dir, &mut notes)?);
        let mut hosts: Vec<HostRow> = read(&dir, &mut notes)?;
        let mut cached: Vec<CachedRow> = read(&dir, &mut notes)?;
        let mut outside: Vec<OutsideRow> = read(&dir, &mut notes)?;
        let impossible = possible::keep_small(&mut stages, &mut hosts, &mut outside, &mut cached);
        let mut tasks = OF_TASKS.read::<TaskRow>(&dir)?;
        let intervals = OF_INTERVALS.read::<IntervalRow>(&dir)?;
        let is_metered = !intervals.is_empty();
        for (stage, activity) in intervals {
            insert(&mut tasks, stage, activity);
        }
        let apps = stages.keys().chain(tasks.keys());
        let apps: BTreeSet<&str> = apps.map(|stage| stage.app.as_str()).collect();
        let applications = apps.into_iter().map(str::to_owned).collect();
        notes.extend(cpu_sets::apply(&mut hosts, &mut outside));
        let neighbours = Neighbours::new(&outside, &hosts);
        notes.extend(pressure::notes(&hosts, &outside));
        notes.extend(limits::apply(&mut hosts));
        let longest = hosts.iter().map(|row| row.end_ns - row.start_ns).max();
        let mut ends_ns = BTreeMap::new();
        for row in &hosts {
            extend(&mut ends_ns, &row.app, row.end_ns);
        }
        for (stage, activity) in &tasks {
            extend(&mut ends_ns, &stage.app, activity.span.end);
        }
        // Only stages and blocks without an end last as long as their application.
        if !cached.is_empty() || stages.values().any(|stage| stage.completed_ms.is_none()) {
            for (stage, activity) in OF_SAMPLES.read::<SampleRow>(&dir)? {
                extend(&mut ends_ns, &stage.app, activity.span.end);
            }
        }
        Ok(Self {
            profile,
            dir,
            stages,
            tasks,
            hosts,
            neighbours,
            cached,
            applications,
            ends_ns,
            host_names: Vec::new(),
            is_metered,
            margin: MARGIN + longest.unwrap_or(0).max(0),
            extents: OnceCell::new(),
            meanings: StackMeanings::default(),
            notes,
            impossible,
        })
    }

    /// When the first task began, ns since the epoch.
    pub fn begun_ns(&self) -> i64 {
        let starts = self.tasks.values().map(|activity| activity.span.start);
        starts.min().unwrap_or(0)
    }

    /// Whether any task reported what it used.
    pub fn is_metered(&self) -> bool {
        self.is_metered
    }

    /// The query with the name that `--victim` takes; `None` if the profile has no such query, or has several
    /// applications and the name is not a number.
    pub fn query(&self, name: &str) -> Option<QueryId> {
        let of_stage = |(stage, row): (&StageAttempt, &StageRow)| {
            Some(self.query_id(&stage.app, row.execution)).filter(|id| id.0.to_string() == name)
        };
        self.stages.iter().find_map(of_stage)
    }

    /// The queries with a stage in a span.
    pub fn queries_within(&self, span: Span) -> BTreeSet<QueryId> {
        let overlaps = |of: Span| of.start < span.end && of.end >= span.start;
        self.extents()
            .iter()
            .filter(|extent| extent.span.is_none_or(overlaps))
            .filter_map(|extent| extent.query)
            .collect()
    }

    /// The query of each SQL execution of an application; `None` is its work outside executions.
    pub fn executions(&self) -> BTreeMap<(String, Option<i64>), QueryId> {
        let of_stage = |(stage, row): (&StageAttempt, &StageRow)| {
            let query = self.query_id(&stage.app, row.execution);
            ((stage.app.clone(), row.execution), query)
        };
        self.stages.iter().map(of_stage).collect()
    }

    /// Divides victims into parts, in order of their start. An answer on a part needs at most `most_rows` rows, or the part
    /// has one victim that needs at most `most_of_one`. Also returns the victims that need more.
    pub fn parts(
        &self,
        victims: &BTreeSet<QueryId>,
        most_rows: u64,
        most_of_one: u64,
    ) -> (Vec<BTreeSet<QueryId>>, BTreeSet<QueryId>) {
        let mut in_time: Vec<(QueryId, Spans)> = self.spans_of(victims).into_iter().collect();
        in_time.sort_by_key(|(_, spans)| spans.values().map(|span| span.start).min());
        let extents = self.extents();
        let rows = |stages: &[usize]| {
            let rows = stages.iter().map(|at| extents[*at].rows);
            rows.fold(0, u64::saturating_add)
        };
        let mut parts: Vec<BTreeSet<QueryId>> = Vec::new();
        let mut too_large = BTreeSet::new();
        // The stages that the last part needs, and their rows.
        let (mut held, mut reached) = (BTreeSet::new(), 0u64);
        for (query, spans) in in_time {
            let stages = 0..extents.len();
            let beside: Vec<usize> = stages
                .filter(|at| self.is_beside(&extents[*at], &spans))
                .collect();
            let new: Vec<usize> = beside
                .iter()
                .copied()
                .filter(|at| !held.contains(at))
                .collect();
            let with_it = reached.saturating_add(rows(&new));
            match parts.last_mut() {
                Some(part) if with_it <= most_rows => {
                    part.insert(query);
                    held.extend(new);
                    reached = with_it;
                }
                _ if rows(&beside) > most_of_one => drop(too_large.insert(query)),
                _ => {
                    parts.push(BTreeSet::from([query]));
                    reached = rows(&beside);
                    held = beside.into_iter().collect();
                }
            }
        }
        (parts, too_large)
    }

    /// When each of some victims ran.
    fn spans_of(&self, victims: &BTreeSet<QueryId>) -> BTreeMap<QueryId, Spans> {
        let mut spans: BTreeMap<QueryId, Spans> = BTreeMap::new();
        for extent in self.extents() {
            if let Some((query, span)) = extent.query.zip(extent.span)
                && victims.contains(&query)
            {
                widen(spans.entry(query).or_default(), extent.app, span);
            }
        }
        spans
    }

    /// The stages that ran at the same time as victims.
    pub(super) fn needed(&self, victims: &BTreeSet<QueryId>) -> RowsNeeded {
        let spans = self.spans_of(victims);
        let is_needed = |extent: &&Extent| {
            let mut spans = spans.values();
            extent.span.is_none() || spans.any(|spans| self.is_beside(extent, spans))
        };
        let needed = self.extents().iter().filter(is_needed);
        RowsNeeded::Stages(needed.map(|extent| extent.stage.clone()).collect())
    }

    /// Whether a stage's rows can share windows with tasks that ran in spans.
    fn is_beside(&self, extent: &Extent, spans: &Spans) -> bool {
        let Some(span) = extent.span else {
            return true;
        };
        spans.iter().any(|(app, victim)| {
            let margin = match *app == extent.app {
                true => self.margin,
                false => self.margin + MARGIN_OF_OTHERS,
            };
            span.start <= victim.end.saturating_add(margin)
                && victim.start.saturating_sub(margin) <= span.end
        })
    }

    /// Every stage, in order.
    fn extents(&self) -> &[Extent] {
        self.extents.get_or_init(|| {
            let mut samples: HashMap<(&str, i32, i32), u64> = HashMap::new();
            for (group, weight) in self.profile.groups.iter().chain(&self.profile.waits) {
                if let Some((stage, attempt)) = group.stage.zip(group.attempt) {
                    let sum = samples.entry((&group.app, stage, attempt)).or_default();
                    *sum = sum.saturating_add(weight.samples);
                }
            }
            let stages: BTreeSet<&StageAttempt> =
                self.stages.keys().chain(self.tasks.keys()).collect();
            let extent = |stage: &StageAttempt| {
                let row = self.stages.get(stage);
                let samples = samples.get(&(&*stage.app, stage.stage, stage.attempt));
                let tasks = self.tasks.get(stage).map_or(0, |activity| activity.rows);
                Extent {
                    app: application(self.query_id(&stage.app, None)),
                    query: row.map(|row| self.query_id(&stage.app, row.execution)),
                    span: self.span_of(stage, row),
                    rows: tasks.saturating_add(samples.copied().unwrap_or(0)),
                    stage: stage.clone(),
                }
            };
            stages.into_iter().map(extent).collect()
        })
    }

    /// From the submission of a stage, or the start of its first task, to the end of both; `None` if unknown.
    fn span_of(&self, stage: &StageAttempt, row: Option<&StageRow>) -> Option<Span> {
        let reported = row.and_then(|row| {
            Some(Span {
                start: ns(row.submitted_ms?),
                end: self.end_of(stage, row),
            })
        });
        let active = self.tasks.get(stage).map(|activity| activity.span);
        reported.into_iter().chain(active).reduce(Span::hull)
    }

    /// The end of a submitted stage. Without a reported completion, the time of its application's last row.
    pub(super) fn end_of(&self, stage: &StageAttempt, row: &StageRow) -> i64 {
        let last = || self.ends_ns.get(&stage.app).copied().unwrap_or(0);
        let end = row.completed_ms.map_or_else(last, ns);
        end.max(ns(row.submitted_ms.unwrap_or(0)))
    }

    /// The number of a SQL execution, or of what an application does outside them.
    pub(super) fn query_id(&self, app: &str, execution: Option<i64>) -> QueryId {
        let position = self.applications.iter().position(|name| name == app);
        let number = execution.map_or(NO_QUERY, |id| id.max(0).cast_unsigned().min(NO_QUERY - 1));
        QueryId(position.unwrap_or(0) as u64 * PER_APPLICATION + number)
    }
}

fn extend(ends_ns: &mut BTreeMap<String, i64>, app: &str, end_ns: i64) {
    match ends_ns.get_mut(app) {
        Some(last) => *last = end_ns.max(*last),
        None => drop(ends_ns.insert(app.to_owned(), end_ns)),
    }
}
