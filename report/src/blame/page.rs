//! Contention in the report's page; `page/src/model.ts` mirrors the types.

use std::collections::{BTreeMap, HashMap};

use rayon::prelude::*;
use serde::Serialize;
use unfuse_contention::{
    BlockedTime, Culprit, Explanation, Filter, Graph, Options, QueryId, Timeline, Workload,
    from_profile, timelines,
};
use unfuse_format::{IntervalRow, ProfileDir};
use unfuse_postprocess::Profile;

use super::advice::advice_on;
use super::answer::{Advice, Answer, Baselines, Row, Victim};
use super::found::{Found, victim};
use super::names::{name_of, title};
use super::ranking::ranked;
use super::simple::Simple;
use super::{Question, Rank};
use crate::{Block, Blocks, ReportError, Summary};

/// Parts that a query's time is shown in.
const SLICES: usize = 40;
/// Paths of a query that are shown; the rest is too weak to be looked at one by one.
const PATHS: usize = 1_000;
/// Rows of each table.
const ROWS: usize = 20;

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
/// # Errors
/// If the profile's tables cannot be read, or have rows that cannot be.
pub fn contention(profile: &Profile, summary: &Summary) -> Result<Option<Blocks>, ReportError> {
    if !ProfileDir::open(profile.path())?.has::<IntervalRow>() {
        return Ok(None);
    }
    let mut input = from_profile(profile, BlockedTime::Measured)?;
    if input.metered == 0 {
        return Ok(None);
    }
    let workload = Workload::new(std::mem::take(&mut input.tables))?;
    let mut places: BTreeMap<u64, usize> = BTreeMap::new();
    for (at, query) in summary.queries.iter().enumerate() {
        let app = summary.applications.get(query.app);
        let key = app.map(|app| (app.id.clone(), query.query));
        if let Some(id) = key.and_then(|key| input.executions.get(&key)) {
            places.entry(id.0).or_insert(at);
        }
    }
    // Other applications on the same hosts can be to blame; what they waited for is not told here.
    let options = Options {
        victims: places.keys().map(|id| QueryId(*id)).collect(),
        ..Options::default()
    };
    if options.victims.is_empty() {
        return Ok(None);
    }
    options.check(&workload)?;
    let graph = Graph::build(&workload, &options);
    let found = Found::of(&workload, &graph);
    let everybody = question(&options, None);
    let overview = {
        let answer = Answer::of(&found, &everybody, &input);
        let paths = found.paths(&everybody);
        let rank = |by| ranked(&workload, &paths, &everybody, by);
        Overview {
            culprits: answer.ranked,
            suggestions: answer.suggestions,
            resources: rank(Rank::Resource),
            hosts: rank(Rank::Host),
            victims: answer
                .victims
                .into_iter()
                .filter(|victim| victim.blocked_seconds > 0.0)
                .collect(),
            places: places.clone(),
            notes: answer.notes,
        }
    };
    let times = timelines(&workload, &options, SLICES);
    let victims = overview.victims.iter().map(|victim| QueryId(victim.query));
    let simple = Simple::new(&workload, &victims.clone().collect(), None);
    let page = Page {
        found: &found,
        places: &places,
        origin_ns: input.origin_ns,
    };
    let places: Vec<(QueryId, usize)> = victims
        .filter_map(|query| Some((query, *places.get(&query.0)?)))
        .collect();
    let block = |(query, at): &(QueryId, usize)| {
        let of = page.of_query(&simple, &options, *query, times.get(query));
        Ok::<_, ReportError>((*at, Block::of(&of)?))
    };
    Ok(Some(Blocks {
        all: Block::of(&overview)?,
        queries: places.par_iter().map(block).collect::<Result<_, _>>()?,
    }))
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

struct Page<'a> {
    found: &'a Found<'a>,
    places: &'a BTreeMap<u64, usize>,
    origin_ns: i64,
}

impl Page<'_> {
    fn of_query(
        &self,
        simple: &Simple,
        options: &Options,
        query: QueryId,
        timeline: Option<&Timeline>,
    ) -> OfQuery {
        let workload = self.found.workload;
        let question = question(options, Some(query));
        let paths = self.found.paths(&question);
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
        let seconds = |ns: i64| to_micros((ns - self.origin_ns) as f64 / 1e9);
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
            victim: victim(self.found, &question, query),
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
