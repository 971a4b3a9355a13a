//! Exported profiles in the programs that read them. Their results are compared with `unfuse top`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use serde_json::Value;
use unfuse_tests::{Consumers, root, run, top, unfuse};

fn fixture() -> PathBuf {
    root()
        .join("cli/tests/fixtures/canonical")
        .canonicalize()
        .expect("the fixture is there")
}

/// Exports the fixture into a directory of its own.
fn export(format: &str, arguments: &[&str]) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join(format!("profile.{format}"));
    run(unfuse()
        .args(["export", "--format", format, "-o"])
        .arg(&file)
        .arg(fixture())
        .args(arguments));
    (dir, file)
}

/// The values of `top` for each operator of the fixture, by its text in the plan.
fn operators(value: &str) -> BTreeMap<String, f64> {
    let mut sums = BTreeMap::new();
    for row in top(&fixture(), &[]) {
        let detail = row["detail"].as_str().expect("a text");
        if !detail.is_empty() {
            *sums.entry(detail.to_owned()).or_default() += row[value].as_f64().expect("a number");
        }
    }
    sums.retain(|_, sum| *sum > 0.0);
    assert!(sums.len() > 10);
    sums
}

fn stdout(command: &mut Command) -> String {
    String::from_utf8(run(command).stdout).expect("text")
}

fn json(command: &mut Command) -> Value {
    serde_json::from_str(&stdout(command)).expect("JSON")
}

#[test]
fn pprof_counts_the_samples_of_each_operator() {
    let (_dir, file) = export("pprof", &["--level", "operator"]);
    let table = stdout(
        Consumers::get()
            .pprof()
            .args(["-top", "-sample_index=samples"])
            .args(["-nodefraction=0", "-nodecount=100000"])
            .arg(&file),
    );
    // flat, flat%, sum%, cum, cum%, name
    let flat: BTreeMap<String, f64> = table
        .lines()
        .filter_map(|line| {
            let mut columns = line.split_whitespace();
            let flat = columns.next()?.parse().ok()?;
            Some((columns.skip(4).collect::<Vec<_>>().join(" "), flat))
        })
        .collect();
    for (operator, samples) in operators("samples") {
        let spaced = operator.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(flat.get(&spaced), Some(&samples), "{operator} in\n{table}");
    }
}

#[test]
fn pprof_shows_cpu_time_labels_and_generated_source() {
    let (_dir, file) = export("pprof", &[]);
    let pprof = |arguments: &[&str]| stdout(Consumers::get().pprof().args(arguments).arg(&file));
    assert!(pprof(&["-top"]).contains("Type: cpu"));
    let tags = pprof(&["-tags"]);
    for label in ["app", "query", "stage", "operator", "thread"] {
        assert!(
            tags.contains(&format!("{label}: Total")),
            "{label} in {tags}"
        );
    }
    let source = format!("-source_path={}", fixture().display());
    let list = pprof(&["-list", "hashAgg_doAggregateWithKeys", &source]);
    let hot = list
        .lines()
        .find(|line| line.contains("hashAgg_") && line.contains(';') && line.contains("ms"));
    assert!(hot.is_some(), "no line of generated code in {list}");
}

#[test]
fn speedscope_opens_its_format() {
    let (_dir, file) = export("speedscope", &[]);
    let consumers = Consumers::get();
    let schema = consumers.module("speedscope/dist/release/file-format-schema.json");
    let check = root().join("tests/consumers/check.mjs");
    let check = || {
        let mut node = consumers.node();
        node.arg(check.canonicalize().expect("check.mjs is there"));
        node
    };
    run(check().arg("schema").arg(schema).arg(&file));
    let title = stdout(check().arg("speedscope").arg(&file));
    assert_eq!(title.trim(), "unfuse demo - speedscope");
    // It refuses an unknown format, so the check above proves something.
    let other = export("json", &[]);
    let refused = check().arg("speedscope").arg(&other.1).output();
    assert!(!refused.expect("node runs").status.success());
}

#[test]
fn prometheus_reads_each_operator() {
    let (_dir, file) = export("prometheus", &[]);
    let sums = json(
        Consumers::get()
            .python()
            .arg(root().join("tests/consumers/prometheus.py"))
            .arg(&file),
    );
    // By name, those of all queries together.
    let mut expected: BTreeMap<String, f64> = BTreeMap::new();
    for row in top(&fixture(), &[]) {
        let operator = row["operator"].as_str().expect("a name").to_owned();
        *expected.entry(operator).or_default() += row["cpu_seconds"].as_f64().expect("a number");
    }
    expected.retain(|_, seconds| *seconds > 0.0);
    assert!(expected.len() > 5, "{expected:?}");
    for (operator, seconds) in expected {
        let found = sums["unfuse_cpu_seconds"][&operator].as_f64();
        let found = found.unwrap_or_else(|| panic!("no {operator} in {sums:#}"));
        assert!((found - seconds).abs() < 1e-6, "{operator}: {found}");
    }
}

#[test]
fn opentelemetry_decodes_each_operator() {
    let (_dir, file) = export("otlp", &["--level", "operator"]);
    let profiles = json(
        Consumers::get()
            .python()
            .arg(root().join("tests/consumers/otlp.py"))
            .arg(&file),
    );
    let sum = |kind: &str, unit: &str, operator: &str| -> f64 {
        let all = profiles.as_array().expect("an array").iter();
        all.filter(|profile| profile["type"] == kind && profile["unit"] == unit)
            .filter_map(|profile| profile["operators"][operator].as_f64())
            .sum()
    };
    for (operator, samples) in operators("samples") {
        assert_eq!(sum("samples", "count", &operator), samples, "{operator}");
    }
    for (operator, seconds) in operators("cpu_seconds") {
        let ns = sum("cpu", "nanoseconds", &operator);
        assert!(
            (ns / 1e9 - seconds).abs() < 1e-6,
            "{operator}: {ns} ns, {seconds} s"
        );
    }
}

#[test]
fn firefox_profiler_sums_each_operator() {
    let (dir, file) = export("firefox", &["--level", "operator"]);
    let profiler = Profiler::open(dir.path(), &file);
    let mut sums: BTreeMap<String, f64> = BTreeMap::new();
    for thread in profiler.threads() {
        let arguments = ["thread", "functions", "--include-idle", "--limit", "0"];
        let answer = profiler.ask(&[&arguments[..], &["--thread", &thread]].concat());
        for function in answer["functions"].as_array().expect("functions") {
            let name = function["name"].as_str().expect("a name").to_owned();
            *sums.entry(name).or_default() += function["selfSamples"].as_f64().expect("ms");
        }
    }
    for (operator, seconds) in operators("cpu_seconds") {
        let ms = sums.get(&operator).copied().unwrap_or_default();
        assert!(
            (ms / 1e3 - seconds).abs() < 1e-6,
            "{operator}: {ms} ms, {seconds} s"
        );
    }
}

#[test]
fn firefox_profiler_knows_files_lines_and_categories() {
    let (dir, file) = export("firefox", &["--stage", "7"]);
    let profiler = Profiler::open(dir.path(), &file);
    let thread = profiler.threads().remove(0);
    let of = ["--thread", &thread];
    let samples = profiler.ask(&[&["thread", "samples"][..], &of].concat());
    let categories = samples["categoryBreakdown"].to_string();
    for category in ["HashAggregate", "Filter", "No operator"] {
        assert!(categories.contains(category), "{category} in {categories}");
    }
    let search = ["--search", "hashAgg_doAggregateWithKeys"];
    let found = profiler.ask(&[&["thread", "functions"][..], &of, &search].concat());
    let function = found["functions"][0]["functionHandle"].as_str();
    let function = function.expect("generated code");
    let source = profiler.ask(&["function", "annotate", function, "--mode", "src"]);
    let source = &source["srcAnnotation"];
    let file = source["filename"].as_str().expect("a name");
    assert!(file.starts_with("generated_"), "{source}");
    let mut lines = source["lines"].as_array().expect("lines").iter();
    assert!(
        lines.any(|line| line["totalSamples"].as_f64() > Some(0.0)),
        "{source}"
    );
}

#[test]
fn json_is_as_its_schema_says() {
    let (_dir, file) = export("json", &[]);
    check_schema("export", &file);
}

/// Validates a file against a schema that `unfuse schema` prints.
fn check_schema(name: &str, file: &Path) {
    let schema = tempfile::NamedTempFile::new().expect("a file");
    let printed = run(unfuse().args(["schema", name]));
    fs::write(schema.path(), printed.stdout).expect("written");
    let check = root().join("tests/consumers/check.mjs").canonicalize();
    run(Consumers::get()
        .node()
        .arg(check.expect("the file is there"))
        .arg("schema")
        .args([schema.path(), file]));
}

#[test]
fn answers_are_as_their_schemas_say() {
    let fixture = fixture();
    let profile = fixture.to_str().expect("text");
    let dir = tempfile::tempdir().expect("a directory");
    let commands: [(&str, Vec<&str>); 9] = [
        ("top", vec!["top", profile]),
        ("plan", vec!["plan", profile]),
        ("history", vec!["history", "--in", profile]),
        ("why", vec!["why", profile]),
        ("check", vec!["check", profile, "--against", profile]),
        ("what-if", vec!["what-if", profile, "slots=4", "gc=0"]),
        ("advise", vec!["advise", profile]),
        ("blame", vec!["blame", profile]),
        ("skew", vec!["skew", profile]),
    ];
    for (name, arguments) in commands {
        let printed = run(unfuse().args(arguments).arg("--json"));
        let file = dir.path().join(name);
        fs::write(&file, printed.stdout).expect("written");
        check_schema(name, &file);
    }
}

#[test]
fn binary_formats_stay_off_terminals() {
    let pty = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";
    for format in ["pprof", "otlp"] {
        let output = Command::new("python3")
            .args(["-c", pty])
            .arg(unfuse().get_program())
            .args(["export", "--format", format])
            .arg(fixture())
            .output()
            .expect("python3 runs");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("write it to a file with -o FILE"), "{said}");
        assert!(!output.status.success());
    }
}

/// The Firefox Profiler's reader, which keeps running and answers queries.
struct Profiler<'a> {
    sessions: &'a Path,
}

impl<'a> Profiler<'a> {
    fn open(sessions: &'a Path, file: &Path) -> Self {
        let profiler = Self { sessions };
        // The program waits half a second for its own start, which is not always enough.
        let _ = profiler.command(&["load"]).arg(file).output();
        for _ in 0..100 {
            let ready = profiler.command(&["profile", "info"]).output();
            if ready.is_ok_and(|output| output.status.success()) {
                return profiler;
            }
            thread::sleep(Duration::from_millis(100));
        }
        run(&mut profiler.command(&["profile", "info"]));
        profiler
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let consumers = Consumers::get();
        let mut node = consumers.node();
        node.arg(consumers.module("@firefox-devtools/profiler-cli/dist/profiler-cli.js"))
            .args(arguments)
            .env("PROFILER_CLI_SESSION_DIR", self.sessions);
        node
    }

    fn ask(&self, arguments: &[&str]) -> Value {
        json(self.command(arguments).arg("--json"))
    }

    fn threads(&self) -> Vec<String> {
        let info = self.ask(&["profile", "info", "--all"]);
        let processes = info["processes"].as_array().expect("processes").iter();
        processes
            .flat_map(|process| process["threads"].as_array().expect("threads"))
            .map(|thread| {
                thread["threadHandle"]
                    .as_str()
                    .expect("a handle")
                    .to_owned()
            })
            .collect()
    }
}

impl Drop for Profiler<'_> {
    fn drop(&mut self) {
        let _ = self.command(&["stop"]).output();
    }
}
