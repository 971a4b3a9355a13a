//! The stages of a profile: which rows of its large tables an answer needs.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use unfuse_format::{
    Bounds, CachedRow, Columns, FormatError, HostRow, IntervalRow, ProfileDir, SampleRow,
    StageAttempt, StageRow, Table, TaskRow, merge_stages,
};
use unfuse_postprocess::{By, Profile, Selection, StackMeanings, Totals};

use super::possible::{self, is_time};
use super::recorded::read;
use super::{NO_QUERY, PER_APPLICATION, application, ns};
use crate::input::limits;
use crate::{QueryId, Span};

/// Rows of stages that ran so close to a victim's can share its windows: waits for slots are summed up in parts of 2 s, and
/// the driver's times are in ms, ns.
const MARGIN: i64 = 3_000_000_000;
/// The same for stages of other applications, whose drivers' clocks may differ, ns.
const MARGIN_OF_OTHERS: i64 = 600_000_000_000;

/// The stages of a profile, which are few, where rows of tasks and samples are many.
pub struct StageIndex<'a> {
    pub(super) profile: &'a Profile,
    pub(super) dir: ProfileDir,
    pub(super) stages: BTreeMap<StageAttempt, StageRow>,
    /// Tasks of each stage, also of those that the driver did not report.
    tasks: BTreeMap<StageAttempt, Activity>,
    pub(super) hosts: Vec<HostRow>,
    pub(super) cached: Vec<CachedRow>,
    /// In order; a query's number says which of them it belongs to.
    pub(super) applications: Vec<String>,
    /// By application, the last time of any row. An application may be killed while others go on, and then nothing says that
    /// its stages ended.
    pub(super) ends_ns: BTreeMap<String, i64>,
    /// Names of hosts in the order of their ids, so that an id means the same host in all answers.
    pub(super) host_names: Vec<String>,
    is_metered: bool,
    /// How far from a victim's time rows count, ns.
    margin: i64,
    /// Every stage, once they are asked for.
    extents: OnceCell<Vec<Extent>>,
    /// Shares of operators, once they are asked for.
    operators: OnceCell<OperatorShares>,
    pub(super) meanings: StackMeanings,
    pub(super) notes: Vec<String>,
    /// Rows of the small tables that are left out.
    pub(super) impossible: usize,
}

/// The part of a stage's CPU time that an operator took, 0 to 1, by application, stage and operator.
type OperatorShares = BTreeMap<(String, i32, String), f64>;

/// By the number of an application.
type Spans = BTreeMap<u32, Span>;

fn widen(spans: &mut Spans, app: u32, span: Span) {
    let known = spans.entry(app).or_insert(span);
    *known = known.hull(span);
}

/// When a stage ran, and how much there is to read of it.
struct Extent {
    stage: StageAttempt,
    /// The number of its application.
    app: u32,
    /// None of a stage that the driver did not report.
    query: Option<QueryId>,
    /// None if nothing says when.
    span: Option<Span>,
    /// Rows of its tasks and samples, about.
    rows: u64,
}

/// What tasks of a stage did.
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

/// The columns that say when tasks of a stage were active.
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
    /// When tasks of each stage were active, by a table.
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

    /// Adds rows of a segment. Those of a stage follow each other mostly.
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

/// The rows that an answer needs.
pub(super) enum RowsNeeded {
    /// All.
    All,
    /// Those of these stages.
    Stages(BTreeSet<StageAttempt>),
}

impl RowsNeeded {
    /// Whether the rows of a stage are needed.
    pub(super) fn holds(&self, stage: &StageAttempt) -> bool {
        match self {
            Self::All => true,
            Self::Stages(stages) => stages.contains(stage),
        }
    }

    /// Drops rows of other stages. Rows of a stage follow each other mostly.
    pub(super) fn retain<R>(&self, rows: &mut Vec<R>, stage_of: fn(&R) -> (&str, i32, i32)) {
        let Self::Stages(stages) = self else { return };
        let mut last: Option<(StageAttempt, bool)> = None;
        rows.retain(|row| {
            let (app, stage, attempt) = stage_of(row);
            match &last {
                Some((known, held)) if known.is_of(app, stage) && known.attempt == attempt => *held,
                _ => {
                    let stage = StageAttempt::new(app, stage, attempt);
                    let held = stages.contains(&stage);
                    last = Some((stage, held));
                    held
                }
            }
        });
    }

    /// Bounds of the needed rows.
    pub(super) fn bounds(&self) -> Bounds {
        let Self::Stages(stages) = self else {
            return Bounds::ALL;
        };
        let ids = stages.iter().map(|stage| i64::from(stage.stage));
        let first = ids.clone().min().unwrap_or(0);
        Bounds::ALL.and("stage", first..=ids.max().unwrap_or(-1))
    }
}

impl<'a> StageIndex<'a> {
    /// Reads the small tables of a profile, and of the large ones when tasks of each stage were active.
    ///
    /// # Errors
    /// The profile cannot be read.
    pub fn read(profile: &'a Profile) -> Result<Self, FormatError> {
        let dir = ProfileDir::open(profile.path())?;
        let mut notes = Vec::new();
        let mut stages = merge_stages(read(&dir, &Bounds::ALL, &mut notes)?);
        let mut hosts: Vec<HostRow> = read(&dir, &Bounds::ALL, &mut notes)?;
        let mut cached: Vec<CachedRow> = read(&dir, &Bounds::ALL, &mut notes)?;
        let impossible = possible::keep_small(&mut stages, &mut hosts, &mut cached);
        let mut tasks = OF_TASKS.read::<TaskRow>(&dir)?;
        let intervals = OF_INTERVALS.read::<IntervalRow>(&dir)?;
        let is_metered = !intervals.is_empty();
        for (stage, activity) in intervals {
            insert(&mut tasks, stage, activity);
        }
        let apps = stages.keys().chain(tasks.keys());
        let apps: BTreeSet<&str> = apps.map(|stage| stage.app.as_str()).collect();
        let applications = apps.into_iter().map(str::to_owned).collect();
        notes.extend(limits::apply(&mut hosts));
        let longest = hosts.iter().map(|row| row.end_ns - row.start_ns).max();
        let mut ends_ns = BTreeMap::new();
        for row in &hosts {
            extend(&mut ends_ns, &row.app, row.end_ns);
        }
        for (stage, activity) in &tasks {
            extend(&mut ends_ns, &stage.app, activity.span.end);
        }
        // Only what did not end lasts as long as its application.
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
            cached,
            applications,
            ends_ns,
            host_names: Vec::new(),
            is_metered,
            margin: MARGIN + longest.unwrap_or(0).max(0),
            extents: OnceCell::new(),
            operators: OnceCell::new(),
            meanings: StackMeanings::default(),
            notes,
            impossible,
        })
    }

    /// Whether any task reported what it used.
    pub fn is_metered(&self) -> bool {
        self.is_metered
    }

    /// The query that `--victim` calls so; none where the profile has none, or has several applications and the name is not
    /// a number.
    pub fn query(&self, name: &str) -> Option<QueryId> {
        let of_stage = |(stage, row): (&StageAttempt, &StageRow)| {
            Some(self.query_id(&stage.app, row.execution)).filter(|id| id.0.to_string() == name)
        };
        self.stages.iter().find_map(of_stage)
    }

    /// The queries that had a stage in a span of time.
    pub fn queries_within(&self, span: Span) -> BTreeSet<QueryId> {
        let overlaps = |of: Span| of.start < span.end && of.end >= span.start;
        self.extents()
            .iter()
            .filter(|extent| extent.span.is_none_or(overlaps))
            .filter_map(|extent| extent.query)
            .collect()
    }

    /// The query that each SQL execution of an application is; with `None`, its work outside them.
    pub fn executions(&self) -> BTreeMap<(String, Option<i64>), QueryId> {
        let of_stage = |(stage, row): (&StageAttempt, &StageRow)| {
            let query = self.query_id(&stage.app, row.execution);
            ((stage.app.clone(), row.execution), query)
        };
        self.stages.iter().map(of_stage).collect()
    }

    /// Victims in parts, by when they began. An answer about those of a part needs at most so many rows, or has one victim that
    /// needs at most `most_of_one`. Also returns the victims that need more.
    pub fn parts(
        &self,
        victims: &BTreeSet<QueryId>,
        most_rows: u64,
        most_of_one: u64,
    ) -> (Vec<BTreeSet<QueryId>>, BTreeSet<QueryId>) {
        let mut spans: BTreeMap<QueryId, Spans> = BTreeMap::new();
        for extent in self.extents() {
            if let Some((query, span)) = extent.query.zip(extent.span)
                && victims.contains(&query)
            {
                widen(spans.entry(query).or_default(), extent.app, span);
            }
        }
        let start = |(_, spans): &(QueryId, Spans)| spans.values().map(|span| span.start).min();
        let mut in_time: Vec<(QueryId, Spans)> = spans.into_iter().collect();
        in_time.sort_by_key(start);
        let mut parts: Vec<BTreeSet<QueryId>> = Vec::new();
        let mut too_large = BTreeSet::new();
        let mut reached = Spans::new();
        for (query, spans) in in_time {
            let mut with_it = reached.clone();
            spans
                .iter()
                .for_each(|(app, span)| widen(&mut with_it, *app, *span));
            match parts.last_mut() {
                Some(part) if self.rows_beside(&with_it) <= most_rows => {
                    part.insert(query);
                    reached = with_it;
                }
                _ if self.rows_beside(&spans) > most_of_one => drop(too_large.insert(query)),
                _ => {
                    parts.push(BTreeSet::from([query]));
                    reached = spans;
                }
            }
        }
        (parts, too_large)
    }

    /// About how many rows stages have that ran beside spans.
    fn rows_beside(&self, spans: &Spans) -> u64 {
        let beside = self
            .extents()
            .iter()
            .filter(|extent| self.is_beside(extent, spans));
        beside
            .map(|extent| extent.rows)
            .fold(0, u64::saturating_add)
    }

    /// The stages that ran while some victims did.
    pub(super) fn needed(&self, victims: &BTreeSet<QueryId>) -> RowsNeeded {
        let mut spans = Spans::new();
        for extent in self.extents() {
            if let Some((query, span)) = extent.query.zip(extent.span)
                && victims.contains(&query)
            {
                widen(&mut spans, extent.app, span);
            }
        }
        let beside = self
            .extents()
            .iter()
            .filter(|extent| self.is_beside(extent, &spans));
        RowsNeeded::Stages(beside.map(|extent| extent.stage.clone()).collect())
    }

    /// Whether rows of a stage can share windows with tasks that ran in spans.
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

    /// From when a stage was submitted, or its first task began, until both ended; none if nothing says when.
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

    /// When a stage that was submitted ended. One of which no completion was reported did when its application's last row did.
    pub(super) fn end_of(&self, stage: &StageAttempt, row: &StageRow) -> i64 {
        let last = || self.ends_ns.get(&stage.app).copied().unwrap_or(0);
        let end = row.completed_ms.map_or_else(last, ns);
        end.max(ns(row.submitted_ms.unwrap_or(0)))
    }

    /// The part of each stage's CPU time that each operator took.
    pub(super) fn operator_shares(&self) -> &OperatorShares {
        self.operators.get_or_init(|| {
            let totals = Totals::new(self.profile, Selection::default(), By::Operator);
            let mut wholes: HashMap<(String, i32), f64> = HashMap::new();
            let mut parts = OperatorShares::new();
            for row in totals.rows {
                let Some(stage) = row.stage else { continue };
                *wholes.entry((row.app.clone(), stage)).or_default() += row.cpu_seconds;
                let operator = match row.heading {
                    true => format!("[{}]", row.operator),
                    false => row.operator,
                };
                *parts.entry((row.app, stage, operator)).or_default() += row.cpu_seconds;
            }
            parts.retain(|_, seconds| *seconds > 0.0);
            for ((app, stage, _), seconds) in &mut parts {
                *seconds = (*seconds / wholes[&(app.clone(), *stage)]).min(1.0);
            }
            parts
        })
    }

    /// The number of a SQL execution, or of what an application does outside them.
    pub(super) fn query_id(&self, app: &str, execution: Option<i64>) -> QueryId {
        let at = self.applications.iter().position(|name| name == app);
        let number = execution.map_or(NO_QUERY, |id| id.max(0).cast_unsigned().min(NO_QUERY - 1));
        QueryId(at.unwrap_or(0) as u64 * PER_APPLICATION + number)
    }
}

fn extend(ends_ns: &mut BTreeMap<String, i64>, app: &str, end_ns: i64) {
    match ends_ns.get_mut(app) {
        Some(last) => *last = end_ns.max(*last),
        None => drop(ends_ns.insert(app.to_owned(), end_ns)),
    }
}
