//! Contention in the report's page; `page/src/model.ts` mirrors the types.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rayon::prelude::*;
use serde::Serialize;
use unfuse_contention::{
    BlockedTime, Culprit, Explanation, Filter, Graph, Input, Options, QueryId, StageIndex,
    Timeline, Workload, timelines,
};
use unfuse_format::{IntervalRow, ProfileDir};
use unfuse_postprocess::Profile;

use super::advice::advice_on;
use super::answer::{Advice, Baselines, Row, Victim};
use super::found::{Found, victim};
use super::names::{name_of, title};
use super::notes::{Notes, notes};
use super::ranking::{Ranking, ranked};
use super::simple::Simple;
use super::{Question, Rank};
use crate::{Block, Blocks, ReportError, Summary};

/// Parts that a query's time is shown in.
const SLICES: usize = 40;
/// Paths of a query that are shown; the rest is too weak to be looked at one by one.
const PATHS: usize = 1_000;
/// Rows of each table.
const ROWS: usize = 20;
/// Rows of tasks and samples that are in memory together, about.
const ROWS_AT_ONCE: u64 = 4_000_000;
/// Victims of which all paths are in memory together.
const VICTIMS_AT_ONCE: usize = 8;

/// All queries together.
#[derive(Serialize)]
struct Overview {
    victims: Vec<Victim>,
    culprits: Vec<Row>,
    resources: Vec<Row>,
    hosts: Vec<Row>,
    suggestions: Vec<Advice>,
    /// Positions in the report's list by query number.
    places: BTreeMap<u64, usize>,
    notes: Vec<String>,
}

/// One victim.
#[derive(Serialize)]
struct OfQuery {
    victim: Victim,
    culprits: Vec<Row>,
    suggestions: Vec<Advice>,
    baselines: Baselines,
    timeline: Slices,
    paths: Paths,
    /// What the columns of `timeline` and `paths` mean.
    names: Vec<String>,
    /// Names of culprits that are queries: theirs, and their positions in the report's list.
    places: Vec<(u32, usize)>,
    /// The victim's own name.
    own: u32,
}

/// Blocked seconds over time: a column each, a position for each culprit and resource of each slice.
#[derive(Default, Serialize)]
struct Slices {
    /// Bounds, s since the first task of all; one more than there are slices.
    bounds: Vec<f64>,
    slice: Vec<u32>,
    resource: Vec<u32>,
    culprit: Vec<u32>,
    seconds: Vec<f64>,
}

/// Paths from culprits to the victim, strongest first; a column each.
#[derive(Default, Serialize)]
struct Paths {
    stage: Vec<u32>,
    resource: Vec<u32>,
    /// How and where.
    wait: Vec<u32>,
    /// Stage, or operator of a stage, of the culprit.
    part: Vec<u32>,
    culprit: Vec<u32>,
    seconds: Vec<f64>,
    /// How many were left out.
    weak: usize,
}

/// Texts by number.
#[derive(Default)]
struct Names {
    known: HashMap<String, u32>,
    texts: Vec<String>,
}

impl Names {
    fn of(&mut self, text: String) -> u32 {
        let next = self.texts.len() as u32;
        *self.known.entry(text).or_insert_with_key(|text| {
            self.texts.push(text.clone());
            next
        })
    }
}

/// What the page says of contention; nothing where tasks did not report what they used.
///
/// Victims are answered in parts, so that memory is bounded by the rows of a part and not by those of the profile.
///
/// # Errors
/// If the profile's tables cannot be read, or have rows that cannot be.
pub fn contention(
    profile: &Profile,
    summary: &Summary,
    progress: &dyn Fn(usize, usize),
) -> Result<Option<Blocks>, ReportError> {
    if !ProfileDir::open(profile.path())?.has::<IntervalRow>() {
        return Ok(None);
    }
    let mut index = StageIndex::read(profile)?;
    let places = places(summary, &index);
    // Other applications on the same hosts can be to blame; the page does not say what they waited for.
    let victims: BTreeSet<QueryId> = places.keys().map(|id| QueryId(*id)).collect();
    if victims.is_empty() || !index.is_metered() {
        return Ok(None);
    }
    let parts = index.parts(&victims, ROWS_AT_ONCE);
    let mut page = Page::new(places);
    for (at, part) in parts.iter().enumerate() {
        progress(at, parts.len());
        let only = (parts.len() > 1).then_some(part);
        let mut input = index.input(BlockedTime::Measured, only)?;
        let workload = Workload::new(std::mem::take(&mut input.tables))?;
        page.add(&workload, &input, part)?;
    }
    Ok(Some(page.finish()?))
}

/// Positions in the report's list by query number.
fn places(summary: &Summary, index: &StageIndex<'_>) -> BTreeMap<u64, usize> {
    let executions = index.executions();
    let mut places = BTreeMap::new();
    for (at, query) in summary.queries.iter().enumerate() {
        let app = summary.applications.get(query.app);
        let key = app.map(|app| (app.id.clone(), query.query));
        if let Some(id) = key.and_then(|key| executions.get(&key)) {
            places.entry(id.0).or_insert(at);
        }
    }
    places
}

fn question(options: &Options, victim: Option<QueryId>) -> Question<'_> {
    Question {
        options,
        victim,
        filter: Filter {
            others_only: victim.is_none(),
            ..Filter::default()
        },
        by: Rank::Culprit,
        top: ROWS,
    }
}

/// The page as it adds up.
struct Page {
    places: BTreeMap<u64, usize>,
    /// When the first task of all began, ns since the epoch.
    origin_ns: Option<i64>,
    victims: Vec<Victim>,
    culprits: Ranking,
    resources: Ranking,
    hosts: Ranking,
    /// Rows of the rankings, by the names that the last workload has.
    ranked: [Vec<Row>; 3],
    suggestions: Vec<Advice>,
    notes: Notes,
    queries: BTreeMap<usize, Block>,
}

impl Page {
    fn new(places: BTreeMap<u64, usize>) -> Self {
        Self {
            places,
            origin_ns: None,
            victims: Vec::new(),
            culprits: Ranking::new(Rank::Culprit),
            resources: Ranking::new(Rank::Resource),
            hosts: Ranking::new(Rank::Host),
            ranked: Default::default(),
            suggestions: Vec::new(),
            notes: Notes::default(),
            queries: BTreeMap::new(),
        }
    }

    /// Adds victims of a workload.
    fn add(
        &mut self,
        workload: &Workload,
        input: &Input,
        victims: &BTreeSet<QueryId>,
    ) -> Result<(), ReportError> {
        let mut options = Options {
            victims: victims.clone(),
            ..Options::default()
        };
        options.check(workload)?;
        // The first part begins first.
        self.origin_ns.get_or_insert(input.origin_ns);
        let victims: Vec<QueryId> = victims.iter().copied().collect();
        for some in victims.chunks(VICTIMS_AT_ONCE) {
            options.victims = some.iter().copied().collect();
            self.add_some(workload, input, &options)?;
        }
        self.ranked = [&self.culprits, &self.resources, &self.hosts]
            .map(|ranking| ranking.rows(workload, ROWS));
        Ok(())
    }

    /// Adds a few of them, since a graph has many paths.
    fn add_some(
        &mut self,
        workload: &Workload,
        input: &Input,
        options: &Options,
    ) -> Result<(), ReportError> {
        let graph = Graph::build(workload, options);
        let found = Found::of(workload, &graph);
        let everybody = question(options, None);
        let paths = found.paths(&everybody);
        for ranking in [&mut self.culprits, &mut self.resources, &mut self.hosts] {
            ranking.add(&paths);
        }
        self.suggestions.extend(advice_on(workload, &paths, ROWS));
        drop(paths);
        self.notes.add(notes(workload, &graph, input));
        let blocked: Vec<Victim> = graph
            .victims()
            .map(|query| victim(&found, &everybody, query))
            .filter(|victim| victim.blocked_seconds > 0.0)
            .collect();
        let times = timelines(workload, options, SLICES);
        let simple = Simple::new(workload, &options.victims, None);
        let known = blocked.iter().filter_map(|victim| {
            let at = *self.places.get(&victim.query)?;
            Some((QueryId(victim.query), at))
        });
        let known: Vec<(QueryId, usize)> = known.collect();
        let block = |(query, at): &(QueryId, usize)| {
            let of = self.of_query(&found, &simple, options, *query, times.get(query));
            Ok::<_, ReportError>((*at, Block::of(&of)?))
        };
        let blocks: Vec<(usize, Block)> = known.par_iter().map(block).collect::<Result<_, _>>()?;
        self.queries.extend(blocks);
        self.victims.extend(blocked);
        Ok(())
    }

    fn finish(mut self) -> Result<Blocks, ReportError> {
        let by_time = |a: &Victim, b: &Victim| b.blocked_seconds.total_cmp(&a.blocked_seconds);
        self.victims.sort_by(by_time);
        let by_part = |a: &Advice, b: &Advice| b.responsibility.total_cmp(&a.responsibility);
        self.suggestions.sort_by(by_part);
        self.suggestions.truncate(ROWS);
        let [culprits, resources, hosts] = self.ranked;
        let all = Overview {
            victims: self.victims,
            culprits,
            resources,
            hosts,
            suggestions: self.suggestions,
            places: self.places,
            notes: self.notes.texts(),
        };
        Ok(Blocks {
            all: Block::of(&all)?,
            queries: self.queries,
        })
    }

    fn of_query(
        &self,
        found: &Found<'_>,
        simple: &Simple,
        options: &Options,
        query: QueryId,
        timeline: Option<&Timeline>,
    ) -> OfQuery {
        let workload = found.workload;
        let question = question(options, Some(query));
        let paths = found.paths(&question);
        let mut names = Names::default();
        let mut places = BTreeMap::new();
        let mut culprit = |names: &mut Names, culprit: Culprit| {
            let name = names.of(name_of(workload, culprit));
            if let Culprit::Query(query) = culprit
                && let Some(at) = self.places.get(&query.0)
            {
                places.insert(name, *at);
            }
            name
        };
        let own = culprit(&mut names, Culprit::Query(query));
        let mut columns = Paths {
            weak: paths.len().saturating_sub(PATHS),
            ..Paths::default()
        };
        for path in paths.iter().take(PATHS) {
            columns.stage.push(names.of(path.stage.name()));
            columns
                .resource
                .push(names.of(path.resource.name().to_owned()));
            columns.wait.push(names.of(format!(
                "{} on {}",
                path.kind.name(),
                workload.host_name(path.host)
            )));
            columns.part.push(names.of(part(workload, path)));
            columns.culprit.push(culprit(&mut names, path.culprit));
            columns.seconds.push(to_micros(path.seconds));
        }
        let mut slices = Slices::default();
        let origin_ns = self.origin_ns.unwrap_or(0);
        let seconds = |ns: i64| to_micros((ns - origin_ns) as f64 / 1e9);
        for (at, slice) in timeline.iter().flat_map(|t| &t.slices).enumerate() {
            slices.bounds.push(seconds(slice.span.start));
            for ((resource, who), seconds) in &slice.seconds {
                slices.slice.push(at as u32);
                slices.resource.push(names.of(resource.name().to_owned()));
                slices.culprit.push(culprit(&mut names, *who));
                slices.seconds.push(to_micros(*seconds));
            }
        }
        let last = timeline.and_then(|t| t.slices.last());
        slices
            .bounds
            .extend(last.map(|slice| seconds(slice.span.end)));
        OfQuery {
            victim: victim(found, &question, query),
            culprits: ranked(workload, &paths, &question, Rank::Culprit),
            suggestions: advice_on(workload, &paths, ROWS),
            baselines: simple.about(workload, query),
            timeline: slices,
            paths: columns,
            names: names.texts,
            places: places.into_iter().collect(),
            own,
        }
    }
}

/// What is less than a microsecond only takes room.
fn to_micros(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e6
}

/// What of the culprit did it.
fn part(workload: &Workload, path: &Explanation) -> String {
    let Some(stage) = path.culprit_stage else {
        return "outside queries".to_owned();
    };
    let stage = format!("{} of {}", stage.name(), title(workload, stage.query));
    match &path.operator {
        Some(operator) => format!("{operator} in {stage}"),
        None => stage,
    }
}
