//! Equal overlap, unequal harm: neighbours that all run as long as the victim, in as many tasks, and of which some harm it. The
//! truth is found by leaving each of them out.

mod score;

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use unfuse_contention::{Culprit, Kind, QueryId, Span, TaskId, baseline};
use unfuse_postprocess::Profile;

use self::score::{Said, Scores, VictimTime};
use super::judge::RecordedWorkload;
use super::server::{Server, Statement, Times, User};
use super::{Contention, MEASURES};
use crate::page::Measuring;
use crate::random::Random;
use crate::spark::{Spark, Tool};

/// Victims: queries of TPC-DS, one of which computes and one of which joins and shuffles.
const VICTIMS: [&str; 2] = ["q67", "q04"];
/// The neighbours, each of which would run for hours: tasks that always compute, compute for some
/// ms and then sleep for 150 ms, and sleep.
const NEIGHBOURS: [(&str, &str); 3] = [
    (
        "computes",
        "SELECT sum(hash(id, id * 3, id % 17)) FROM range(0, 4000000000000, 1, 8)",
    ),
    (
        "computes a little",
        "SELECT count(*) FROM range(0, 40000000, 1, 8) WHERE length(sha2(repeat(cast(id AS string), 3000), 512)) > 0 \
         AND (id % 50 != 0 OR length(reflect('java.lang.Thread', 'sleep', 150L)) > 0)",
    ),
    (
        "sleeps",
        "SELECT count(*) FROM range(0, 4000000, 1, 8) WHERE length(reflect('java.lang.Thread', 'sleep', 50L)) > 0",
    ),
];
/// The number of the neighbour that does nothing.
const SLEEPS: usize = 2;
/// All subsets of the neighbours, as bits.
const SUBSETS: u8 = 1 << NEIGHBOURS.len();
/// The neighbours run for so long before the victim, ms.
const BEFORE_MS: u64 = 1500;
/// Slots for all tasks, so that only the CPU is scarce.
const SLOTS: u32 = 48;

/// A run of a victim beside a subset of the neighbours.
#[derive(Debug, Clone, Copy)]
struct Trial {
    repeat: u32,
    victim: &'static str,
    subset: u8,
}

impl Trial {
    fn name(self) -> String {
        format!("{}-{}-{}", self.repeat, self.victim, self.subset)
    }

    fn neighbour(self, number: usize) -> String {
        format!("{}-beside{number}", self.name())
    }

    /// The numbers of the neighbours.
    fn neighbours(self) -> impl Iterator<Item = usize> {
        neighbours(self.subset)
    }

    fn run(self, server: &Server, sql: &str) -> Result<Times> {
        let name = self.name();
        let mut victim = Statement::new(&name, sql);
        if let Some(first) = self.neighbours().next() {
            victim = victim.after(&self.neighbour(first), BEFORE_MS);
        }
        let beside = self.neighbours().map(|number| {
            let sql = NEIGHBOURS[number].1;
            (
                format!("neighbour{number}"),
                Statement::new(&self.neighbour(number), sql).until_end_of(&name),
            )
        });
        let all = std::iter::once(("victim".to_owned(), victim)).chain(beside);
        let user = |(name, statement)| User {
            name,
            statements: vec![statement],
        };
        server.run(&all.map(user).collect::<Vec<User>>())
    }
}

/// The numbers of the neighbours in a subset.
fn neighbours(subset: u8) -> impl Iterator<Item = usize> {
    (0..NEIGHBOURS.len()).filter(move |number| subset & 1 << number != 0)
}

/// Runs all victims beside all subsets and writes `contention-harm.md`.
pub fn measure(asked: &Contention, spark: &Spark, results: &Path) -> Result<()> {
    if asked.runs < 2 {
        bail!("--parts harm needs at least 2 --runs, for the noise of the truth");
    }
    let page = Measuring::begin(results, "contention-harm", &MEASURES)?;
    let queries = spark.queries_of_data()?;
    let count = asked.runs as usize * VICTIMS.len() * usize::from(SUBSETS);
    let bar = ProgressBar::new(count as u64).with_style(ProgressStyle::with_template(
        "[{bar:24}] {pos} of {len} runs of a victim, {elapsed}",
    )?);
    let mut random = Random(asked.seed);
    let tool = Tool::Unfuse("rate=200,switches=on".to_owned(), Vec::new());
    let mut scores = Scores::default();
    for victim in VICTIMS {
        let sql = queries.get(victim).context("TPC-DS has the victim")?;
        let server = Server::start(spark, &tool, SLOTS, "3g")?;
        warm_up(&server, victim, sql)?;
        let mut ran = Vec::new();
        for repeat in 0..asked.runs {
            let mut subsets: Vec<u8> = (0..SUBSETS).collect();
            random.shuffle(&mut subsets);
            for subset in subsets {
                let trial = Trial {
                    repeat,
                    victim,
                    subset,
                };
                ran.push((trial, trial.run(&server, sql)?));
                bar.inc(1);
            }
        }
        let profile = server.stop()?;
        let opened = Profile::open(&profile)?;
        let recorded = RecordedWorkload::from_profile(&opened)?;
        let by_use = recorded.by_use()?;
        let executions = executions(&opened);
        for (trial, times) in ran {
            let name = trial.name();
            let time = VictimTime {
                execution_s: *executions.get(&name).context("the victim's execution")?,
                client_s: times.get(&name).context("the victim ran")?.seconds(),
            };
            let said = said(spark, [&recorded, &by_use], &profile, trial)?;
            scores.add(trial, time, said);
            let victim = recorded.query(&name)?;
            let [counted, shared] = [&recorded, &by_use].map(|from| from.queued(victim));
            scores.compare(counted, &shared.0);
        }
    }
    bar.finish_and_clear();
    page.finish(asked.runs, scores.figures(), &scores.body(asked))
}

/// Times of SQL executions by the names of their statements, s.
fn executions(profile: &Profile) -> BTreeMap<String, f64> {
    let named = profile.executions.iter().filter_map(|(id, known)| {
        let text = profile.query_name(id);
        let (name, _) = text.strip_prefix("/* ")?.split_once(" */")?;
        Some((name.to_owned(), known.duration_ms()? as f64 / 1e3))
    });
    named.collect()
}

/// Runs the victim and each neighbour until the JVM has compiled most of them.
fn warm_up(server: &Server, victim: &'static str, sql: &str) -> Result<()> {
    for (repeat, subset) in [(u32::MAX, SUBSETS - 1), (u32::MAX, 0), (u32::MAX - 1, 0)] {
        let trial = Trial {
            repeat,
            victim,
            subset,
        };
        trial.run(server, sql)?;
    }
    Ok(())
}

/// What each method says about the neighbours of a trial.
fn said(
    spark: &Spark,
    [recorded, by_use]: [&RecordedWorkload; 2],
    profile: &Path,
    trial: Trial,
) -> Result<Vec<(usize, Said)>> {
    let workload = &recorded.workload;
    let victim = recorded.query(&trial.name())?;
    let name = &workload.query(victim).context("a known query")?.name;
    let options = ["--limit", "1000", "--victim", name];
    let answer = spark.ask("blame", profile, &options)?;
    let victims = [victim].into();
    let overlaps = [
        baseline::naive_overlap(workload, &victims, None),
        baseline::deep_overlap(workload, &victims, None),
    ];
    let one = |number: usize| {
        let query = recorded.query(&trial.neighbour(number))?;
        let name = format!(
            "query {}",
            workload.query(query).context("a known query")?.name
        );
        let rows = answer["ranked"].as_array();
        let row = rows.into_iter().flatten().find(|row| {
            let after = row["name"]
                .as_str()
                .and_then(|text| text.strip_prefix(&name));
            after.is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()))
        });
        let number_of = |field: &str| row.and_then(|row| row[field].as_f64()).unwrap_or(0.0);
        let overlap = |index: usize| -> f64 {
            let rows = overlaps[index].get(&victim);
            rows.and_then(|rows| rows.get(&query))
                .copied()
                .unwrap_or(0.0)
        };
        Ok((
            number,
            Said {
                scores: [
                    recorded.blamed(victim, Culprit::Query(query)),
                    by_use.blamed(victim, Culprit::Query(query)),
                    cpu_seconds_beside(recorded, victim, query),
                    overlap(0),
                    overlap(1),
                ],
                sooner_s: number_of("victim_seconds"),
                range_s: ["victim_seconds_low", "victim_seconds_high"].map(number_of),
            },
        ))
    };
    trial.neighbours().map(one).collect()
}

/// CPU time of a query's tasks while the victim ran, s.
fn cpu_seconds_beside(recorded: &RecordedWorkload, victim: QueryId, query: QueryId) -> f64 {
    let tables = recorded.workload.tables();
    let of = |id: QueryId| {
        let tasks = recorded.workload.tasks_of_queries(&[id].into());
        let tasks: HashSet<TaskId> = tasks.map(|task| task.id).collect();
        let its = tables.intervals.iter();
        its.filter(move |row| row.kind == Kind::RunQueue && tasks.contains(&row.task))
    };
    let start = of(victim).map(|row| row.span.start).min();
    let end = of(victim).map(|row| row.span.end).max();
    let (Some(start), Some(end)) = (start, end) else {
        return 0.0;
    };
    let ran = Span { start, end };
    let within = |span: Span| {
        let common = span.intersection(ran);
        common.map_or(0.0, |common| common.seconds() / span.seconds())
    };
    of(query).map(|row| row.units * within(row.span)).sum()
}
