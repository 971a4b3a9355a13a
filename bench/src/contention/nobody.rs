//! Nobody to blame: a query that slows itself down, beside neighbours that do no harm. What is said of these is a false accusation.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use anyhow::{Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;
use unfuse_format::counted;

use super::harm::tool;
use super::recorded::Recorded;
use super::server::{Server, Statement, User};
use super::{Contention, MEASURES};
use crate::page::{Figure, Measuring, slug};
use crate::random::Random;
use crate::spark::Spark;
use crate::stats;

/// The query as it should be.
const BASE: &str = "SELECT count(*) FROM range(0, 2400, 1, 4) WHERE length(reflect('Neighbours', 'spin', 1000, 0, id)) > 0";
/// The same query, slowed down by itself.
const CAUSES: [(&str, &str); 4] = [
    (
        "twice the data",
        "SELECT count(*) FROM range(0, 4800, 1, 4) WHERE length(reflect('Neighbours', 'spin', 1000, 0, id)) > 0",
    ),
    (
        "one task",
        "SELECT count(*) FROM range(0, 2400, 1, 1) WHERE length(reflect('Neighbours', 'spin', 1000, 0, id)) > 0",
    ),
    (
        "a sleep",
        "SELECT count(*) FROM range(0, 2400, 1, 4) WHERE length(reflect('Neighbours', 'spin', 1000, 20, id)) > 0",
    ),
    (
        "own garbage",
        "SELECT count(*) FROM range(0, 2400, 1, 4) WHERE length(reflect('Neighbours', 'spin', 1000, 0, id)) > 0 AND length(reflect('Neighbours', 'allocateAll', 5, 150, id)) > 0",
    ),
];
/// Neighbours that sleep, one of them in a lock that no other query takes.
const NEIGHBOURS: [(&str, &str); 2] = [
    (
        "sleeps",
        "SELECT count(*) FROM range(0, 4000000, 1, 8) WHERE length(reflect('Neighbours', 'busy', 0, 80, id)) > 0",
    ),
    (
        "sleeps in a lock",
        "SELECT count(*) FROM range(0, 4000000, 1, 8) WHERE length(reflect('Locks', 'holdOften', 'own', 0, 20, id)) > 0",
    ),
];
const SLOTS: u32 = 48;
const BEFORE_MS: u64 = 1500;

/// One run of the query.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum How {
    /// As it should be, alone.
    Alone,
    /// As it should be, beside the neighbours.
    Base,
    /// Slowed down, beside the neighbours.
    Slowed(usize),
}

impl How {
    fn all() -> Vec<Self> {
        let slowed = (0..CAUSES.len()).map(Self::Slowed);
        [Self::Alone, Self::Base]
            .into_iter()
            .chain(slowed)
            .collect()
    }

    fn title(self) -> &'static str {
        match self {
            Self::Alone => "alone",
            Self::Base => "base",
            Self::Slowed(cause) => CAUSES[cause].0,
        }
    }

    fn sql(self) -> &'static str {
        match self {
            Self::Alone | Self::Base => BASE,
            Self::Slowed(cause) => CAUSES[cause].1,
        }
    }

    fn name(self, repeat: u32) -> String {
        format!("{repeat}-{}", slug(self.title()))
    }

    fn run(self, server: &Server, repeat: u32) -> Result<()> {
        let name = self.name(repeat);
        let beside = |number: usize| format!("{name}-beside{number}");
        let mut victim = Statement::new(&name, self.sql());
        let mut users = Vec::new();
        if self != Self::Alone {
            victim = victim.after(&beside(0), BEFORE_MS);
            for (number, (_, sql)) in NEIGHBOURS.iter().enumerate() {
                users.push(User {
                    name: format!("neighbour{number}"),
                    statements: vec![Statement::new(&beside(number), sql).until_end_of(&name)],
                });
            }
        }
        users.push(User {
            name: "victim".to_owned(),
            statements: vec![victim],
        });
        server.run(&users)?;
        Ok(())
    }
}

/// What was measured of each run.
#[derive(Default)]
struct Measured {
    /// Times of the query, s, in the order of the repetitions.
    times: BTreeMap<How, Vec<f64>>,
    /// How much sooner it would end without both neighbours, as `unfuse blame` says, s.
    said: BTreeMap<How, Vec<f64>>,
}

/// Runs the query in all ways and writes `contention-nobody.md`.
pub fn measure(asked: &Contention, spark: &Spark, results: &Path) -> Result<()> {
    if asked.runs < 2 {
        bail!("at least 2 --runs are needed, for the noise of the slow-down");
    }
    let page = Measuring::begin(results, "contention-nobody", &MEASURES)?;
    let server = Server::start(spark, &tool(spark, &[])?, SLOTS, "2g")?;
    for how in How::all() {
        how.run(&server, u32::MAX)?;
    }
    let count = u64::from(asked.runs) * How::all().len() as u64;
    let bar = ProgressBar::new(count).with_style(ProgressStyle::with_template(
        "[{bar:24}] {pos} of {len} runs of the query, {elapsed}",
    )?);
    let mut random = Random(asked.seed);
    for repeat in 0..asked.runs {
        let mut all = How::all();
        random.shuffle(&mut all);
        for how in all {
            how.run(&server, repeat)?;
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    let recorded = Recorded::from_server(server)?;
    let mut measured = Measured::default();
    for repeat in 0..asked.runs {
        for how in How::all() {
            let name = how.name(repeat);
            let time = recorded.time(&name)?;
            measured.times.entry(how).or_default().push(time);
            if how != How::Alone {
                let said = said(&recorded.blame(spark, &name)?);
                measured.said.entry(how).or_default().push(said);
            }
        }
    }
    page.finish(asked.runs, measured.figures(), &measured.body(asked))
}

/// Seconds of the victim that are attributed to other queries.
fn said(answer: &Value) -> f64 {
    let rows = answer["ranked"].as_array().into_iter().flatten();
    let queries = rows.filter(|row| row["kind"] == "query");
    queries
        .filter_map(|row| row["victim_seconds"].as_f64())
        .sum()
}

impl Measured {
    fn values(of: &BTreeMap<How, Vec<f64>>, how: How) -> &[f64] {
        of.get(&how).map_or(&[], Vec::as_slice)
    }

    /// How much longer the query takes because of a cause, in each repetition, s.
    fn slower(&self, cause: usize) -> Vec<f64> {
        let slowed = Self::values(&self.times, How::Slowed(cause)).iter();
        let base = Self::values(&self.times, How::Base).iter();
        slowed
            .zip(base)
            .map(|(slowed, base)| slowed - base)
            .collect()
    }

    /// What is said more of the neighbours, of that time, %.
    fn accused(&self, cause: usize) -> Vec<f64> {
        let slower = self.slower(cause);
        let (mean, half) = stats::mean_and_half_width(&slower);
        // A part of a slow-down that could be noise says nothing.
        if mean <= half {
            return Vec::new();
        }
        let slowed = Self::values(&self.said, How::Slowed(cause)).iter();
        let base = Self::values(&self.said, How::Base).iter();
        let more = slowed.zip(base).map(|(slowed, base)| slowed - base);
        more.map(|more| 100.0 * more / mean).collect()
    }

    fn figures(&self) -> Vec<Figure> {
        let all: Vec<f64> = (0..CAUSES.len())
            .flat_map(|cause| self.accused(cause))
            .collect();
        let what = "false accusation: seconds said of neighbours that only sleep, more than without the slow-down, of the slow-down";
        let mut figures = vec![Figure::from_runs("accused", what, &all, "%", 1)];
        for (cause, (title, _)) in CAUSES.iter().enumerate() {
            let name = format!("accused_{}", slug(title));
            let what = format!("false accusation if the query is slow by itself: {title}");
            figures.push(Figure::from_runs(
                &name,
                &what,
                &self.accused(cause),
                "%",
                1,
            ));
        }
        let alone = Self::values(&self.times, How::Alone).iter();
        let beside = Self::values(&self.times, How::Base).iter();
        let logs: Vec<f64> = beside
            .zip(alone)
            .map(|(beside, alone)| (beside / alone).ln())
            .collect();
        let what = "the query's time beside the neighbours ÷ alone";
        figures.push(Figure::from_logs("beside", what, &logs));
        figures.retain(|figure| figure.value.is_finite());
        figures
    }

    fn body(&self, asked: &Contention) -> String {
        let neighbours = NEIGHBOURS.map(|(name, _)| name).join("; ");
        let mut body = format!(
            "A query of four tasks that compute runs alone, and beside two neighbours of eight tasks each ({neighbours}), which start \
             1.5 s before it and are cancelled at its end. Then it slows itself down: it has twice the data, only one task, a sleep for \
             each row, or it makes garbage. The neighbours stay the same, so `unfuse blame` must not say more of them. \
             On a warm Thrift server of Spark 4.3 (local[{SLOTS}]), {} of each, in random order. Times are those of SQL executions.\n\n\
             | the query | its execution, s | said of both neighbours, s | false accusation, % |\n|---|---|---|---|\n",
            counted(asked.runs, "run"),
        );
        for how in How::all() {
            let time = mean(Self::values(&self.times, how));
            let said = match how {
                How::Alone => "-".to_owned(),
                _ => mean(Self::values(&self.said, how)),
            };
            let accused = match how {
                How::Slowed(cause) => mean(&self.accused(cause)),
                _ => "-".to_owned(),
            };
            let _ = writeln!(body, "| {} | {time} | {said} | {accused} |", how.title());
        }
        body
    }
}

/// A mean with its interval; nothing without values.
pub(super) fn mean(values: &[f64]) -> String {
    if values.is_empty() {
        return "-".to_owned();
    }
    let (mean, half) = stats::mean_and_half_width(values);
    match half.is_finite() {
        true => format!("{mean:.2} ± {half:.2}"),
        false => format!("{mean:.2}"),
    }
}
