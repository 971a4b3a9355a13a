//! Who or what is to blame most.

use std::collections::BTreeMap;

use unfuse_contention::{By, Culprit, Entity, Explanation, Filter, Source, StageId, Workload, top};

use super::answer::Row;
use super::names::{label, name_of};
use super::{Question, Rank};

/// Parts that are less are not worth their room.
const LEAST: f64 = 0.01;

/// The first rows of a ranking of paths that the question has let through.
pub(super) fn ranked(
    workload: &Workload,
    paths: &[Explanation],
    question: &Question<'_>,
    by: Rank,
) -> Vec<Row> {
    let k = question.top;
    let by = match by {
        Rank::Operator => return operators(workload, paths, k),
        Rank::Culprit => By::Culprit,
        Rank::Stage => By::CulpritStage,
        Rank::Resource => By::Resource,
        Rank::Kind => By::Kind,
        Rank::Host => By::Host,
    };
    let rows = top(workload, paths, &Filter::default(), by, k).into_iter();
    rows.map(|row| {
        let of = |path: &&Explanation| match row.entity {
            Entity::Resource(resource) => path.resource == resource,
            Entity::Kind(kind) => path.kind == kind,
            Entity::Host(host) => path.host == host,
            Entity::Culprit(culprit) => path.culprit == culprit,
            Entity::Source(Source::Stage(stage)) => path.culprit_stage == Some(stage),
            Entity::Source(source) => {
                path.culprit_stage.is_none() && path.culprit == source.culprit()
            }
        };
        let paths: Vec<&Explanation> = paths.iter().filter(of).collect();
        let operators = match row.entity {
            Entity::Culprit(Culprit::Query(_)) | Entity::Source(Source::Stage(_)) => {
                shares(&paths, |path| path.operator.clone())
            }
            _ => Vec::new(),
        };
        let how = |path: &Explanation| {
            Some(format!(
                "{} on {}",
                path.kind.name(),
                workload.host_name(path.host)
            ))
        };
        let how = match row.entity {
            Entity::Resource(_) | Entity::Kind(_) | Entity::Host(_) => {
                shares(&paths, |path| Some(name_of(workload, path.culprit)))
            }
            _ => shares(&paths, how),
        };
        Row {
            name: entity(workload, row.entity),
            responsibility: row.responsibility,
            seconds: row.seconds,
            how: how
                .into_iter()
                .map(|(what, share)| format!("{what} {:.0} %", 100.0 * share))
                .collect(),
            operators,
        }
    })
    .collect()
}

/// Operators of culprit stages, by what they account for.
fn operators(workload: &Workload, paths: &[Explanation], k: usize) -> Vec<Row> {
    let mut sums: BTreeMap<(StageId, &str), (f64, f64)> = BTreeMap::new();
    for path in paths {
        if let Some((stage, operator)) = path.culprit_stage.zip(path.operator.as_deref()) {
            let (responsibility, seconds) = sums.entry((stage, operator)).or_default();
            *responsibility += path.weight;
            *seconds += path.seconds;
        }
    }
    let mut rows: Vec<Row> = sums
        .into_iter()
        .map(|((stage, operator), (responsibility, seconds))| Row {
            name: format!(
                "{operator} in {} of {}",
                stage.name(),
                label(workload, stage.query)
            ),
            responsibility,
            seconds,
            how: Vec::new(),
            operators: Vec::new(),
        })
        .collect();
    rows.sort_by(|a, b| b.responsibility.total_cmp(&a.responsibility));
    rows.truncate(k);
    rows
}

/// The three largest names by the seconds of their paths, with their parts of the seconds of all that have one.
fn shares(
    paths: &[&Explanation],
    name: impl Fn(&Explanation) -> Option<String>,
) -> Vec<(String, f64)> {
    let mut sums: BTreeMap<String, f64> = BTreeMap::new();
    for path in paths {
        if let Some(name) = name(path) {
            *sums.entry(name).or_default() += path.seconds;
        }
    }
    let whole: f64 = sums.values().sum();
    let mut sums: Vec<(String, f64)> = sums
        .into_iter()
        .map(|(name, seconds)| (name, if whole > 0.0 { seconds / whole } else { 0.0 }))
        .filter(|(_, share)| *share >= LEAST)
        .collect();
    sums.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    sums.truncate(3);
    sums
}

fn entity(workload: &Workload, entity: Entity) -> String {
    match entity {
        Entity::Resource(resource) => resource.name().to_owned(),
        Entity::Kind(kind) => kind.name().to_owned(),
        Entity::Host(host) => workload.host_name(host).to_owned(),
        Entity::Culprit(culprit) => name_of(workload, culprit),
        Entity::Source(Source::Stage(stage)) => {
            format!("{} of {}", stage.name(), label(workload, stage.query))
        }
        Entity::Source(source) => name_of(workload, source.culprit()),
    }
}
