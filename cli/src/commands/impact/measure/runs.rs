//! Runs the command at each scheme.

use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use unfuse_files::{Access, Directory};
use unfuse_impact::Row;
use unfuse_machine::guardian::{Guardian, end_all};
use unfuse_machine::storage;
use unfuse_profiler::perf_event;

use super::super::{PROFILES, RUNS};
use super::levels::{Cpu, Disk, SchemeLevels};
use super::machine::{Machine, within};
use super::plan::{Plan, caveat, uncounted};
use super::stop;

/// The folder for the output of the runs.
const LOGS: &str = "logs";
/// Interval at which the end of a run is checked. This bounds the error of its time.
const LOOK: Duration = Duration::from_millis(5);
/// How long processes that a run started may run longer than it.
const PATIENCE: Duration = Duration::from_secs(10);
/// The share of periods in which the limit must have throttled the job to mean anything.
const FELT: f64 = 0.1;

/// Makes all runs. Returns the number of the signal that stopped them, if one did.
pub(super) fn make(plan: &Plan, mut machine: Machine) -> Result<Option<u8>> {
    let table = plan.out.join(RUNS);
    if table.exists() {
        bail!(
            "{} exists already; choose another directory with -o",
            table.display()
        );
    }
    let out = Directory::create(&plan.out, Access::Private)
        .context("cannot write the runs; choose another directory with -o")?;
    let logs = out.create_folder(LOGS, Access::Private)?;
    stop::watch();
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["impact", "guard"]);
    let mut guardian = Guardian::start(command)?;
    crate::say!("unfuse: {}", caveat(&plan.levels));
    if let Some(why) = uncounted() {
        crate::say!("unfuse: {why}");
    }
    let prepared = machine.prepare(&plan.levels, &mut guardian);
    let made = prepared.and_then(|()| Session::new(plan, &machine, &out, logs)?.all());
    // Restores the settings also after an error.
    let restored = guardian.restore();
    let stopped = made?;
    restored?;
    Ok(stopped)
}

struct Session<'a> {
    plan: &'a Plan,
    machine: &'a Machine,
    table: csv::Writer<File>,
    logs: Directory,
    bar: ProgressBar,
    made: usize,
    /// At the base scheme: number of throttled periods, and of all periods.
    throttled: (u64, u64),
}

/// The result of a run.
enum Outcome {
    Took(Row),
    Stopped(u8),
}

impl<'a> Session<'a> {
    fn new(plan: &'a Plan, machine: &'a Machine, out: &Directory, logs: Directory) -> Result<Self> {
        let table = out
            .create_file(RUNS)
            .with_context(|| format!("cannot write {}", plan.out.join(RUNS).display()))?;
        let runs = plan.order().len() + plan.warm_up as usize;
        let style = ProgressStyle::with_template("{bar:24} {pos}/{len} {msg}  {elapsed}")?;
        Ok(Self {
            plan,
            machine,
            table: csv::Writer::from_writer(table),
            logs,
            bar: ProgressBar::new(runs as u64).with_style(style),
            made: 0,
            throttled: (0, 0),
        })
    }

    fn all(mut self) -> Result<Option<u8>> {
        self.bar.enable_steady_tick(Duration::from_secs(1));
        let runs = self
            .plan
            .warm_ups()
            .into_iter()
            .map(|chosen| (chosen, false));
        let runs: Vec<_> = runs
            .chain(self.plan.order().into_iter().map(|chosen| (chosen, true)))
            .collect();
        for (chosen, counts) in runs {
            let what = if counts { "" } else { " (warm-up)" };
            self.bar.set_message(format!("{}{what}", chosen.scheme()));
            match self.one(&chosen, counts)? {
                Outcome::Took(row) if counts => {
                    self.table.serialize(row)?;
                    self.table.flush()?;
                }
                Outcome::Took(_) => {}
                Outcome::Stopped(signal) => {
                    self.bar.finish_and_clear();
                    crate::say!(
                        "unfuse: stopped. The settings are restored; the runs so far are in {}",
                        self.plan.out.display()
                    );
                    return Ok(Some(signal));
                }
            }
            self.bar.inc(1);
        }
        self.bar.finish_and_clear();
        let (throttled, periods) = self.throttled;
        if matches!(self.plan.levels.cpu, Cpu::Bandwidth(_))
            && periods > 0
            && (throttled as f64) < FELT * periods as f64
        {
            crate::say!(
                "unfuse: at the base scheme the CPU limit held the job back in only {:.0}% of its time. CRI is small then for any \
                 job. Choose a lower base: --schemes cpu=…",
                100.0 * throttled as f64 / periods as f64
            );
        }
        Ok(None)
    }

    fn one(&mut self, chosen: &SchemeLevels, counts: bool) -> Result<Outcome> {
        for setting in self.machine.settings(chosen)? {
            setting.apply()?;
        }
        if chosen.disk != Disk::Ram {
            for input in &self.machine.inputs {
                storage::forget(&input.files)?;
            }
        }
        self.made += 1;
        let scheme = chosen.scheme();
        let name = scheme.to_string().replace('/', "_");
        let name = format!("{:03}-{name}.log", self.made);
        let log = self.logs.path().join(&name);
        let output = self
            .logs
            .create_file(&name)
            .with_context(|| format!("cannot write {}", log.display()))?;
        let mut command = self.command(chosen, counts, output)?;
        let before = Counters::read(self.machine);
        let begun = Instant::now();
        let child = command.spawn().context("cannot start the command")?;
        // Opened before the command has started anything. A missing PMU was reported already.
        let hardware = perf_event::Counters::open(child.id()).ok();
        let ended = wait(child)?;
        let took = begun.elapsed();
        let after = Counters::read(self.machine);
        self.clear();
        let status = match ended {
            CommandEnd::Stopped(signal) => return Ok(Outcome::Stopped(signal)),
            CommandEnd::With(status) => status,
        };
        if !status.success() {
            self.bar.finish_and_clear();
            bail!(
                "{}",
                failure(
                    status,
                    &scheme.to_string(),
                    &log,
                    self.table.get_ref().metadata()?.len() > 0
                )
            );
        }
        if counts && *chosen == self.plan.schemes[0] {
            let now = after.throttled.unwrap_or_default();
            let then = before.throttled.unwrap_or_default();
            self.throttled.0 += now.0.saturating_sub(then.0);
            self.throttled.1 += now.1.saturating_sub(then.1);
        }
        let part = |used: Option<Duration>, of: f64| {
            // Time and counter are not read at the same moment, so the share could exceed 1.
            used.map(|used| (used.as_secs_f64() / (took.as_secs_f64() * of)).min(1.0))
        };
        let counted = hardware.and_then(|hardware| hardware.read());
        let cpus = match self.plan.levels.cpu {
            Cpu::Bandwidth(_) => chosen.cpu,
            Cpu::Frequency(_) => std::thread::available_parallelism().map_or(1, usize::from) as f64,
        };
        Ok(Outcome::Took(Row {
            workload: String::new(),
            cpu: scheme.cpu,
            disk: scheme.disk,
            network: scheme.network,
            seconds: took.as_secs_f64(),
            cpu_util: part(between(before.cpu, after.cpu), cpus),
            // A rate limit, or a copy in memory, keeps the disk idle. Its utilisation then does not
            // describe the job.
            disk_util: part(between(before.disk, after.disk), 1.0)
                .filter(|_| chosen.disk == Disk::AsIs),
            network_util: None,
            ipc: counted.map(|counted| counted.instructions_per_cycle),
            stalled: counted
                .and_then(|counted| counted.stalled)
                .map(|part| part.min(1.0)),
        }))
    }

    fn command(&self, chosen: &SchemeLevels, counts: bool, output: File) -> Result<Command> {
        let mut command = within(&self.machine.confinement(chosen))?;
        if self.plan.profile && counts {
            command.arg(std::env::current_exe()?);
            command
                .args(["run", "--output"])
                .arg(self.profile_dir(chosen))
                .arg("--");
        }
        command
            .args(&self.plan.command)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            // A group of its own: Ctrl-C reaches this process only, which ends the run.
            .process_group(0);
        Ok(command)
    }

    fn profile_dir(&self, chosen: &SchemeLevels) -> PathBuf {
        let dir = self
            .plan
            .out
            .join(PROFILES)
            .join(chosen.scheme().to_string());
        dir.join(format!("{:03}", self.made))
    }

    /// Waits for processes that outlive the command, and ends those that take too long.
    fn clear(&self) {
        let Some(group) = &self.machine.group else {
            return;
        };
        let Some(dir) = group.dirs().into_iter().next() else {
            return;
        };
        let begun = Instant::now();
        let is_empty =
            || fs::read_to_string(dir.join("cgroup.procs")).is_ok_and(|text| text.is_empty());
        while !is_empty() && begun.elapsed() < PATIENCE && stop::asked().is_none() {
            sleep(LOOK);
        }
        if !is_empty() && end_all(&dir) > 0 {
            self.bar.suspend(|| {
                crate::say!(
                    "unfuse: ended processes that ran {} s longer than the command",
                    PATIENCE.as_secs()
                );
            });
        }
    }
}

enum CommandEnd {
    With(ExitStatus),
    Stopped(u8),
}

/// Waits for the command. Ends it if this process was asked to stop.
fn wait(mut child: Child) -> Result<CommandEnd> {
    let group = Pid::from_raw(child.id().cast_signed());
    let mut asked: Option<(u8, Instant)> = None;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(match asked {
                Some((signal, _)) => CommandEnd::Stopped(signal),
                None => CommandEnd::With(status),
            });
        }
        match (stop::asked(), asked) {
            (Some(signal), None) => {
                let _ = killpg(group, Signal::SIGTERM);
                asked = Some((signal, Instant::now()));
            }
            (_, Some((_, since))) if since.elapsed() > PATIENCE => {
                let _ = killpg(group, Signal::SIGKILL);
            }
            _ => {}
        }
        sleep(LOOK);
    }
}

/// Counters that are read before and after a run.
struct Counters {
    cpu: Option<Duration>,
    disk: Option<Duration>,
    throttled: Option<(u64, u64)>,
}

impl Counters {
    fn read(machine: &Machine) -> Self {
        let group = machine.group.as_ref();
        Self {
            cpu: group.and_then(|group| group.used()),
            // Reads the first disk only. Nearly always there is only one.
            disk: machine.devices.first().and_then(|device| device.busy()),
            throttled: group.and_then(|group| group.throttled()),
        }
    }
}

fn between(before: Option<Duration>, after: Option<Duration>) -> Option<Duration> {
    Some(after?.saturating_sub(before?))
}

fn failure(status: ExitStatus, scheme: &str, log: &Path, kept: bool) -> String {
    let how = match (status.code(), status.signal()) {
        (Some(code), _) => format!("with exit code {code}"),
        (None, signal) => format!("by signal {}", signal.unwrap_or(0)),
    };
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let last = lines[lines.len().saturating_sub(3)..].join("\n  ");
    let kept = if kept { "; earlier runs are kept" } else { "" };
    format!(
        "the command ended {how} at {scheme}{kept}. Its output is in {}, and ends with:\n  {last}",
        log.display()
    )
}
