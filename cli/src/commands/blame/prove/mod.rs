//! `unfuse blame --prove`: holds a query back in random slices of time, and compares another query's progress.

mod queries;
mod tasks;

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Result, bail};
use clap::Args;
use nix::sys::signal::Signal;
use unfuse_contention::{Proof, ProofPair, ProofSlice};
use unfuse_format::units;
use unfuse_machine::guardian::{Guardian, Undo};
use unfuse_machine::priority::may_release;
use unfuse_machine::signals::IgnoredSignal;
use unfuse_report::blame::{Experiment, ProofAnswer};

use self::queries::{Application, RunningQuery};
use self::tasks::{Pair, Seen, Tasks};
use crate::output::print;
use crate::remote;

/// Time between two looks at the tasks.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The shortest and the longest slice, ms.
const SLICE_MS: [u64; 2] = [500, 1500];
/// How long threads may be held back if this process is stopped.
const LEASE: Duration = Duration::from_secs(2);
/// How long a query may run no task before it counts as one that runs none.
const PATIENCE: Duration = Duration::from_secs(10);

/// The options of the experiment.
#[derive(Debug, Args)]
pub(super) struct Prove {
    /// Try it: hold this running query back in random slices of half a second to 1.5 s, by the priority of its tasks' threads, and
    /// compare how fast the victim progresses. The application must run on this host, and it needs root. Everything is restored
    /// at the end, also if unfuse is killed
    #[arg(
        long,
        value_name = "QUERY",
        requires = "victim",
        conflicts_with_all = ["follow", "graph", "alert", "folded", "since", "until", "window", "resource", "host", "user", "pool"]
    )]
    prove: Option<String>,
    /// How long to try, with --prove
    #[arg(long = "for", value_name = "DURATION", default_value = "30s", value_parser = length, requires = "prove")]
    length: Duration,
}

/// The length of an experiment, of a command line.
fn length(text: &str) -> Result<Duration, String> {
    let length = units::parse_duration(text)?;
    match length.as_secs() {
        10..=600 => Ok(length),
        _ => Err("a duration from 10s to 10m is expected".to_owned()),
    }
}

impl Prove {
    /// The query to hold back, if the experiment is asked for.
    pub(super) fn culprit(&self) -> Option<&str> {
        self.prove.as_deref()
    }

    /// Makes the experiment and prints what came of it.
    pub(super) fn execute(
        &self,
        dir: &Path,
        (victim, culprit): (&str, &str),
        (json, output): (bool, Option<&Path>),
    ) -> Result<ExitCode> {
        if remote::is_uri(dir) {
            bail!(
                "--prove needs the profile's directory on the host where the application runs, and not a URI"
            );
        }
        let application = Application::running(dir)?;
        let (victim, culprit) = (application.query(victim)?, application.query(culprit)?);
        if victim.query.execution == culprit.query.execution {
            bail!("the victim is the query to hold back; --prove needs another one");
        }
        if !may_release() {
            bail!(
                "holding threads back needs the right to raise their priority again: root, or CAP_SYS_NICE (in a container: \
                 --cap-add SYS_NICE)"
            );
        }
        let mut trial = Trial::begin(&application, &victim, &culprit)?;
        crate::say!(
            "unfuse: holding query {} back in random slices for {} s; Ctrl-C stops and restores everything",
            culprit.query.execution,
            self.length.as_secs()
        );
        let made = trial.run(self.length);
        // Restores also after an error.
        let restored = trial.end();
        made?;
        restored?;
        let answer = trial.answer(&application, victim, culprit);
        print(output, json, &answer, || answer.render())?;
        Ok(ExitCode::SUCCESS)
    }
}

/// An experiment that runs.
struct Trial {
    tasks: Tasks,
    guardian: Option<Guardian>,
    pairs: Vec<ProofPair>,
    held: Duration,
    /// When tasks of the victim and of the culprit were last seen.
    seen: [Instant; 2],
    /// Writing to a guardian that has ended is then an error with a message.
    _pipe: IgnoredSignal,
}

impl Trial {
    /// Waits until both queries run tasks, and starts the guardian.
    fn begin(
        application: &Application,
        victim: &RunningQuery,
        culprit: &RunningQuery,
    ) -> Result<Self> {
        for jvm in &application.jvms {
            if !jvm.held_back().is_empty() {
                bail!(
                    "threads of process {0} run at idle priority already, so none of them can be held back. If no one else does \
                     that: chrt --all-tasks --other --pid 0 {0}",
                    jvm.pid
                );
            }
        }
        let queries = Pair {
            victim: victim.query.execution,
            culprit: culprit.query.execution,
        };
        let mut tasks = Tasks::new(application.jvms.clone(), queries);
        wait_for(&mut tasks, queries)?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["impact", "guard"]);
        let mut guardian = Guardian::start(command)?;
        for jvm in &application.jvms {
            guardian.will(&Undo::Priority(*jvm))?;
        }
        Ok(Self {
            tasks,
            guardian: Some(guardian),
            pairs: Vec::new(),
            held: Duration::ZERO,
            seen: [Instant::now(); 2],
            _pipe: IgnoredSignal::new(Signal::SIGPIPE),
        })
    }

    /// Makes pairs of slices, until the time is over or one of the queries has ended.
    fn run(&mut self, length: Duration) -> Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < length && !self.is_over() {
            let [shortest, longest] = SLICE_MS;
            let slice = Duration::from_millis(shortest + random() % (longest - shortest));
            let held_first = random().is_multiple_of(2);
            let (first, seen_first) = self.slice(slice, held_first)?;
            let (second, seen_second) = self.slice(slice, !held_first)?;
            // Without tasks of both queries there is nothing to compare.
            if seen_first.or(seen_second).has_both() && !self.tasks.have_ended() {
                let (held, free) = match held_first {
                    true => (first, second),
                    false => (second, first),
                };
                self.pairs.push(ProofPair { free, held });
            }
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.tasks.have_ended() || self.seen.iter().any(|seen| seen.elapsed() > PATIENCE)
    }

    /// One slice: what the queries used in it, and which tasks ran.
    fn slice(&mut self, length: Duration, hold: bool) -> Result<(ProofSlice, Seen)> {
        self.tasks.look(false)?;
        self.tasks.take();
        let begun = Instant::now();
        while begun.elapsed() < length && !self.tasks.have_ended() {
            // Without a guardian, nothing is held back.
            if let Some(guardian) = &mut self.guardian {
                guardian.expect_again_within(LEASE)?;
                self.tasks.look(hold)?;
            }
            sleep(LOOK_EVERY.min(length.saturating_sub(begun.elapsed())));
        }
        self.tasks.look(hold)?;
        let seconds = begun.elapsed().as_secs_f64();
        if hold {
            self.tasks.release()?;
            self.held += begun.elapsed();
        }
        let (used, seen) = self.tasks.take();
        let now = Instant::now();
        for (last, ran) in self.seen.iter_mut().zip([seen.victim, seen.culprit]) {
            if ran {
                *last = now;
            }
        }
        Ok((ProofSlice { seconds, ..used }, seen))
    }

    /// Restores everything.
    fn end(&mut self) -> Result<()> {
        let released = self.tasks.release();
        let restored = self.guardian.take().map_or(Ok(()), Guardian::restore);
        released.and(restored)
    }

    fn answer(
        self,
        application: &Application,
        victim: RunningQuery,
        culprit: RunningQuery,
    ) -> ProofAnswer {
        let mut notes = vec![
            "progress is the CPU time of the victim's tasks, and holding back takes CPUs only: memory, disks, network and slots are \
             not tried"
                .to_owned(),
        ];
        if application.elsewhere > 0 {
            notes.push(format!(
                "{} other JVMs of the application do not run on this host; their tasks were neither held back nor counted",
                application.elsewhere
            ));
        }
        let started = victim
            .started_ms
            .max(culprit.started_ms)
            .unwrap_or(i64::MAX);
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |now| i64::try_from(now.as_millis()).unwrap_or(0));
        let beside = now.saturating_sub(started).max(0) as f64 / 1e3;
        let held = self.held.as_secs_f64();
        let experiment = Experiment {
            victim: victim.query,
            culprit: culprit.query,
            application: application.id.clone(),
            beside_seconds: (beside - held).max(0.0),
            held_seconds: held,
            notes,
        };
        ProofAnswer::new(experiment, Proof::from_pairs(&self.pairs))
    }
}

/// Waits until both queries run tasks.
fn wait_for(tasks: &mut Tasks, queries: Pair) -> Result<()> {
    let begun = Instant::now();
    let mut seen = Seen::default();
    while !seen.has_both() {
        tasks.look(false)?;
        seen = seen.or(tasks.take().1);
        let missing = match seen.victim {
            true => queries.culprit,
            false => queries.victim,
        };
        if tasks.have_ended() {
            bail!("the application has ended");
        }
        if begun.elapsed() > PATIENCE {
            bail!(
                "query {missing} has run no task on this host for {} s, so there is nothing to compare",
                PATIENCE.as_secs()
            );
        }
        sleep(LOOK_EVERY);
    }
    Ok(())
}

/// A random number: the keys of a new hash map are random.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
