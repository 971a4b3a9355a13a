//! Contention in the report's page.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use rayon::prelude::*;
use serde::Serialize;
use ts_rs::TS;
use unfuse_contention::{
    Blame, BlockedTime, Culprit, Explainer, Explanation, Filter, Input, Options, QueryId,
    StageIndex, Timeline, Workload, strongest,
};
use unfuse_format::{IntervalRow, ProfileDir};
use unfuse_postprocess::{Group as SampleGroup, Profile};

use super::advice::advice_on;
use super::answer::{Advice, Baselines, Row, Victim};
use super::names::{name_of, title};
use super::notes::{Notes, notes};
use super::ranking::{Ranking, ranked};
use super::simple::Simple;
use super::victim_paths::VictimPaths;
use super::{Question, Rank};
use crate::{Block, Blocks, ReportError, Summary};

/// Number of slices of a query's time.
const SLICES: usize = 40;
/// Maximum number of paths of a query; the others are too weak to be worth showing.
const PATHS: usize = 1_000;
/// Maximum number of rows in a table.
const ROWS: usize = 20;
/// Maximum number of suggestions for all queries; the page merges equal ones.
const RULES: usize = 500;
/// Maximum number of victims in the page: those with the most task time. `unfuse blame` answers for the others.
const VICTIMS: usize = 200;
/// Approximate number of samples and task rows that are read together.
const ROWS_AT_ONCE: u64 = 15_000_000;
/// The same for one victim. If more ran at its time, only `unfuse blame` answers for it.
const ROWS_OF_ONE: u64 = 60_000_000;
/// Number of victims that are analysed together. Memory holds the timelines and paths of a few groups at a time.
const VICTIMS_OF_A_GROUP: usize = 16;

/// All queries together.
#[derive(Serialize, TS)]
#[ts(rename = "Contention")]
struct Overview {
    victims: Vec<Victim>,
    culprits: Vec<Row>,
    resources: Vec<Row>,
    hosts: Vec<Row>,
    suggestions: Vec<Advice>,
    /// Positions in the report's list, by query number.
    places: BTreeMap<u64, usize>,
    notes: Vec<String>,
}

/// One victim.
#[derive(Serialize, TS)]
#[ts(rename = "QueryContention")]
struct OfQuery {
    victim: Victim,
    culprits: Vec<Row>,
    suggestions: Vec<Advice>,
    baselines: Baselines,
    timeline: Slices,
    paths: Paths,
    /// The texts that the columns of `timeline` and `paths` refer to.
    names: Vec<String>,
    /// Culprits that are queries: the number of their name, and their position in the report's list.
    places: Vec<(u32, usize)>,
    /// The number of the victim's own name.
    own: u32,
}

/// Blocked seconds over time, as columns with an entry for each culprit and resource of each slice.
#[derive(Default, Serialize, TS)]
#[ts(rename = "Timeline")]
struct Slices {
    /// When the first task of all began, ms since the epoch.
    origin_ms: i64,
    /// Bounds, s since then; one more than there are slices.
    bounds: Vec<f64>,
    slice: Vec<u32>,
    resource: Vec<u32>,
    culprit: Vec<u32>,
    seconds: Vec<f64>,
}

/// Paths from culprits to the victim, strongest first, as columns with an entry for each path.
#[derive(Default, Serialize, TS)]
struct Paths {
    stage: Vec<u32>,
    resource: Vec<u32>,
    /// Kind and host of the wait.
    wait: Vec<u32>,
    /// The culprit's stage, or an operator of it.
    part: Vec<u32>,
    culprit: Vec<u32>,
    seconds: Vec<f64>,
    /// Number of weaker paths that were left out.
    weak: usize,
}

/// Numbers texts.
#[derive(Default)]
struct Names {
    known: HashMap<String, u32>,
    texts: Vec<String>,
}

impl Names {
    fn intern(&mut self, text: String) -> u32 {
        let next = self.texts.len() as u32;
        *self.known.entry(text).or_insert_with_key(|text| {
            self.texts.push(text.clone());
            next
        })
    }
}

/// The contention blocks of the page; `None` if tasks did not report their resource use.
///
/// Victims are analysed in parts, so memory is bounded by the rows of a part, not of the profile.
///
/// # Errors
/// If the profile's tables cannot be read, or have rows that cannot be.
pub fn contention(profile: &Profile, summary: &Summary) -> Result<Option<Blocks>, ReportError> {
    if !ProfileDir::open(profile.path())?.has::<IntervalRow>() {
        return Ok(None);
    }
    let mut index = StageIndex::read(profile)?;
    let executions = index.executions();
    let places = places(summary, &executions);
    // Other applications on the same hosts can be culprits; the page does not show their own waits.
    let all = places.len();
    let victims = longest(profile, &executions, &places);
    if victims.is_empty() || !index.is_metered() {
        return Ok(None);
    }
    let (parts, too_large) = index.parts(&victims, ROWS_AT_ONCE, ROWS_OF_ONE);
    // Rows of queries that ran beside no victim are not needed, and most are where there are many queries.
    let is_part = victims.len() < all || parts.len() > 1 || !too_large.is_empty();
    let mut page = Page::new(places);
    if is_part {
        page.origin_ns = Some(index.begun_ns());
    }
    if victims.len() < all {
        page.notes.add(vec![format!(
            "contention is shown for the {} of {all} queries with the most task time; `unfuse blame DIR --victim QUERY` answers \
             for each of the others",
            victims.len()
        )]);
    }
    for victim in &too_large {
        page.notes.add(vec![format!(
            "contention of query {0} is not shown, as too many tasks ran beside it: `unfuse blame DIR --victim {0}` answers",
            victim.0
        )]);
    }
    let mut read = |part: Option<&BTreeSet<QueryId>>| -> Result<_, ReportError> {
        let Some(part) = part else { return Ok(None) };
        let mut input = index.input(BlockedTime::Measured, is_part.then_some(part))?;
        let workload = Workload::new(std::mem::take(&mut input.tables))?;
        Ok(Some((input, workload)))
    };
    let mut next = read(parts.first())?;
    for (number, part) in parts.iter().enumerate() {
        let Some((input, workload)) = next.take() else {
            break;
        };
        // The next part is read while this one is analysed.
        let (added, following) = rayon::join(
            || page.add(&workload, &input, part),
            || read(parts.get(number + 1)),
        );
        added?;
        next = following?;
    }
    Ok(Some(page.finish()?))
}

/// Queries by application and SQL execution; `None` is the work outside executions.
type Executions = BTreeMap<(String, Option<i64>), QueryId>;

/// The queries with the most task time, among those with a position in the list.
fn longest(
    profile: &Profile,
    executions: &Executions,
    places: &BTreeMap<u64, usize>,
) -> BTreeSet<QueryId> {
    let mut time_ns: BTreeMap<QueryId, u64> = places.keys().map(|id| (QueryId(*id), 0)).collect();
    // Groups of a query follow each other.
    let is_same = |a: &SampleGroup, b: &SampleGroup| a.query == b.query && a.app == b.app;
    for all in [&profile.groups, &profile.waits] {
        for groups in all.chunk_by(|(a, _), (b, _)| is_same(a, b)) {
            let key = groups.first().map(|(of, _)| (of.app.to_string(), of.query));
            let query = key.and_then(|key| executions.get(&key));
            if let Some(time) = query.and_then(|query| time_ns.get_mut(query)) {
                let ns = groups.iter().map(|(_, weight)| weight.ns);
                *time = ns.fold(*time, u64::saturating_add);
            }
        }
    }
    let mut queries: Vec<(QueryId, u64)> = time_ns.into_iter().collect();
    queries.sort_by_key(|(_, time)| Reverse(*time));
    queries.truncate(VICTIMS);
    queries.into_iter().map(|(query, _)| query).collect()
}

/// Positions in the report's list, by query number.
fn places(summary: &Summary, executions: &Executions) -> BTreeMap<u64, usize> {
    let mut places = BTreeMap::new();
    for (position, query) in summary.queries.iter().enumerate() {
        let app = summary.applications.get(query.app);
        let key = app.map(|app| (app.id.clone(), query.query));
        if let Some(id) = key.and_then(|key| executions.get(&key)) {
            places.entry(id.0).or_insert(position);
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

/// The answers about a few victims.
struct Group {
    /// Paths from others to them.
    paths: Vec<Explanation>,
    notes: Vec<String>,
    victims: Vec<Victim>,
    queries: Vec<(usize, Block)>,
}

/// The page while victims are added.
struct Page {
    places: BTreeMap<u64, usize>,
    /// Start of the first task of all, ns since the epoch.
    origin_ns: Option<i64>,
    victims: Vec<Victim>,
    culprits: Ranking,
    resources: Ranking,
    hosts: Ranking,
    /// Rows of the rankings, with the names that the last workload has.
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
            culprits: Ranking::new(Rank::Culprit, None),
            resources: Ranking::new(Rank::Resource, None),
            hosts: Ranking::new(Rank::Host, None),
            ranked: Default::default(),
            suggestions: Vec::new(),
            notes: Notes::default(),
            queries: BTreeMap::new(),
        }
    }

    /// Adds the victims of a workload.
    fn add(
        &mut self,
        workload: &Workload,
        input: &Input,
        victims: &BTreeSet<QueryId>,
    ) -> Result<(), ReportError> {
        let options = Options {
            victims: victims.clone(),
            ..Options::default()
        };
        options.check(workload)?;
        self.origin_ns.get_or_insert(input.origin_ns);
        let victims: Vec<QueryId> = victims.iter().copied().collect();
        let groups: Vec<&[QueryId]> = victims.chunks(VICTIMS_OF_A_GROUP).collect();
        for some in groups.chunks(rayon::current_num_threads()) {
            let answers = some.par_iter().map(|group| {
                let options = Options {
                    victims: group.iter().copied().collect(),
                    ..options.clone()
                };
                self.group(workload, input, &options)
            });
            for answer in answers.collect::<Result<Vec<_>, _>>()? {
                self.add_group(workload, answer);
            }
        }
        self.ranked = [&self.culprits, &self.resources, &self.hosts]
            .map(|ranking| ranking.rows(workload, ROWS));
        Ok(())
    }

    /// The answers about a few victims.
    fn group(
        &self,
        workload: &Workload,
        input: &Input,
        options: &Options,
    ) -> Result<Group, ReportError> {
        let (blame, times) = Blame::with_timelines(workload, options, SLICES);
        let everybody = question(options, None);
        let simple = Simple::new(workload, &options.victims, None);
        let mut group = Group {
            paths: Vec::new(),
            notes: notes(workload, &blame, input),
            victims: Vec::new(),
            queries: Vec::new(),
        };
        let mut explainer = Explainer::new(workload, &blame);
        let mut paths = Vec::new();
        for query in blame.victims() {
            let of = VictimPaths::new((workload, &blame), &mut explainer, *query, paths);
            let victim = of.summary(&everybody);
            if victim.blocked_seconds > 0.0
                && let Some(position) = self.places.get(&victim.query)
            {
                let detail = self.query_detail(&of, &simple, options, times.get(query));
                group.queries.push((*position, Block::new(&detail)?));
            }
            if victim.blocked_seconds > 0.0 {
                group.victims.push(victim);
            }
            paths = of.accepted(&everybody);
            group.paths.extend_from_slice(&paths);
        }
        Ok(group)
    }

    fn add_group(&mut self, workload: &Workload, group: Group) {
        for ranking in [&mut self.culprits, &mut self.resources, &mut self.hosts] {
            ranking.add(&group.paths);
        }
        self.suggestions
            .extend(advice_on(workload, &group.paths, ROWS));
        self.notes.add(group.notes);
        self.queries.extend(group.queries);
        self.victims.extend(group.victims);
    }

    fn finish(mut self) -> Result<Blocks, ReportError> {
        let by_time = |a: &Victim, b: &Victim| b.blocked_seconds.total_cmp(&a.blocked_seconds);
        self.victims.sort_by(by_time);
        let by_part = |a: &Advice, b: &Advice| b.responsibility.total_cmp(&a.responsibility);
        self.suggestions.sort_by(by_part);
        self.suggestions.truncate(RULES);
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
            all: Block::new(&all)?,
            queries: self.queries,
        })
    }

    fn query_detail(
        &self,
        of: &VictimPaths<'_>,
        simple: &Simple,
        options: &Options,
        timeline: Option<&Timeline>,
    ) -> OfQuery {
        let (workload, query) = (of.workload, of.query);
        let question = question(options, Some(query));
        let paths = of.paths();
        let strong = strongest(paths, PATHS);
        let mut names = Names::default();
        let mut places = BTreeMap::new();
        let mut culprit = |names: &mut Names, culprit: Culprit| {
            let name = names.intern(name_of(workload, culprit));
            if let Culprit::Query(query) = culprit
                && let Some(position) = self.places.get(&query.0)
            {
                places.insert(name, *position);
            }
            name
        };
        let own = culprit(&mut names, Culprit::Query(query));
        let mut columns = Paths {
            weak: paths.len().saturating_sub(PATHS),
            ..Paths::default()
        };
        for path in &strong {
            columns.stage.push(names.intern(path.stage.name()));
            columns
                .resource
                .push(names.intern(path.resource.name().to_owned()));
            columns.wait.push(names.intern(format!(
                "{} on {}",
                path.kind.name(),
                workload.host_name(path.host)
            )));
            columns.part.push(names.intern(part(workload, path)));
            columns.culprit.push(culprit(&mut names, path.culprit));
            columns.seconds.push(to_micros(path.seconds));
        }
        let origin_ns = self.origin_ns.unwrap_or(0);
        let mut slices = Slices {
            origin_ms: origin_ns / 1_000_000,
            ..Slices::default()
        };
        let seconds = |ns: i64| to_micros((ns - origin_ns) as f64 / 1e9);
        for (number, slice) in timeline.iter().flat_map(|t| &t.slices).enumerate() {
            slices.bounds.push(seconds(slice.span.start));
            for ((resource, who), seconds) in &slice.seconds {
                slices.slice.push(number as u32);
                slices
                    .resource
                    .push(names.intern(resource.name().to_owned()));
                slices.culprit.push(culprit(&mut names, *who));
                slices.seconds.push(to_micros(*seconds));
            }
        }
        let last = timeline.and_then(|t| t.slices.last());
        slices
            .bounds
            .extend(last.map(|slice| seconds(slice.span.end)));
        OfQuery {
            victim: of.summary(&question),
            culprits: ranked(workload, paths, &question, Rank::Culprit),
            suggestions: advice_on(workload, paths, ROWS),
            baselines: simple.about(workload, query),
            timeline: slices,
            paths: columns,
            names: names.texts,
            places: places.into_iter().collect(),
            own,
        }
    }
}

/// Smaller values only take space.
fn to_micros(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e6
}

/// The part of the culprit that did it.
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

/// Declares the types of the page's blocks.
#[cfg(test)]
pub(crate) fn declare(types: &mut crate::typescript::Declarations) {
    types.add::<Overview>();
    types.add::<OfQuery>();
}
