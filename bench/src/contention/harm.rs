//! Equal overlap, unequal harm: neighbours that all run as long as the victim, in as many tasks, and of which some harm it. The
//! truth is found by leaving each of them out.

mod files;
mod panel;
mod score;
mod slow_disk;

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;
use unfuse_contention::{Culprit, Kind, QueryId, Span, TaskId, baseline};

use self::files::Files;
use self::panel::{Panel, Victim};
use self::score::{Said, Scores, VictimTime};
use self::slow_disk::SlowDisk;
use super::judge::RecordedWorkload;
use super::recorded::{Recorded, has_name, victim_seconds};
use super::server::{Server, Statement, Times, User};
use super::{Contention, MEASURES, Part};
use crate::page::{Measuring, slug};
use crate::random::Random;
use crate::spark::{Spark, Tool};

/// The neighbours run for so long before the victim, ms.
const BEFORE_MS: u64 = 1500;
/// What a server with [`Files`] may read from the disk in a second, bytes.
const DISK_BYTES: u64 = 200_000_000;

/// A run of a victim beside a subset of the neighbours.
#[derive(Debug, Clone, Copy)]
struct Trial {
    repeat: u32,
    victim: &'static str,
    subset: u8,
}

impl Trial {
    fn name(self) -> String {
        let victim = slug(self.victim);
        format!("{}-{victim}-{}", self.repeat, self.subset)
    }

    fn neighbour(self, number: usize) -> String {
        format!("{}-beside{number}", self.name())
    }

    /// The numbers of the neighbours.
    fn neighbours(self) -> impl Iterator<Item = usize> {
        neighbours(self.subset)
    }

    fn run(self, server: &Server, texts: &Texts, sql: &str) -> Result<Times> {
        let name = self.name();
        let mut victim = Statement::new(&name, sql);
        if let Some(first) = self.neighbours().next() {
            victim = victim.after(&self.neighbour(first), BEFORE_MS);
        }
        let beside = self.neighbours().map(|number| {
            let sql = &texts.neighbours[number];
            (
                pool(number),
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

/// The scheduler pool of a neighbour.
fn pool(number: usize) -> String {
    format!("neighbour{number}")
}

/// The numbers of the neighbours in a subset.
fn neighbours(subset: u8) -> impl Iterator<Item = usize> {
    (0..u8::BITS as usize).filter(move |number| subset & 1 << number != 0)
}

/// The texts of a panel's statements.
struct Texts {
    victims: Vec<(&'static str, String)>,
    neighbours: Vec<String>,
}

impl Texts {
    fn new(panel: &Panel, spark: &Spark, files: Option<&Files>) -> Result<Self> {
        let queries = spark.queries_of_data()?;
        let fill = |sql: &str| files.map_or_else(|| sql.to_owned(), |files| files.fill(sql));
        let of_victim = |victim: &Victim| {
            let known = || queries.get(victim.name).map(String::as_str);
            let sql = victim.sql.or_else(known);
            Ok((victim.name, fill(sql.context("TPC-DS has the victim")?)))
        };
        let neighbours = panel.neighbours.iter();
        Ok(Self {
            victims: panel.victims.iter().map(of_victim).collect::<Result<_>>()?,
            neighbours: neighbours.map(|one| fill(one.sql)).collect(),
        })
    }
}

/// What a server runs with: classes for `reflect`, and scheduler pools with their weights.
pub(super) fn tool(spark: &Spark, pools: &[(String, u32)]) -> Result<Tool> {
    let dir = tempfile::Builder::new()
        .prefix("neighbours-")
        .tempdir_in(spark.scratch())?
        .keep();
    let mut settings = called(spark, &dir)?;
    if !pools.is_empty() {
        let pools = pools.iter().map(|(name, weight)| {
            format!("<pool name=\"{name}\"><schedulingMode>FIFO</schedulingMode><weight>{weight}</weight><minShare>0</minShare></pool>")
        });
        let pools = format!("<allocations>{}</allocations>", pools.collect::<String>());
        let file = dir.join("pools.xml");
        fs::write(&file, pools)?;
        let file = file.display();
        settings.push(format!("spark.scheduler.allocation.file={file}"));
    }
    Ok(Tool::Unfuse("rate=200,switches=on".to_owned(), settings))
}

/// Compiles the classes that statements call by `reflect` into a directory. Returns the setting of Spark for them.
fn called(spark: &Spark, dir: &Path) -> Result<Vec<String>> {
    let sources = [
        (
            "Neighbours.java",
            include_str!("../../assets/Neighbours.java"),
        ),
        (
            "Locks.java",
            include_str!("../../../tests/programs/Locks.java"),
        ),
    ];
    spark.compile(&sources, dir)?;
    Ok(vec![format!(
        "spark.driver.extraClassPath={}",
        dir.display()
    )])
}

/// Runs all victims of a part's panel beside all subsets and writes its page.
pub fn measure(asked: &Contention, part: Part, spark: &Spark, results: &Path) -> Result<()> {
    let panel = Panel::of(part).context("a panel of neighbours")?;
    if asked.runs < 2 {
        bail!("neighbours of equal overlap need at least 2 --runs, for the noise of the truth");
    }
    let page = Measuring::begin(results, panel.page, &MEASURES)?;
    let files = panel.reads_files.then(|| Files::new(spark.scratch()));
    let files = files.transpose()?;
    let texts = Texts::new(panel, spark, files.as_ref())?;
    let count = asked.runs as usize * panel.victims.len() * usize::from(panel.subsets());
    let bar = ProgressBar::new(count as u64).with_style(ProgressStyle::with_template(
        "[{bar:24}] {pos} of {len} runs of a victim, {elapsed}",
    )?);
    let mut random = Random(asked.seed);
    let pools = panel.neighbours.iter().enumerate();
    let pools: Vec<_> = pools
        .map(|(number, one)| (pool(number), one.weight))
        .collect();
    let tool = tool(spark, &pools)?;
    let mut scores = Scores::new(panel);
    for (victim, sql) in &texts.victims {
        let server = Server::start(spark, &tool, panel.slots, panel.heap)?;
        let slow = |files: &Files| SlowDisk::new(files.dir(), server.pid(), DISK_BYTES);
        let slow = files.as_ref().map(slow).transpose()?;
        let trial = |repeat, subset| Trial {
            repeat,
            victim,
            subset,
        };
        // Until the JVM has compiled most of them.
        for (repeat, subset) in [
            (u32::MAX, panel.subsets() - 1),
            (u32::MAX, 0),
            (u32::MAX - 1, 0),
        ] {
            trial(repeat, subset).run(&server, &texts, sql)?;
        }
        let mut ran = Vec::new();
        for repeat in 0..asked.runs {
            let mut subsets: Vec<u8> = (0..panel.subsets()).collect();
            random.shuffle(&mut subsets);
            for subset in subsets {
                let trial = trial(repeat, subset);
                ran.push((trial, trial.run(&server, &texts, sql)?));
                bar.inc(1);
            }
        }
        let recorded = Recorded::from_server(server)?;
        drop(slow);
        let by_use = recorded.workload.by_use()?;
        let answers = recorded.by_use(|recorded| {
            let blame = |(trial, _): &(Trial, Times)| recorded.blame(spark, &trial.name());
            ran.iter().map(blame).collect::<Result<Vec<_>>>()
        })?;
        for ((trial, times), answer_by_use) in ran.into_iter().zip(answers) {
            let name = trial.name();
            let time = VictimTime {
                execution_s: recorded.time(&name)?,
                client_s: times.get(&name).context("the victim ran")?.seconds(),
            };
            let answers = [recorded.blame(spark, &name)?, answer_by_use];
            scores.add(trial, time, said(&recorded, &by_use, &answers, trial)?);
            let victim = recorded.workload.query(&name)?;
            let [counted, shared] = [&recorded.workload, &by_use].map(|from| from.queued(victim));
            scores.compare(counted, &shared.0);
        }
        if let Some(dir) = &asked.keep {
            let kept = dir.join(format!("{}-{}", panel.page, slug(victim)));
            fs::create_dir_all(dir)?;
            let moved = fs::rename(recorded.profile(), &kept);
            moved.with_context(|| format!("cannot keep a profile as {}", kept.display()))?;
        }
    }
    bar.finish_and_clear();
    page.finish(asked.runs, scores.figures(), &scores.body(asked))
}

/// What each method says about the neighbours of a trial. `answers` are those of `unfuse blame` with what the kernel counted, and
/// without it.
fn said(
    run: &Recorded,
    by_use: &RecordedWorkload,
    answers: &[Value; 2],
    trial: Trial,
) -> Result<Vec<(usize, Said)>> {
    let recorded = &run.workload;
    let workload = &recorded.workload;
    let victim = recorded.query(&trial.name())?;
    let victims = [victim].into();
    let overlaps = [
        baseline::naive_overlap(workload, &victims, None),
        baseline::deep_overlap(workload, &victims, None),
    ];
    let one = |number: usize| {
        let query = recorded.query(&trial.neighbour(number))?;
        let name = format!("query {}", run.name(&trial.neighbour(number))?);
        let sooner = |answer: &Value| {
            let rows = answer["ranked"].as_array();
            let row = rows.into_iter().flatten().find(|row| {
                let text = row["name"].as_str().unwrap_or_default();
                text.starts_with(&name) && has_name(text, &name)
            });
            row.map_or([0.0; 3], victim_seconds)
        };
        let [sooner, sooner_by_use] = [&answers[0], &answers[1]].map(sooner);
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
                sooner,
                sooner_by_use,
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
