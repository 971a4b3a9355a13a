//! `unfuse doctor`: what works here, and what to do about what does not.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use unfuse_machine as machine;
use unfuse_profiler::perf_event;

use crate::setup;
use crate::trial::agent_loads;

/// Check whether profiling works here: perf_event_open, JDKs, Spark
#[derive(Debug, Args)]
pub struct Doctor {}

#[derive(Default)]
struct Findings {
    failures: u32,
}

impl Findings {
    fn good(&self, text: impl std::fmt::Display) {
        println!("  ok    {text}");
    }

    fn note(&self, text: impl std::fmt::Display, advice: &str) {
        println!("  note  {text}");
        println!("        {advice}");
    }

    fn bad(&mut self, text: impl std::fmt::Display, advice: &str) {
        self.failures += 1;
        println!("  FAIL  {text}");
        println!("        {advice}");
    }
}

impl Doctor {
    /// Prints the findings; exit code 1 if profiling cannot work.
    pub fn execute(self) -> Result<ExitCode> {
        let mut findings = Findings::default();
        println!("Sampling");
        sampling(&findings);
        println!("Agent");
        let library = machine::agent_library();
        match &library {
            Ok(path) => findings.good(path.display()),
            Err(e) => findings.bad(format!("{e:#}"), "Without it nothing can be profiled."),
        }
        println!("Java");
        javas(&mut findings, library.ok().as_deref());
        println!("Spark");
        sparks(&findings);
        if findings.failures > 0 {
            println!("\nProfiling will not work here until what FAILs is mended.");
            return Ok(ExitCode::FAILURE);
        }
        println!("\nProfiling works here. Try: unfuse demo");
        Ok(ExitCode::SUCCESS)
    }
}

fn sampling(findings: &Findings) {
    let user = nix::unistd::User::from_uid(nix::unistd::getuid())
        .ok()
        .flatten()
        .map_or_else(|| nix::unistd::getuid().to_string(), |user| user.name);
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid")
        .map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned());
    match perf_event::probe() {
        Ok(()) => {
            findings.good(format!(
                "perf_event_open works for user {user} (kernel.perf_event_paranoid is {paranoid})"
            ));
            if !perf_event::probe_switches() {
                findings.note(
                    "context switches cannot be sampled",
                    "How long threads wait is known, but not always where. To allow it: \
                     sysctl kernel.perf_event_paranoid=1",
                );
            }
        }
        Err(e) => findings.note(
            format!(
                "perf_event_open is denied for user {user}: {e} (kernel.perf_event_paranoid is {paranoid})"
            ),
            "CPU timers inside the JVM are used instead; profiles look the same, at the scheduler's \
             tick, without waits.\n        To allow it: sysctl kernel.perf_event_paranoid=2; in a container add the \
             capability PERFMON and\n        a seccomp profile that allows perf_event_open.",
        ),
    }
}

fn javas(findings: &mut Findings, library: Option<&Path>) {
    let javas = machine::javas();
    if javas.is_empty() {
        findings.bad(
            "no Java found in JAVA_HOME, the PATH or /usr/lib/jvm",
            "Install a JDK 17 or newer (Debian: apt-get install openjdk-17-jdk).",
        );
    }
    for java in javas {
        let shown = format!("Java {} ({})", java.version, java.program.display());
        if java.release < 17 {
            findings.note(
                shown,
                "The agent is made for Java 17 and newer; it may work.",
            );
        } else if let Some(library) = library {
            match agent_loads(&java, library) {
                Ok(()) => findings.good(format!("{shown}: the agent loads")),
                Err(text) => findings.bad(
                    format!("{shown}: the agent does not load: {text}"),
                    "Use another JDK (HotSpot, 64 bit, same libc as unfuse).",
                ),
            }
        }
    }
}

fn sparks(findings: &Findings) {
    let found = setup::spark_submits();
    for program in &found {
        findings.good(program.display());
    }
    if found.is_empty() {
        findings.note(
            "no spark-submit in SPARK_HOME or the PATH",
            "Give its path to `unfuse run`, or let `unfuse demo` install one in the cache directory.",
        );
    }
}
