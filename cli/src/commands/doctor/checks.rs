//! The checks of `unfuse doctor`, and their findings.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use unfuse_format::counted;
use unfuse_machine::{self as machine, Java};
use unfuse_profiler::perf_event;

use super::plugin;
use crate::setup;
use crate::trial::agent_loads;

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Ok,
    /// Profiling works, but with less data.
    Note,
    Failed,
}

/// A finding of a check.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) outcome: Outcome,
    pub(super) text: String,
    /// What the user should do; empty if nothing.
    pub(super) advice: &'static str,
}

impl Finding {
    pub(super) fn ok(text: impl Into<String>) -> Self {
        Self::new(Outcome::Ok, text, "")
    }

    pub(super) fn new(outcome: Outcome, text: impl Into<String>, advice: &'static str) -> Self {
        Self {
            outcome,
            text: text.into(),
            advice,
        }
    }
}

/// All findings.
#[derive(Debug)]
pub(super) struct Checks {
    pub(super) sections: Vec<(&'static str, Vec<Finding>)>,
    pub(super) javas: Vec<Java>,
    pub(super) sparks: Vec<PathBuf>,
}

impl Checks {
    /// Checks this machine; with `with_plugin` also for the Spark plugin.
    pub(super) fn run(with_plugin: bool) -> Self {
        let library = machine::agent_library();
        let agent = match &library {
            Ok(path) => Finding::ok(path.display().to_string()),
            Err(e) => Finding::new(
                Outcome::Failed,
                format!("{e:#}"),
                "Profiling needs the agent's library.",
            ),
        };
        let (javas, sparks) = (machine::javas(), setup::spark_submits());
        let mut sections = vec![
            ("Sampling", sampling()),
            ("Agent", vec![agent]),
            ("Java", java(&javas, library.ok().as_deref())),
            ("Spark", spark(&sparks)),
        ];
        if with_plugin {
            sections.push(("Spark plugin", plugin::findings()));
        }
        Self {
            sections,
            javas,
            sparks,
        }
    }

    pub(super) fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.sections.iter().flat_map(|(_, findings)| findings)
    }

    /// Whether profiling cannot work.
    pub(super) fn has_failed(&self) -> bool {
        self.findings()
            .any(|found| found.outcome == Outcome::Failed)
    }

    /// The findings as text.
    pub(super) fn render(&self) -> String {
        let mut text = String::new();
        for (title, findings) in &self.sections {
            let _ = writeln!(text, "{title}");
            for Finding {
                outcome,
                text: found,
                advice,
            } in findings
            {
                let mark = match outcome {
                    Outcome::Ok => "ok",
                    Outcome::Note => "note",
                    Outcome::Failed => "FAIL",
                };
                let _ = writeln!(text, "  {mark:<4}  {found}");
                for line in advice.lines() {
                    let _ = writeln!(text, "        {line}");
                }
            }
        }
        let failed = self.findings().filter(|of| of.outcome == Outcome::Failed);
        text.push_str(&match failed.count() {
            0 => "\nProfiling works here. Try: unfuse demo\n".to_owned(),
            failed => format!(
                "\n{} failed. Fix what FAIL marks before profiling.\n",
                counted(failed, "check")
            ),
        });
        text
    }
}

/// `kernel.perf_event_paranoid`.
pub(super) fn paranoid() -> String {
    std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid")
        .map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
}

fn sampling() -> Vec<Finding> {
    let user = nix::unistd::User::from_uid(nix::unistd::getuid())
        .ok()
        .flatten()
        .map_or_else(|| nix::unistd::getuid().to_string(), |user| user.name);
    let paranoid = paranoid();
    match perf_event::probe() {
        Ok(()) => {
            let works = format!(
                "perf_event_open works for user {user} (kernel.perf_event_paranoid is {paranoid})"
            );
            let mut findings = vec![Finding::ok(works)];
            if !perf_event::probe_switches() {
                findings.push(Finding::new(
                    Outcome::Note,
                    "the kernel does not let unfuse sample context switches",
                    "Profiles have wait times, but not the stack of every wait. To allow it:\n\
                     sysctl kernel.perf_event_paranoid=1",
                ));
            }
            findings
        }
        Err(e) => vec![Finding::new(
            Outcome::Note,
            format!(
                "the kernel denies perf_event_open for user {user}: {e} (kernel.perf_event_paranoid is {paranoid})"
            ),
            "unfuse uses CPU timers in the JVM instead: samples come at the scheduler's tick, and profiles have no waits.\n\
             To allow perf_event: sysctl kernel.perf_event_paranoid=2; in a container add the capability PERFMON and\n\
             a seccomp profile that allows perf_event_open.",
        )],
    }
}

fn java(javas: &[Java], library: Option<&Path>) -> Vec<Finding> {
    if javas.is_empty() {
        return vec![Finding::new(
            Outcome::Failed,
            "no Java found in JAVA_HOME, the PATH or /usr/lib/jvm",
            "Install a JDK 17 or newer (Debian: apt-get install openjdk-17-jdk).",
        )];
    }
    let check = |java: &Java| {
        let shown = format!("Java {} ({})", java.version, java.program.display());
        if java.release < 11 {
            return Some(Finding::new(
                Outcome::Note,
                shown,
                "The agent needs Java 11 or newer.",
            ));
        }
        Some(match agent_loads(java, library?) {
            Ok(()) => Finding::ok(format!("{shown}: the agent loads")),
            Err(text) => Finding::new(
                Outcome::Failed,
                format!("{shown}: the agent does not load: {text}"),
                "Use another JDK (HotSpot, 64 bit, with the same libc as unfuse).",
            ),
        })
    };
    javas.iter().filter_map(check).collect()
}

fn spark(sparks: &[PathBuf]) -> Vec<Finding> {
    if sparks.is_empty() {
        return vec![Finding::new(
            Outcome::Note,
            "no spark-submit in SPARK_HOME or the PATH",
            "Give its path to `unfuse run`, or let `unfuse demo` install Spark in the cache directory.",
        )];
    }
    let found = |program: &PathBuf| Finding::ok(program.display().to_string());
    sparks.iter().map(found).collect()
}
