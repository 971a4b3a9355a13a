//! The tab "Operators": in the UI of a running driver, and in a History Server on the same application.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use unfuse_tests::{
    PATIENCE, agent, brief_driver, daemon_options, free_port, queries_for, root, spark,
    spark_submit,
};

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The contents of the tab, as soon as they are as `wanted`.
fn tab(home: &Path, base: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let end = Instant::now() + PATIENCE;
    loop {
        let output = Command::new(home.join("venv/bin/python"))
            .arg(root().join("tests/programs/operators_tab.py"))
            .arg(base)
            .output()
            .expect("Python");
        let shown = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
        if wanted(&shown) {
            return shown;
        }
        // Pages of Spark are long.
        let shown: String = shown.to_string().chars().take(1500).collect();
        assert!(
            Instant::now() < end,
            "{base}: {shown}\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn has_operators(shown: &Value) -> bool {
    let names = shown["operators"].as_array().into_iter().flatten();
    names
        .filter_map(Value::as_str)
        .any(|name| name.starts_with("HashAggregate"))
}

fn check_pages(shown: &Value) {
    for what in ["linked", "in_spark", "framed", "script_runs"] {
        assert_eq!(shown[what], true, "{what}: {shown}");
    }
    assert_eq!(shown["frame_options"], "SAMEORIGIN", "{shown}");
    assert_eq!(
        shown["applications"].as_array().map(Vec::len),
        Some(1),
        "{shown}"
    );
    assert!(shown["cpu_ns"].as_u64().is_some_and(|ns| ns > 0), "{shown}");
}

fn live_and_afterwards(version: &str) {
    let home = spark(version);
    let dir = tempfile::tempdir().expect("a directory");
    let profile = dir.path().join("profile");
    let events = dir.path().join("events");
    std::fs::create_dir(&events).expect("a directory");
    let port = free_port();
    let options = [
        "--master".to_owned(),
        "local[2]".to_owned(),
        "--driver-memory".to_owned(),
        "2g".to_owned(),
        "--conf".to_owned(),
        "spark.ui.enabled=true".to_owned(),
        "--conf".to_owned(),
        format!("spark.ui.port={port}"),
        "--conf".to_owned(),
        "spark.eventLog.enabled=true".to_owned(),
        "--conf".to_owned(),
        format!("spark.eventLog.dir=file://{}", events.display()),
    ];
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let stop = dir.path().join("stop");
    let mut driver = Running(
        queries_for(
            spark_submit(&home, &profile, &options).args(brief_driver()),
            "0.2",
            "3600",
        )
        .env("UNFUSE_TEST_STOP", &stop)
        .stdout(Stdio::null())
        .spawn()
        .expect("spark-submit"),
    );
    let live = tab(&home, &format!("http://127.0.0.1:{port}"), has_operators);
    check_pages(&live);
    std::fs::write(&stop, "").expect("the file that ends the queries");
    assert!(driver.0.wait().expect("its end").success());

    let app = live["applications"][0].as_str().expect("an id").to_owned();
    let server = History::start(&home, &events, &profile);
    let finished = tab(&home, &server.app(&app), has_operators);
    check_pages(&finished);
    assert_eq!(finished["applications"][0], app.as_str());
    assert!(finished["queries"].as_u64() >= live["queries"].as_u64());
    assert!(finished["cpu_ns"].as_u64() >= live["cpu_ns"].as_u64());

    // If the profile is missing, the page says so as soon as the server's cached report is some seconds old.
    std::fs::rename(&profile, dir.path().join("other")).expect("another name");
    tab(&home, &server.app(&app), |shown| {
        let text = shown["text"].as_str().unwrap_or_default();
        shown["linked"] == true && text.contains("no such directory")
    });
}

/// A History Server with the agent.
struct History {
    _process: Running,
    port: u16,
}

impl History {
    fn start(home: &Path, events: &Path, profile: &Path) -> Self {
        let port = free_port();
        let options = format!(
            "{} -Dspark.history.fs.logDirectory=file://{} -Dspark.history.ui.port={port} \
             -agentpath:{}=dir={},ui=only",
            daemon_options(home),
            events.display(),
            agent().display(),
            profile.display()
        );
        let process = Command::new(home.join("venv/bin/spark-class"))
            .arg("org.apache.spark.deploy.history.HistoryServer")
            .env("SPARK_HISTORY_OPTS", options)
            .env("PYSPARK_PYTHON", home.join("venv/bin/python"))
            .env_remove("SPARK_HOME")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("spark-class");
        Self {
            _process: Running(process),
            port,
        }
    }

    fn app(&self, id: &str) -> String {
        format!("http://127.0.0.1:{}/history/{id}", self.port)
    }
}

#[test]
fn spark_4_shows_operators_live_and_in_history() {
    live_and_afterwards("4.3");
}

#[test]
fn spark_3_5_shows_operators_live_and_in_history() {
    live_and_afterwards("3.5");
}
