//! The text of `unfuse doctor --report`, for an issue.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use nix::sys::utsname::uname;
use unfuse_postprocess::plain;
use unfuse_profiler::perf_event;

use super::checks::{Checks, Outcome, paranoid};
use super::redact::Secrets;

/// Capabilities that matter for profiling: names and bits (linux/capability.h).
const CAPABILITIES: [(&str, u32); 6] = [
    ("DAC_OVERRIDE", 1),
    ("SETUID", 7),
    ("SYS_PTRACE", 19),
    ("SYS_ADMIN", 21),
    ("PERFMON", 38),
    ("BPF", 39),
];

/// One block of Markdown.
pub(super) fn render(checks: &Checks) -> String {
    let secrets = Secrets::find();
    let mut text = "```text\n".to_owned();
    for (what, value) in facts() {
        line(&mut text, what, &secrets.redact(&value));
    }
    for java in &checks.javas {
        let program = secrets.redact(&java.program.display().to_string());
        line(&mut text, "java", &format!("{} ({program})", java.version));
    }
    for program in &checks.sparks {
        let version = spark_version(program).unwrap_or_else(|| "unknown version".to_owned());
        let program = secrets.redact(&program.display().to_string());
        line(&mut text, "spark", &format!("{version} ({program})"));
    }
    let problems: Vec<_> = checks
        .findings()
        .filter(|of| of.outcome != Outcome::Ok)
        .collect();
    if problems.is_empty() {
        line(&mut text, "failed checks", "none");
    }
    for problem in problems {
        let what = match problem.outcome {
            Outcome::Failed => "FAILED",
            _ => "note",
        };
        line(&mut text, what, &secrets.redact(&problem.text));
    }
    text.push_str("```\n");
    text
}

/// Adds a fact. Text of another program cannot end the Markdown block.
fn line(text: &mut String, what: &str, value: &str) {
    let value = plain::line(value).replace("```", "'''");
    let _ = writeln!(text, "{what:<20} {value}");
}

/// Facts about this machine as name and value, not yet redacted.
fn facts() -> Vec<(&'static str, String)> {
    let unknown = || "unknown".to_owned();
    let system = uname().ok();
    let kernel = system.as_ref().map_or_else(unknown, |system| {
        format!(
            "{} {} {}",
            system.sysname().to_string_lossy(),
            system.release().to_string_lossy(),
            system.machine().to_string_lossy()
        )
    });
    let cpus = std::thread::available_parallelism().map_or_else(|_| unknown(), |n| n.to_string());
    let memory = value_of("/proc/meminfo", "MemTotal")
        .and_then(|text| text.trim_end_matches("kB").trim().parse::<u64>().ok())
        .map_or_else(unknown, |kib| format!("{} MiB", kib >> 10));
    let probe = match perf_event::probe() {
        Ok(()) if perf_event::probe_switches() => "works, with context switches".to_owned(),
        Ok(()) => "works, without context switches".to_owned(),
        Err(error) => format!("denied: {error}"),
    };
    let is_root = nix::unistd::geteuid().is_root();
    vec![
        ("unfuse", env!("CARGO_PKG_VERSION").to_owned()),
        ("kernel", kernel),
        ("system", distribution().unwrap_or_else(unknown)),
        ("libc", libc().unwrap_or_else(unknown)),
        ("cpus, memory", format!("{cpus}, {memory}")),
        (
            "runs as",
            if is_root { "root" } else { "a user" }.to_owned(),
        ),
        ("container", container().to_owned()),
        ("cgroup", cgroup()),
        ("capabilities", capabilities().unwrap_or_else(unknown)),
        (
            "seccomp",
            value_of("/proc/self/status", "Seccomp").unwrap_or_else(unknown),
        ),
        ("perf_event_paranoid", paranoid()),
        ("perf_event_open", probe),
    ]
}

/// The value behind `NAME:` in a file of the kernel.
fn value_of(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = lines.find(|(key, _)| *key == name)?;
    Some(value.trim().to_owned())
}

fn distribution() -> Option<String> {
    let text = fs::read_to_string("/etc/os-release").ok()?;
    let mut lines = text.lines().filter_map(|line| line.split_once('='));
    let (_, name) = lines.find(|(key, _)| *key == "PRETTY_NAME")?;
    Some(name.trim_matches('"').to_owned())
}

/// The name and version of the C library, as `ldd` prints them.
fn libc() -> Option<String> {
    let output = std::process::Command::new("ldd")
        .arg("--version")
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Some(text.lines().next()?.to_owned())
}

fn container() -> &'static str {
    let marks = ["/.dockerenv", "/run/.containerenv"];
    let is_marked = marks.iter().any(|mark| Path::new(mark).exists());
    if is_marked || std::env::var_os("KUBERNETES_SERVICE_HOST").is_some() {
        "yes"
    } else {
        "not detected"
    }
}

/// The version of control groups and the limits of this one. Its path is left out, because it can
/// name users and containers.
fn cgroup() -> String {
    if !Path::new("/sys/fs/cgroup/cgroup.controllers").exists() {
        return "v1 or none".to_owned();
    }
    let limit = |name: &str| {
        let group = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let path = group.trim().strip_prefix("0::").unwrap_or("").to_owned();
        let file = format!("/sys/fs/cgroup{path}/{name}");
        let text = fs::read_to_string(file);
        text.map_or_else(|_| "not set".to_owned(), |text| text.trim().to_owned())
    };
    format!(
        "v2, cpu.max {}, memory.max {}",
        limit("cpu.max"),
        limit("memory.max")
    )
}

fn capabilities() -> Option<String> {
    let bits = u64::from_str_radix(&value_of("/proc/self/status", "CapEff")?, 16).ok()?;
    let has = |(_, bit): &&(&str, u32)| bits >> bit & 1 == 1;
    let names: Vec<&str> = CAPABILITIES
        .iter()
        .filter(has)
        .map(|(name, _)| *name)
        .collect();
    Some(match names.as_slice() {
        [] => "none of those that matter".to_owned(),
        names => names.join(" "),
    })
}

/// The version of Spark, from the name of its main jar.
fn spark_version(submit: &Path) -> Option<String> {
    let jars = crate::remote::jars_beside(submit)?;
    let names = fs::read_dir(jars).ok()?.flatten();
    names.into_iter().find_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let rest = name.strip_prefix("spark-core_")?.strip_suffix(".jar")?;
        let (scala, version) = rest.split_once('-')?;
        Some(format!("{version}, Scala {scala}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_names_no_user_host_or_home() {
        let text = render(&Checks::run(false));
        assert!(text.starts_with("```text\nunfuse") && text.ends_with("\n```\n"));
        assert_eq!(text.matches("```").count(), 2);
        for fact in [
            "kernel",
            "perf_event_paranoid",
            "capabilities",
            "cgroup",
            "java",
        ] {
            assert!(
                text.contains(&format!("\n{fact} ")),
                "{fact} is missing:\n{text}"
            );
        }
        let home = std::env::var("HOME").unwrap();
        assert!(!text.contains(&format!("{home}/")), "{text}");
        let host = nix::unistd::gethostname().unwrap();
        let host = host.to_string_lossy();
        let is_word = |c: char| c.is_alphanumeric() || c == '-';
        assert!(
            text.split(|c| !is_word(c)).all(|word| word != host),
            "{text}"
        );
    }
}
