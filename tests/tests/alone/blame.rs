//! Who slows a query down: queries on real Spark with a known culprit. Containers need root.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use serde_json::Value;
use unfuse_tests::{
    Container, Hdfs, SlowNetwork, ask_number, root, run, spark, spark_submit, unfuse,
};

/// Runs `contention.py` under the profiler.
fn contend(profile: &Path, options: &[&str], case: &str, rows: u64) {
    run(&mut contention(profile, options, case, rows));
}

fn contention(profile: &Path, options: &[&str], case: &str, rows: u64) -> Command {
    let spark = spark("4.3");
    let mut command = spark_submit(&spark, profile, options);
    command
        .arg(root().join("tests/programs/contention.py"))
        .args([case, &rows.to_string()]);
    command
}

pub(super) fn blame(profile: &Path, arguments: &[&str]) -> Value {
    let mut command = unfuse();
    command.arg("blame").arg(profile).arg("--json");
    let output = run(command.args(arguments));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// The id of the query with this description.
pub(super) fn query(profile: &Path, description: &str) -> String {
    let answer = blame(profile, &[]);
    let victims = answer["victims"].as_array().expect("victims");
    let found = victims.iter().find(|victim| {
        victim["label"]
            .as_str()
            .is_some_and(|label| label.ends_with(description))
    });
    found.unwrap_or_else(|| panic!("no query {description}: {answer:#}"))["query"].to_string()
}

/// The part of the victim's blocked time for which the culprit with this name accounts.
fn share(answer: &Value, name: &str) -> f64 {
    let rows = answer["ranked"].as_array().expect("rows");
    rows.iter()
        .filter(|row| {
            row["name"]
                .as_str()
                .is_some_and(|found| found.ends_with(name))
        })
        .filter_map(|row| row["responsibility"].as_f64())
        .sum()
}

/// Checks that the victim would end sooner without the culprit, and not without the idle query.
fn check_sooner(answer: &Value) {
    let rows = answer["ranked"].as_array().expect("rows");
    let [culprit, idle] = ["culprit", "idle"].map(|name| {
        let has_name = |row: &&Value| {
            row["name"]
                .as_str()
                .is_some_and(|found| found.ends_with(name))
        };
        let row = rows.iter().find(has_name);
        row.map_or(0.0, |row| row["victim_seconds"].as_f64().expect("seconds"))
    });
    assert!(culprit > 0.3 && culprit > 5.0 * idle, "{}", ranking(answer));
}

/// What a failed test says of an answer: who accounts for which part.
pub(super) fn ranking(answer: &Value) -> String {
    let rows = answer["ranked"].as_array().into_iter().flatten();
    rows.map(|row| {
        format!(
            "\n{} ({}): {}, {} s",
            row["name"], row["kind"], row["responsibility"], row["victim_seconds"]
        )
    })
    .collect()
}

/// The other query that accounts for most of the victim's blocked time. The victim itself and other processes on this
/// machine may account for more.
fn first_query(answer: &Value) -> &str {
    let rows = answer["ranked"].as_array().expect("rows");
    let others = rows.iter().filter(|row| row["kind"] != "self");
    let mut names = others.filter_map(|row| row["name"].as_str());
    names
        .find(|name| name.starts_with("query"))
        .unwrap_or_else(|| panic!("no query: {answer:#}"))
}

#[test]
fn a_query_that_takes_the_cpu_is_found_and_an_idle_one_is_not() {
    let dir = tempfile::tempdir().expect("a directory");
    let profile = dir.path().join("profile");
    // Slots for all queries, so that only the CPU is scarce.
    contend(&profile, &["--master", "local[24]"], "cpu", 300_000_000);
    let victim = query(&profile, "victim");
    let answer = blame(&profile, &["--victim", &victim]);
    let (culprit, idle) = (share(&answer, "culprit"), share(&answer, "idle"));
    assert!(
        culprit > 0.2 && culprit > 5.0 * idle,
        "{}",
        ranking(&answer)
    );
    assert!(
        first_query(&answer).ends_with("culprit"),
        "{}",
        ranking(&answer)
    );
    check_sooner(&answer);
    let explanations = answer["explanations"].as_array().expect("paths");
    let path = explanations
        .iter()
        .find(|path| {
            path["culprit"]
                .as_str()
                .is_some_and(|name| name.ends_with("culprit"))
        })
        .unwrap_or_else(|| panic!("{}", ranking(&answer)));
    assert_eq!(path["resource"], "CPU", "{}", ranking(&answer));
    assert_eq!(path["operator"], "HashAggregate", "{}", ranking(&answer));
    // The idle query runs for as long, so overlap cannot separate the two.
    let overlap = |name: &str| -> f64 {
        let rows = answer["baselines"]["naive_overlap"]
            .as_array()
            .expect("rows");
        rows.iter()
            .filter(|row| row[0].as_str().is_some_and(|found| found.ends_with(name)))
            .filter_map(|row| row[1].as_f64())
            .sum()
    };
    assert!(
        overlap("idle") > 0.7 * overlap("culprit"),
        "{}",
        ranking(&answer)
    );
    // Parts add up for every grouping.
    for by in ["culprit", "stage", "resource", "kind", "host"] {
        let answer = blame(
            &profile,
            &["--victim", &victim, "--by", by, "--top", "1000"],
        );
        let rows = answer["ranked"].as_array().expect("rows");
        let sum: f64 = rows
            .iter()
            .filter_map(|row| row["responsibility"].as_f64())
            .sum();
        assert!((sum - 1.0).abs() < 1e-6, "{by}: {sum}");
    }
    alerts_name_the_victim_once(&profile, &victim);
    let page = dir.path().join("report.html");
    run(unfuse().arg("report").arg(&profile).arg("-o").arg(&page));
    let page = std::fs::read_to_string(&page).expect("a page");
    assert!(page.contains("id=\"block-contention\""));
    assert!(page.matches("id=\"block-contention-").count() >= 3);
    let paper = blame(&profile, &["--victim", &victim, "--blocked", "paper"]);
    assert!(share(&paper, "culprit") > 0.2, "{paper:#}");
    // The recorded CPU time of tasks agrees with Spark's count.
    let used = ask_number(
        &profile,
        "SELECT sum(units) FROM 'DIR/intervals/*.parquet' WHERE kind = 'cpu'",
    );
    let counted = ask_number(
        &profile,
        "SELECT sum(cpu_ns + deserialize_cpu_ns) / 1e9 FROM 'DIR/tasks/*.parquet'",
    );
    assert!(
        (0.9..1.1).contains(&(used / counted)),
        "{used} s of {counted} s"
    );
}

fn alerts_name_the_victim_once(profile: &Path, victim: &str) {
    let mut command = unfuse();
    command.arg("blame").arg(profile);
    command.args(["--follow", "--every", "1", "--json", "--alert"]);
    let lines = run(command.arg("10%")).stdout;
    let lines = String::from_utf8(lines).expect("text");
    let alerts: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let of_victim: Vec<&Value> = alerts
        .iter()
        .filter(|alert| alert["victim"] == victim)
        .collect();
    let [alert] = of_victim[..] else {
        panic!("{lines}");
    };
    let culprit = alert["main_culprit"].as_str().expect("a name");
    assert!(culprit.ends_with("culprit"), "{lines}");
    assert!(
        alert["by_others"].as_f64().expect("a part") >= 0.1,
        "{lines}"
    );
    let is_idle = |alert: &&Value| {
        alert["label"]
            .as_str()
            .is_some_and(|label| label.ends_with("idle"))
    };
    assert!(!alerts.iter().any(|alert| is_idle(&alert)), "{lines}");
}

#[test]
fn a_query_that_holds_the_slots_is_found() {
    let dir = tempfile::tempdir().expect("a directory");
    let profile = dir.path().join("profile");
    // Slots go to the first query, so the victim waits until the culprit's tasks leave one.
    let answers = std::thread::scope(|scope| {
        let job = scope.spawn(|| {
            contend(&profile, &["--master", "local[3]"], "slots", 200_000_000);
        });
        while !profile.join("unfuse.json").exists() && !job.is_finished() {
            std::thread::sleep(Duration::from_millis(200));
        }
        let mut command = unfuse();
        command
            .arg("blame")
            .arg(&profile)
            .args(["--follow", "--every", "2", "--json"]);
        run(&mut command).stdout
    });
    // It answers while the job runs, as soon as there are tasks, and once more at the end.
    let text = String::from_utf8_lossy(&answers);
    let begin = text.find('{').unwrap_or_else(|| panic!("{text}"));
    let answers: Vec<Value> = serde_json::Deserializer::from_str(&text[begin..])
        .into_iter()
        .collect::<Result<_, _>>()
        .expect("JSON");
    assert!(answers.len() > 3, "{}", answers.len());
    let partial = |answer: &Value| {
        let notes = answer["notes"].as_array().expect("notes");
        notes
            .iter()
            .any(|note| note.as_str().is_some_and(|note| note.contains("partial")))
    };
    let (last, before) = answers.split_last().expect("answers");
    assert!(before.iter().any(partial) && !partial(last), "{text}");
    let victim = query(&profile, "victim");
    // While the culprit's tasks compute, waiting for their slots counts as waiting for the CPU.
    let answer = blame(&profile, &["--victim", &victim]);
    assert!(
        first_query(&answer).ends_with("culprit"),
        "{}",
        ranking(&answer)
    );
}

/// The part of the victim's blocked time that is garbage collection for the culprit with this name.
fn collected_for(answer: &Value, name: &str) -> f64 {
    let rows = answer["ranked"].as_array().expect("rows");
    let of_culprit = rows.iter().filter(|row| {
        row["name"]
            .as_str()
            .is_some_and(|found| found.ends_with(name))
    });
    let collected = of_culprit.filter_map(|row| {
        let operators = row["operators"].as_array()?;
        let collection = operators
            .iter()
            .find(|operator| operator[0] == "garbage collection")?;
        Some(row["responsibility"].as_f64()? * collection[1].as_f64()?)
    });
    collected.sum()
}

/// The answer for the victim of a case in a heap of 1 GB, with all culprits.
fn blame_in_a_small_heap(master: &str, case: &str, rows: u64) -> Value {
    let dir = tempfile::tempdir().expect("a directory");
    let profile = dir.path().join("profile");
    // The cache of the case heap takes most of the heap, so that what it holds counts clearly more than what the victim
    // allocates.
    let cache = "spark.memory.fraction=0.75";
    let options = ["--master", master, "--driver-memory", "1g", "--conf", cache];
    contend(&profile, &options, case, rows);
    let victim = query(&profile, "victim");
    blame(&profile, &["--victim", &victim, "--top", "100"])
}

#[test]
fn garbage_is_blamed_on_the_query_that_made_it() {
    let answer = blame_in_a_small_heap("local[12]", "garbage", 150_000_000);
    let of = |name: &str| collected_for(&answer, name);
    let (culprit, computes) = (of("culprit"), of("computes"));
    assert!(
        culprit > 0.01 && computes < culprit / 5.0,
        "{culprit} {computes} {answer:#}"
    );
    assert!(share(&answer, "GC_Q") < culprit, "{culprit} {answer:#}");
    assert!(
        first_query(&answer).ends_with("culprit"),
        "{}",
        ranking(&answer)
    );
}

/// The culprit has ended when the victim begins.
#[test]
fn a_full_heap_is_blamed_on_the_query_that_filled_it() {
    let answer = blame_in_a_small_heap("local[4]", "heap", 20_000_000);
    let of = |name: &str| collected_for(&answer, name);
    let (culprit, victim) = (of("culprit"), of("victim"));
    assert!(
        culprit > 0.01 && culprit > victim,
        "{culprit} {victim} {answer:#}"
    );
}

/// A process that uses a CPU, or one that sleeps.
pub(super) struct Neighbour(Child);

impl Neighbour {
    /// Runs a script under the name of a program of its own.
    fn start(program: &Path, script: &str) -> Self {
        let mut command = Command::new(program);
        Self::spawn(command.args(["-c", script]))
    }

    /// Runs a command.
    pub(super) fn spawn(command: &mut Command) -> Self {
        Self(command.spawn().expect("a process"))
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A copy of the shell, which is called as the file is.
pub(super) fn program(dir: &Path, name: &str) -> PathBuf {
    let program = dir.join(name);
    fs::copy("/bin/sh", &program).expect("a copy of sh");
    program
}

#[test]
fn a_process_outside_spark_is_found() {
    let dir = tempfile::tempdir().expect("a directory");
    let profile = dir.path().join("profile");
    let cpus = std::thread::available_parallelism().map_or(2, usize::from);
    let (hog, idler) = (program(dir.path(), "hog"), program(dir.path(), "idler"));
    let mut neighbours = Vec::new();
    for _ in 0..3 * cpus {
        neighbours.push(Neighbour::start(&hog, "while :; do :; done"));
        // There for as long, and innocent.
        neighbours.push(Neighbour::start(&idler, "while :; do sleep 0.5; done"));
    }
    // Slots for the idle query too.
    contend(&profile, &["--master", "local[12]"], "alone", 200_000_000);
    drop(neighbours);
    let victim = query(&profile, "victim");
    let answer = blame(&profile, &["--victim", &victim]);
    // The victim's own tasks also wait for each other.
    let rows = answer["ranked"].as_array().expect("rows");
    let first = rows.iter().find(|row| row["kind"] != "self");
    let first = first.unwrap_or_else(|| panic!("no one: {}", ranking(&answer)));
    let name = first["name"].as_str().expect("a name");
    assert!(name.starts_with("hog (user "), "{}", ranking(&answer));
    assert_eq!(first["kind"], "process", "{}", ranking(&answer));
    assert_eq!(
        answer["suggestions"][0]["action"],
        "look-outside",
        "{}",
        ranking(&answer)
    );
    let share = |start: &str| -> f64 {
        rows.iter()
            .filter(|row| {
                row["name"]
                    .as_str()
                    .is_some_and(|name| name.starts_with(start))
            })
            .filter_map(|row| row["responsibility"].as_f64())
            .sum()
    };
    assert!(
        share("hog (") > 0.3 && share("idler (") < 0.02,
        "{}",
        ranking(&answer)
    );
    // Most of what was outside has a name.
    assert!(
        share("External-CPU") < share("hog (") / 4.0,
        "{}",
        ranking(&answer)
    );
}

/// A file of lines of 1,000 characters, in MiB.
fn text(path: &Path, mebibytes: usize) {
    let line = [vec![b'x'; 999], vec![b'\n']].concat();
    fs::write(path, line.repeat(mebibytes * 1024 * 1024 / line.len())).expect("a file");
}

#[test]
fn a_query_that_takes_the_network_is_found() {
    let dir = tempfile::tempdir().expect("a directory");
    let (profile, files) = (dir.path().join("profile"), dir.path().join("files"));
    fs::create_dir(&files).expect("a directory");
    text(&files.join("victim"), 40);
    text(&files.join("culprit"), 240);
    let network = SlowNetwork::with_megabits(160);
    let spark = spark("4.3");
    let hdfs = Hdfs::start(&spark, network.address(), dir.path());
    let uri = hdfs.put(&spark, &files);
    // Slots for all queries, so that only the network is scarce.
    let options = ["--master", "local[48]"];
    let mut command = contention(&profile, &options, "network", 20_000_000);
    command.arg(uri).env("SPARK_LOCAL_IP", "127.0.0.1");
    run(&mut network.command(&command));
    let victim = query(&profile, "victim");
    let answer = blame(&profile, &["--victim", &victim, "--resource", "network"]);
    assert!(
        first_query(&answer).ends_with("culprit")
            && share(&answer, "culprit") > 0.4
            && share(&answer, "computes") + share(&answer, "idle") < 0.02,
        "{}",
        ranking(&answer)
    );
    // Over all resources, too.
    let answer = blame(&profile, &["--victim", &victim]);
    assert!(
        first_query(&answer).ends_with("culprit"),
        "{}",
        ranking(&answer)
    );
    check_sooner(&answer);
}

#[test]
fn in_a_container_queries_contend_for_its_limit() {
    let dir = tempfile::tempdir().expect("a directory");
    let profile = dir.path().join("profile");
    let cpus = std::thread::available_parallelism().map_or(2, usize::from) as f64 / 2.0;
    let container = Container::with_cpus(cpus).preferred();
    let command = contention(&profile, &["--master", "local[24]"], "cpu", 150_000_000);
    run(&mut container.command(&command));
    let victim = query(&profile, "victim");
    let answer = blame(&profile, &["--victim", &victim, "--resource", "cpu"]);
    // Half of the machine was idle, but the CPU limit was used up.
    let (culprit, unknown) = (share(&answer, "culprit"), share(&answer, "Unknown"));
    let limit = share(&answer, "Own limit");
    assert!(
        culprit > 0.2 * (1.0 - limit) && unknown < culprit / 4.0,
        "{}",
        ranking(&answer)
    );
    assert!(
        first_query(&answer).ends_with("culprit"),
        "{}",
        ranking(&answer)
    );
    let notes = answer["notes"].to_string();
    assert!(
        notes.contains(&format!("the CPU limit of {cpus} (")),
        "{}",
        ranking(&answer)
    );
    // What the limit held back, no neighbour took.
    let rows = answer["ranked"].as_array().expect("rows");
    let kinds = rows.iter().map(|row| row["kind"].as_str());
    assert!(
        kinds.into_iter().any(|kind| kind == Some("own-limit")),
        "{}",
        ranking(&answer)
    );
    assert!((0.1..0.9).contains(&limit), "{}", ranking(&answer));
}
