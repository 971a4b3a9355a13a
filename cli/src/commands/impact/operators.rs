//! Impact by operator: the time of each operator's tasks, running and waiting, in profiles taken at several schemes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use unfuse_format::ProfileDir;
use unfuse_impact::{Analysis, Counted, Run, Runs, Scheme, Utilisation};
use unfuse_postprocess::histories;

use super::answer::{Answer, Operator, Query};
use crate::commands::open;
use crate::remote;

/// Operators with a smaller part of their query's time are left out: their times are mostly chance.
const LEAST: f64 = 0.01;

/// Profiles with the schemes they were taken at.
#[derive(Debug, Default)]
pub(super) struct Profiles(Vec<(Scheme, PathBuf)>);

/// An operator of a query: the same in every run.
type Key = (Option<i32>, String);

/// The runs of one query, or of one operator.
#[derive(Default)]
struct Times {
    description: String,
    whole: Vec<Run>,
    operators: BTreeMap<Key, (String, Vec<Run>)>,
    failed: usize,
}

impl Profiles {
    /// From `SCHEME=DIR`.
    pub(super) fn named(texts: &[String]) -> Result<Self> {
        let mut all = Vec::new();
        for text in texts {
            let Some((scheme, dir)) = text.split_once('=') else {
                bail!("{text}: a profile is given with its scheme, such as 1.2/HDD/1Gbps=DIR");
            };
            let scheme: Scheme = scheme.parse().map_err(anyhow::Error::msg)?;
            all.push((scheme, PathBuf::from(dir)));
        }
        Ok(Self(all))
    }

    /// Adds those of `unfuse impact measure`: directories CPU/DISK/NETWORK/NUMBER.
    pub(super) fn add_of(&mut self, dir: &Path) -> Result<()> {
        let mut level = vec![(String::new(), dir.to_owned())];
        for _ in 0..4 {
            let mut below = Vec::new();
            for (name, dir) in level {
                let entries = std::fs::read_dir(&dir).into_iter().flatten().flatten();
                below.extend(entries.map(|entry| {
                    let part = entry.file_name().to_string_lossy().into_owned();
                    (format!("{name}/{part}"), entry.path())
                }));
            }
            level = below;
        }
        level.sort();
        for (name, dir) in level {
            let scheme = name
                .trim_start_matches('/')
                .rsplit_once('/')
                .map(|(scheme, _)| scheme);
            if let Some(scheme) = scheme.filter(|_| ProfileDir::is_at(&dir)) {
                self.0
                    .push((scheme.parse().map_err(anyhow::Error::msg)?, dir));
            }
        }
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds what the profiles say, compared with a base, which is else that of the first one.
    pub(super) fn answer(&self, base: Option<Scheme>, answer: &mut Answer) -> Result<()> {
        let base = base.or_else(|| self.0.first().map(|(scheme, _)| scheme.clone()));
        let base = base.context("no profiles")?;
        let mut queries: BTreeMap<String, Times> = BTreeMap::new();
        for (scheme, dir) in &self.0 {
            add(&mut queries, scheme, &remote::local(dir)?)?;
        }
        let mut lost = Vec::new();
        for (fingerprint, times) in queries {
            if times.failed > 0 {
                answer.notes.push(format!(
                    "{} runs of query {fingerprint} failed and are left out",
                    times.failed
                ));
            }
            match times.query(fingerprint, &base, self.0.len()) {
                Ok(query) => answer.queries.push(query),
                Err(why) => lost.push(why),
            }
        }
        if answer.queries.is_empty() {
            let why = lost.first().map_or("they have no queries", String::as_str);
            bail!("the profiles have no query that can be compared: {why}");
        }
        if let Some(why) = lost.first() {
            let more = lost.len();
            answer
                .notes
                .push(format!("{more} queries are left out, such as: {why}"));
        }
        let seconds = |query: &Query| query.analysis.as_ref().map_or(0.0, at_base);
        answer
            .queries
            .sort_by(|a, b| seconds(b).total_cmp(&seconds(a)));
        Ok(())
    }
}

/// Adds one profile: what ran several times in it counts as one.
fn add(queries: &mut BTreeMap<String, Times>, scheme: &Scheme, dir: &Path) -> Result<()> {
    let profile = open(dir)?;
    if profile.waits.is_empty() {
        bail!(
            "{}: it has no waits, and CPU time alone does not say how long an operator took (`unfuse doctor` checks this machine)",
            dir.display()
        );
    }
    let run = |seconds: f64| Run {
        scheme: scheme.clone(),
        seconds,
        utilisation: Utilisation::default(),
        counted: Counted::default(),
    };
    for history in histories(&[profile]) {
        let times = queries.entry(history.fingerprint).or_default();
        times.description = history.description;
        let (failed, whole): (Vec<_>, Vec<_>) =
            history.runs.iter().partition(|run| run.error.is_some());
        times.failed += failed.len();
        let durations: Option<Vec<i64>> = whole.iter().map(|run| run.duration_ms).collect();
        // How often a query ran says nothing of the scheme.
        let count = whole.len().max(1) as f64;
        let sum: i64 = durations.unwrap_or_default().into_iter().sum();
        if sum > 0 {
            times.whole.push(run(sum as f64 / 1000.0 / count));
        }
        let mut sums: BTreeMap<Key, (String, f64)> = BTreeMap::new();
        for part in whole.iter().flat_map(|run| &run.operators) {
            let key = (part.node, part.operator.clone());
            let sum = sums
                .entry(key)
                .or_insert_with(|| (part.detail.clone(), 0.0));
            sum.1 += part.cpu_s + part.waiting_s;
        }
        for (key, (detail, seconds)) in sums {
            if seconds > 0.0 {
                let known = times
                    .operators
                    .entry(key)
                    .or_insert_with(|| (detail, Vec::new()));
                known.1.push(run(seconds / count));
            }
        }
    }
    Ok(())
}

impl Times {
    fn query(self, fingerprint: String, base: &Scheme, profiles: usize) -> Result<Query, String> {
        if self.whole.len() < profiles {
            return Err(format!(
                "{} ended in {} of {profiles} profiles only",
                self.description,
                self.whole.len()
            ));
        }
        let whole = Runs::new(base.clone(), self.whole).map_err(|e| e.to_string())?;
        let mut operators = Vec::new();
        for ((node, operator), (detail, runs)) in self.operators {
            // What does not show in every profile is too small to say anything.
            if runs.len() < profiles {
                continue;
            }
            let runs = Runs::new(base.clone(), runs).map_err(|e| e.to_string())?;
            operators.push(Operator {
                node,
                operator,
                detail,
                analysis: Analysis::of(&runs),
            });
        }
        let all: f64 = operators.iter().map(|o| at_base(&o.analysis)).sum();
        operators.retain(|operator| at_base(&operator.analysis) >= LEAST * all);
        operators.sort_by(|a, b| at_base(&b.analysis).total_cmp(&at_base(&a.analysis)));
        Ok(Query {
            fingerprint,
            description: self.description,
            analysis: Some(Analysis::of(&whole)),
            operators,
        })
    }
}

/// Mean time at the base scheme, s.
pub(super) fn at_base(analysis: &Analysis) -> f64 {
    let times = analysis.schemes.iter();
    times
        .filter(|time| time.scheme == analysis.base)
        .map(|time| time.seconds)
        .sum()
}
