//! Spark's metrics and listeners: what they get to know about the profiler and contention.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use unfuse_tests::{
    brief_driver, compile_against, jdks, plugin_submit, queries, queries_for, root, run, spark,
    spark_submit_by, unfuse, wait_for,
};

/// Settings that write Spark's metrics to CSV files each second.
fn csv_sink(into: &Path) -> Vec<String> {
    let sink = "spark.metrics.conf.*.sink.csv";
    [
        "class=org.apache.spark.metrics.sink.CsvSink".to_owned(),
        "period=1".to_owned(),
        format!("directory={}", into.display()),
    ]
    .into_iter()
    .flat_map(|setting| ["--conf".to_owned(), format!("{sink}.{setting}")])
    .collect()
}

/// The values of our gauges of the driver or an executor, by name, oldest first.
fn gauges(dir: &Path, instance: &str) -> BTreeMap<String, Vec<f64>> {
    let prefix = format!(".{instance}.plugin.io.unfuse.spark.UnfusePlugin.");
    let mut gauges = BTreeMap::new();
    for file in fs::read_dir(dir).expect("the sink's directory").flatten() {
        let name = file.file_name().into_string().expect("text");
        let Some((_, gauge)) = name.split_once(&prefix) else {
            continue;
        };
        let text = fs::read_to_string(file.path()).expect("CSV");
        let values = text.lines().skip(1).filter_map(|line| {
            let (_, value) = line.split_once(',')?;
            value.parse().ok()
        });
        let gauge = gauge.strip_suffix(".csv").expect("a CSV file").to_owned();
        gauges.insert(gauge, values.collect());
    }
    gauges
}

/// Checks the gauges of a JVM that was profiled all the time.
fn check_profiler(gauges: &BTreeMap<String, Vec<f64>>) {
    let last = |name: &str| {
        let values = gauges.get(name).filter(|values| !values.is_empty());
        *values
            .and_then(|values| values.last())
            .unwrap_or_else(|| panic!("no {name} in {gauges:?}"))
    };
    assert!(gauges["recording"].contains(&1.0), "{gauges:?}");
    assert!(last("samples") > 0.0, "{gauges:?}");
    // A sample stands for about 5 ms.
    let each = last("sampledCpuTimeNs") / last("samples");
    assert!((1e6..20e6).contains(&each), "{each} ns: {gauges:?}");
    assert!(
        last("ownCpuTimeNs") > 0.0 && last("ownCpuTimeNs") < last("sampledCpuTimeNs"),
        "{gauges:?}"
    );
    assert_eq!(last("pythonCpuTimeNs"), 0.0, "{gauges:?}");
    assert!(last("writtenBytes") > 1000.0, "{gauges:?}");
    // On a busy machine a sampler can be late.
    assert!(last("lostSamples") <= last("samples") / 10.0, "{gauges:?}");
    assert_eq!(last("lostEvents"), 0.0, "{gauges:?}");
}

/// Processes that use the CPUs until the test ends.
struct Hogs(Vec<Child>);

impl Hogs {
    fn start(count: usize) -> Self {
        let mut hog = Command::new("yes");
        hog.stdout(Stdio::null());
        Self((0..count).map(|_| hog.spawn().expect("yes")).collect())
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        for hog in &mut self.0 {
            let _ = hog.kill();
            let _ = hog.wait();
        }
    }
}

/// The event log's text.
fn event_log(dir: &Path) -> String {
    let files = fs::read_dir(dir).expect("event logs").flatten();
    files
        .map(|file| fs::read_to_string(file.path()).expect("an event log"))
        .collect()
}

/// Checks that each event has a range of seconds and a culprit that `unfuse blame` names too, and that the hogs are one.
fn check_events(events: &Path, profile: &Path) {
    let answer = run(unfuse()
        .arg("blame")
        .arg(profile)
        .args(["--json", "--limit", "100"]))
    .stdout;
    let answer: Value = serde_json::from_slice(&answer).expect("JSON");
    let ranked = answer["ranked"].as_array().expect("culprits").iter();
    let names: BTreeSet<&str> = ranked.filter_map(|row| row["name"].as_str()).collect();
    assert!(
        names.iter().any(|name| name.starts_with("yes (")),
        "{names:?}"
    );
    let text = fs::read_to_string(events).expect("events");
    for line in text.lines() {
        let numbers = line
            .split(' ')
            .take(3)
            .map(|word| word.parse().expect(line));
        let numbers: Vec<f64> = numbers.collect();
        assert!(0.0 < numbers[0] && numbers.is_sorted(), "{line}");
        let culprit = line.splitn(5, ' ').nth(4).expect(line);
        assert!(!culprit.is_empty() && names.contains(culprit), "{line}");
    }
}

#[test]
fn a_listener_learns_who_starves_a_query() {
    let dir = tempfile::tempdir().expect("a directory");
    let [profile, metrics, log, classes] =
        ["profile", "metrics", "log", "classes"].map(|name| dir.path().join(name));
    fs::create_dir(&metrics).expect("a directory");
    fs::create_dir(&log).expect("a directory");
    let home = spark("3.5");
    let jars = unfuse_tests::pyspark(&home).join("jars/*");
    let plugin = root().join("target/release/unfuse-spark.jar");
    let class_path = format!("{}:{}", jars.display(), plugin.display());
    compile_against(&jdks()[0], "Starved.java", &class_path, &classes);
    let mut options: Vec<String> = brief_driver().to_vec();
    options.extend(csv_sink(&metrics));
    options.extend(
        [
            "--master",
            "local[2]",
            "--driver-class-path",
            &classes.display().to_string(),
            "--conf",
            "spark.extraListeners=Starved",
            "--conf",
            "spark.eventLog.enabled=true",
            "--conf",
            &format!("spark.eventLog.dir=file://{}", log.display()),
        ]
        .map(str::to_owned),
    );
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let (events, stop) = (dir.path().join("events"), dir.path().join("stop"));
    let hogs = Hogs::start(4);
    let mut driver = spark_submit_by(
        &["--agent-options", "contention=3s"],
        &home,
        &profile,
        &options,
    );
    let mut driver = queries_for(&mut driver, "0.2", "3600")
        .env("UNFUSE_TEST_STOP", &stop)
        .env("UNFUSE_TEST_EVENTS", &events)
        .stdout(Stdio::null())
        .spawn()
        .expect("spark-submit");
    // On a busy machine other processes can come before the hogs.
    let is_starved = || fs::read_to_string(&events).is_ok_and(|text| text.lines().count() >= 2);
    wait_for("two events about contention", is_starved);
    drop(hogs);
    fs::write(&stop, "").expect("the file that ends the queries");
    assert!(driver.wait().expect("its end").success());

    check_events(&events, &profile);
    let gauges = gauges(&metrics, "driver");
    check_profiler(&gauges);
    let largest = |name: &str| gauges[name].iter().copied().fold(0.0, f64::max);
    let lost = largest("contention.lostSeconds");
    assert!(lost > 0.0, "{gauges:?}");
    // Two slots in ten seconds; a wait counts in the window in which it ends.
    assert!(lost <= 2.0 * 10.0 + 4.0, "{gauges:?}");
    assert!(
        largest("contention.culpritSeconds") > 0.0 && largest("contention.culpritSeconds") <= lost,
        "{gauges:?}"
    );
    assert!(largest("contention.query") >= 0.0, "{gauges:?}");
    // A History Server without our classes could not read the event.
    let log = event_log(&log);
    assert!(log.contains("SparkListenerSQLExecutionStart") && !log.contains("ContentionEvent"));
}

#[test]
fn the_plugin_adds_gauges_to_driver_and_executors() {
    let dir = tempfile::tempdir().expect("a directory");
    let (profile, metrics) = (dir.path().join("profile"), dir.path().join("metrics"));
    fs::create_dir(&metrics).expect("a directory");
    let mut command = plugin_submit("4.3", &profile, &["--master", "local-cluster[1,2,1536]"]);
    command
        .args(brief_driver())
        .args(["--conf", "spark.executor.memory=1g"])
        .args(csv_sink(&metrics))
        .env("SPARK_LOCAL_IP", "127.0.0.1");
    run(queries(&mut command, "2"));
    for instance in ["driver", "0"] {
        let gauges = gauges(&metrics, instance);
        check_profiler(&gauges);
        // Off unless asked for.
        assert!(!gauges.contains_key("contention.query"), "{gauges:?}");
    }
}
