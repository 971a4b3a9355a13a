//! Servers of Spark and its SQL shell, profiled by one setting.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use unfuse_tests::{
    Server, ask_number, brief_driver, packages, plugin_submit, pyspark, python_environment, root,
    run, samples, spark, top, tpch, unfuse,
};

use crate::plugin::ours;

const LOCAL: [&str; 4] = ["--master", "local[2]", "--driver-memory", "2g"];

/// The query of the clients, on a table `lineitem`.
const QUERY: &str = "SELECT l_suppkey, sum(l_quantity) q FROM lineitem WHERE l_shipdate <= DATE '1998-09-02' \
     GROUP BY l_suppkey ORDER BY q DESC LIMIT 5";

/// How often it runs: a run has only some samples in each operator.
const RUNS: usize = 12;

/// `spark-submit` of a class by the plugin, with a JVM that lives briefly.
fn submit(version: &str, profile: &Path, class: &str) -> Command {
    let mut command = plugin_submit(version, profile, &LOCAL);
    command.args(brief_driver()).args(["--class", class]);
    command
}

/// Checks that operators have the samples, and that the runs of the query are known as runs of one query.
fn check(profile: &Path, name: &str) {
    let rows = top(profile, &["--limit", "1000"]);
    for operator in ["HashAggregate", "Scan parquet"] {
        let has = |row: &Value| {
            let found = row["operator"].as_str();
            found.is_some_and(|found| found.contains(operator))
        };
        assert!(samples(&rows, has) > 0, "{operator}: {rows:#?}");
    }
    let unattributed = samples(&rows, |row| row["operator"] == "unattributed");
    let all = samples(&rows, |row| row["stage"].is_i64());
    // 1%, and three standard deviations of so few samples.
    let expected = all as f64 / 100.0;
    assert!(
        unattributed as f64 <= expected + 3.0 * expected.sqrt(),
        "{unattributed} of {all} samples are unattributed"
    );
    let open = ask_number(
        profile,
        "SELECT count(*) FROM (SELECT execution FROM 'DIR/executions/*.parquet' GROUP BY 1 HAVING max(ended_ms) IS NULL)",
    );
    assert_eq!(open, 0.0, "each query has an end");
    let mut history = unfuse();
    history.args(["history", "--json", "--in"]).arg(profile);
    let queries: Vec<Value> =
        serde_json::from_slice(&run(&mut history).stdout).expect("JSON of the history");
    let known: Vec<_> = queries
        .iter()
        .map(|query| {
            (
                query["runs"].as_array().map(Vec::len),
                query["name"].as_str(),
            )
        })
        .collect();
    let is_it = |(count, found): &(Option<usize>, Option<&str>)| {
        *count == Some(RUNS) && found.is_some_and(|found| found.contains(name))
    };
    assert!(known.iter().any(is_it), "{known:?}");
}

/// Checks that the profiler has printed one line: where the profile is.
fn check_log(log: &str, profile: &Path) {
    let expected = format!("unfuse: profiling to {}", profile.display());
    assert_eq!(ours(log), [expected]);
}

/// A request has no text of the query, so its runs are known by their plan.
#[test]
fn a_connect_server_has_the_queries_of_its_clients() {
    let dir = tempfile::tempdir().expect("a directory");
    let profile = dir.path().join("profile");
    let class = "org.apache.spark.sql.connect.service.SparkConnectServer";
    let arguments = |port| {
        let port = format!("spark.connect.grpc.binding.port={port}");
        ["--conf".to_owned(), port, "spark-internal".to_owned()]
    };
    let server = Server::start(submit("4.3", &profile, class), arguments, dir.path());
    let client = python_environment("connect");
    run(Command::new(client.join("bin/python"))
        .arg(root().join("tests/programs/connect.py"))
        .arg(server.port().to_string())
        .arg(tpch("0.2"))
        .arg(RUNS.to_string())
        .env("PYTHONPATH", packages(&spark("4.3").join("venv")))
        .env_remove("SPARK_HOME"));
    check_log(&server.end(), &profile);
    check(&profile, "lineitem → aggregate by l_suppkey");
}

#[test]
fn a_thrift_server_has_the_statements_of_its_clients() {
    let dir = tempfile::tempdir().expect("a directory");
    let profile = dir.path().join("profile");
    let class = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2";
    let arguments = |port| {
        let port = format!("hive.server2.thrift.port={port}");
        ["spark-internal".to_owned(), "--hiveconf".to_owned(), port]
    };
    let server = Server::start(submit("3.5", &profile, class), arguments, dir.path());
    let mut client = Command::new("java");
    client
        .arg("-cp")
        .arg(pyspark(&spark("3.5")).join("jars/*"))
        .args(["org.apache.hive.beeline.BeeLine", "--silent=true", "-u"])
        .arg(format!("jdbc:hive2://127.0.0.1:{}", server.port()))
        .arg("-e")
        .arg(view());
    for _ in 0..RUNS {
        client.arg("-e").arg(QUERY);
    }
    run(&mut client);
    check_log(&server.end(), &profile);
    check(&profile, "SELECT l_suppkey");
}

#[test]
fn the_sql_shell_has_its_statements() {
    let dir = tempfile::tempdir().expect("a directory");
    let profile = dir.path().join("profile");
    let class = "org.apache.spark.sql.hive.thriftserver.SparkSQLCLIDriver";
    let mut command = submit("4.3", &profile, class);
    let statements = format!("{}{}", view(), format!("; {QUERY}").repeat(RUNS));
    command
        .args(["spark-internal", "-e"])
        .arg(statements)
        .current_dir(dir.path());
    check_log(
        &String::from_utf8_lossy(&run(&mut command).stderr),
        &profile,
    );
    check(&profile, "SELECT l_suppkey");
}

/// The statement that makes the table of [`QUERY`].
fn view() -> String {
    let data = tpch("0.2").join("lineitem.parquet");
    format!(
        "CREATE TEMPORARY VIEW lineitem USING parquet OPTIONS (path '{}')",
        data.display()
    )
}
