//! Mixes of queries that are replayed without the neighbour that is blamed most, and without another one of like overlap.

use std::fmt::Write;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;

use super::recorded::victim_seconds;
use super::server::{Server, Statement, Times, User};
use super::{Contention, MEASURES};
use crate::page::{Figure, Measuring};
use crate::random::Random;
use crate::spark::{Spark, Tool};
use crate::stats;

/// Queries of TPC-DS, those that come most often first.
const POOL: [&str; 10] = [
    "q67", "q88", "q04", "q51", "q09", "q28", "q23", "q78", "q65", "q03",
];
/// Queries of a mix.
const QUERIES: usize = 7;
/// They begin within so long, ms.
const WITHIN_MS: u64 = 9_000;
/// Replays of a mix: as it is, without one neighbour and without the other, so often each.
const REPEATS: u32 = 3;
/// How long the profile may lack what has just run.
const FLUSHED: Duration = Duration::from_secs(5);
/// The other neighbour overlaps the victim by at least this part of the overlap of the one that is blamed.
const LIKE: f64 = 0.7;

/// The queries of [`POOL`] that TPC-DS has, by name.
type Queries = Vec<(&'static str, String)>;

/// A query of a mix.
struct Planned {
    query: &'static str,
    sql: String,
    at_ms: u64,
}

/// Queries that begin at known times after the first one.
struct Mix {
    number: usize,
    planned: Vec<Planned>,
}

/// The question about a mix.
struct Choice {
    victim: usize,
    blamed: usize,
    other: usize,
    /// How much sooner the victim would end without the blamed one: likely, low, high, s.
    said_s: [f64; 3],
}

/// Times of the victim, s.
struct Replayed {
    choice: Choice,
    names: [String; 3],
    all: Vec<f64>,
    without_blamed: Vec<f64>,
    without_other: Vec<f64>,
}

impl Mix {
    fn new(number: usize, queries: &Queries, random: &mut Random) -> Self {
        let mut planned: Vec<Planned> = (0..QUERIES)
            .map(|_| {
                // The lower of two numbers: some queries come again and again.
                let [a, b] = [(); 2].map(|()| random.below(queries.len() as u64) as usize);
                let (query, sql) = &queries[a.min(b)];
                Planned {
                    query,
                    sql: sql.clone(),
                    at_ms: random.below(WITHIN_MS),
                }
            })
            .collect();
        planned.sort_by_key(|planned| planned.at_ms);
        Self { number, planned }
    }

    fn name(&self, replay: &str, at: usize) -> String {
        format!(
            "mix{}-{replay}-{at}-{}",
            self.number, self.planned[at].query
        )
    }

    /// Runs the mix, or all of it but one query.
    fn run(&self, server: &Server, replay: &str, without: Option<usize>) -> Result<Times> {
        let begin = format!("mix{}-{replay}-begin", self.number);
        let mut users = vec![User {
            name: "begin".to_owned(),
            statements: vec![Statement::new(&begin, "SELECT 1")],
        }];
        for (at, planned) in self.planned.iter().enumerate() {
            if without == Some(at) {
                continue;
            }
            users.push(User {
                name: format!("user{at}"),
                statements: vec![
                    Statement::new(&self.name(replay, at), &planned.sql)
                        .after(&begin, planned.at_ms),
                ],
            });
        }
        server.run(&users)
    }

    /// The query that others slowed down most, the neighbour that is blamed most, and another one of like overlap; `None` if there are
    /// no such queries.
    fn choose(
        &self,
        spark: &Spark,
        profile: &Path,
        times: &Times,
        random: &mut Random,
    ) -> Result<Option<Choice>> {
        let everybody = spark.ask("blame", profile, &["--limit", "1"])?;
        let known: Vec<(usize, &Value)> = victims(&everybody)
            .filter_map(|row| {
                let label = row["label"].as_str()?;
                let is = |at: &usize| label.contains(&format!("/* {} */", self.name("first", *at)));
                Some(((0..QUERIES).find(is)?, row))
            })
            .collect();
        let by_others = |row: &Value| row["by_others_seconds"].as_f64().unwrap_or(0.0);
        let most = known
            .iter()
            .max_by(|a, b| by_others(a.1).total_cmp(&by_others(b.1)));
        let Some((victim, row)) = most else {
            return Ok(None);
        };
        let name = row["name"].as_str().context("a name")?;
        let answer = spark.ask("blame", profile, &["--limit", "1000", "--victim", name])?;
        let rows = answer["ranked"].as_array().into_iter().flatten();
        let others = rows.filter_map(|row| {
            let label = row["name"].as_str().filter(|_| row["kind"] == "query")?;
            let of = |(_, other): &&(usize, &Value)| other["label"].as_str() == Some(label);
            known.iter().find(of).map(|(at, _)| (*at, row))
        });
        let saves = |row: &Value| victim_seconds(row)[0];
        let Some((blamed, row)) = others.max_by(|a, b| saves(a.1).total_cmp(&saves(b.1))) else {
            return Ok(None);
        };
        let span = |at: usize| {
            times
                .get(&self.name("first", at))
                .copied()
                .context("a query that ran")
        };
        let overlap = |at: usize| -> Result<f64> {
            let common = span(at)?.intersection(span(*victim)?);
            Ok(common.map_or(0.0, |common| common.seconds()))
        };
        let enough = LIKE * overlap(blamed)?;
        let mut like = Vec::new();
        for at in (0..QUERIES).filter(|at| ![*victim, blamed].contains(at)) {
            if overlap(at)? >= enough {
                like.push(at);
            }
        }
        if like.is_empty() {
            return Ok(None);
        }
        Ok(Some(Choice {
            victim: *victim,
            blamed,
            other: like[random.below(like.len() as u64) as usize],
            said_s: victim_seconds(row),
        }))
    }

    /// Replays the mix with and without the two neighbours, in random order.
    fn replay(&self, server: &Server, choice: Choice, random: &mut Random) -> Result<Replayed> {
        let mut replayed = Replayed {
            names: [choice.victim, choice.blamed, choice.other]
                .map(|at| self.planned[at].query.to_owned()),
            all: Vec::new(),
            without_blamed: Vec::new(),
            without_other: Vec::new(),
            choice,
        };
        for repeat in 0..REPEATS {
            let mut ways = [
                None,
                Some(replayed.choice.blamed),
                Some(replayed.choice.other),
            ];
            random.shuffle(&mut ways);
            for without in ways {
                let replay = format!(
                    "{repeat}-{}",
                    without.map_or("all".to_owned(), |at| format!("without{at}"))
                );
                let times = self.run(server, &replay, without)?;
                let victim = self.name(&replay, replayed.choice.victim);
                let span = times.get(&victim).context("the victim ran")?;
                let list = match without {
                    None => &mut replayed.all,
                    Some(at) if at == replayed.choice.blamed => &mut replayed.without_blamed,
                    Some(_) => &mut replayed.without_other,
                };
                list.push(span.seconds());
            }
        }
        Ok(replayed)
    }
}

fn victims(answer: &Value) -> impl Iterator<Item = &Value> {
    answer["victims"].as_array().into_iter().flatten()
}

impl Replayed {
    /// How much sooner the victim ended without the blamed one, and without the other one, s.
    fn saved(&self) -> [f64; 2] {
        let mean = |times: &[f64]| stats::mean_and_half_width(times).0;
        [&self.without_blamed, &self.without_other].map(|times| mean(&self.all) - mean(times))
    }
}

/// Runs mixes for some minutes and writes `contention-replay.md`.
pub fn measure(asked: &Contention, spark: &Spark, results: &Path) -> Result<()> {
    let page = Measuring::begin(results, "contention-replay", &MEASURES)?;
    let tool = Tool::Unfuse("rate=200,switches=on".to_owned(), Vec::new());
    let server = Server::start(spark, &tool, asked.slots, "3g")?;
    let mut all = spark.queries_of_data()?;
    let queries: Queries = POOL
        .iter()
        .filter_map(|name| Some((*name, all.remove(*name)?)))
        .collect();
    let statements = [0, 1].map(|round| {
        let statement =
            |(name, sql): &(&str, String)| Statement::new(&format!("warm-up-{round}-{name}"), sql);
        queries.iter().map(statement).collect::<Vec<_>>()
    });
    server.run(&[User {
        name: "warm-up".to_owned(),
        statements: statements.concat(),
    }])?;
    let begun = Instant::now();
    let time = Duration::from_secs(60 * asked.minutes);
    let bar = ProgressBar::new(time.as_secs())
        .with_style(ProgressStyle::with_template("[{bar:24}] {msg}, {elapsed}")?);
    let mut random = Random(asked.seed);
    let mut mixes = Vec::new();
    for number in 0.. {
        if begun.elapsed() >= time && !mixes.is_empty() {
            break;
        }
        let mix = Mix::new(number, &queries, &mut random);
        let times = mix.run(&server, "first", None)?;
        sleep(FLUSHED);
        if let Some(choice) = mix.choose(spark, &server.profile(), &times, &mut random)? {
            mixes.push(mix.replay(&server, choice, &mut random)?);
        }
        bar.set_message(format!("{number} mixes, {} of them replayed", mixes.len()));
        bar.set_position(begun.elapsed().as_secs().min(time.as_secs()));
    }
    bar.finish_and_clear();
    server.stop()?;
    page.finish(mixes.len() as u32, figures(&mixes), &body(asked, &mixes))
}

fn figures(mixes: &[Replayed]) -> Vec<Figure> {
    let percent = |mix: &Replayed, of: usize| {
        100.0 * mix.saved()[of] / stats::mean_and_half_width(&mix.all).0
    };
    let saved = |of: usize| {
        mixes
            .iter()
            .map(|mix| percent(mix, of))
            .collect::<Vec<f64>>()
    };
    let more: Vec<f64> = mixes
        .iter()
        .map(|mix| percent(mix, 0) - percent(mix, 1))
        .collect();
    let count =
        |is: &dyn Fn(&Replayed) -> bool| (mixes.iter().filter(|mix| is(mix)).count(), mixes.len());
    let what = "of the victim's time, saved without";
    vec![
        Figure::from_runs(
            "blamed",
            &format!("{what} the neighbour that is blamed most"),
            &saved(0),
            "%",
            1,
        ),
        Figure::from_runs(
            "other",
            &format!("{what} another one of like overlap"),
            &saved(1),
            "%",
            1,
        ),
        Figure::from_runs("more", "the difference", &more, "%", 1),
        Figure::from_counts(
            "better",
            "mixes in which it saved more to leave out the blamed one",
            count(&|mix| mix.saved()[0] > mix.saved()[1]),
        ),
        Figure::from_counts(
            "inside",
            "mixes in which the seconds said hold what was saved, or are within 20% of it",
            count(&|mix| {
                let ([saved, _], [said, low, high]) = (mix.saved(), mix.choice.said_s);
                (low..=high).contains(&saved) || (said - saved).abs() <= 0.2 * saved
            }),
        ),
    ]
}

fn body(asked: &Contention, mixes: &[Replayed]) -> String {
    let mut body = format!(
        "Each mix has {QUERIES} queries of TPC-DS SF {}, some of them the same, which begin at random times within {} s on a warm Thrift \
         server (local[{}]). The victim is the query that others slowed down most. Then the mix is replayed: as it was, without \
         the neighbour that `unfuse blame` puts first by seconds of the victim, and without another neighbour, chosen at random among \
         those that overlap the victim at least {:.0}% as long; {REPEATS} times each, in random order. Times are the clients' means.\n\n\
         | victim | blamed | other | victim, s | without the blamed, s | without the other, s | saved, s | said, s | range |\n|---|---|---|---|---|---|---|---|---|\n",
        asked.scale,
        WITHIN_MS / 1000,
        asked.slots,
        100.0 * LIKE,
    );
    for mix in mixes {
        let mean = |times: &[f64]| stats::mean_and_half_width(times).0;
        let [victim, blamed, other] = &mix.names;
        let [said, low, high] = mix.choice.said_s;
        let _ = writeln!(
            body,
            "| {victim} | {blamed} | {other} | {:.2} | {:.2} | {:.2} | {:.2} | {said:.2} | {low:.2} to {high:.2} |",
            mean(&mix.all),
            mean(&mix.without_blamed),
            mean(&mix.without_other),
            mix.saved()[0],
        );
    }
    body
}
