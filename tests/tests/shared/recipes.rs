//! The recipes in `dist/recipes`, parsed by what reads them in a cluster, and run where they are scripts.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use unfuse_tests::{root, run, spark, unfuse};

fn recipe(name: &str) -> PathBuf {
    root().join("dist/recipes").join(name)
}

/// Settings of the agent in a recipe are options that the agent has, and the plugin is named.
fn check_settings(settings: &serde_json::Map<String, Value>) {
    let help = run(unfuse().arg("agent")).stdout;
    let help = String::from_utf8(help).expect("text");
    for name in settings.keys() {
        if let Some(option) = name.strip_prefix("spark.unfuse.") {
            assert!(help.contains(&format!("{option}=")), "{name} is no option");
        }
    }
    assert_eq!(settings["spark.plugins"], "io.unfuse.spark.UnfusePlugin");
    assert!(settings.contains_key("spark.unfuse.dir"));
}

#[test]
fn kubernetes_reads_the_templates() {
    let output = run(Command::new(spark("4.3").join("venv/bin/python"))
        .arg(root().join("tests/programs/recipes.py"))
        .args(
            [
                "kubernetes-pod.yaml",
                "spark-application.yaml",
                "helm-values.yaml",
            ]
            .map(recipe),
        ));
    let text = String::from_utf8(output.stdout).expect("text");
    let read: Value = serde_json::from_str(text.lines().last().expect("a line")).expect("JSON");
    assert_eq!(read["container"], "spark");
    assert_eq!(read["mounts"], serde_json::json!(["/spool"]));
    assert_eq!(read["volumes"], serde_json::json!(["spool"]));
    assert_eq!(
        read["worker_mounts"],
        serde_json::json!({"spool": "/spool"})
    );
    assert_eq!(read["worker_volumes"], serde_json::json!(["spool"]));
    assert_eq!(read["kind"], "SparkApplication");
    check_settings(read["conf"].as_object().expect("settings"));
}

#[test]
fn emr_gets_the_settings() {
    let text = fs::read_to_string(recipe("emr-configurations.json")).expect("a recipe");
    let read: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(read[0]["Classification"], "spark-defaults");
    check_settings(read[0]["Properties"].as_object().expect("settings"));
    run(Command::new("bash")
        .arg("-n")
        .arg(recipe("emr-bootstrap.sh")));
}

#[test]
fn the_init_script_installs_the_jar_or_says_what_is_missing() {
    let dir = tempfile::tempdir().expect("a directory");
    let jar = dir.path().join("plugin.jar");
    let script = || {
        let mut script = Command::new("bash");
        script
            .arg(recipe("databricks-init.sh"))
            .env("UNFUSE_JAR", &jar)
            .env("UNFUSE_JARS_DIR", dir.path());
        script
    };
    let output = script().output().expect("bash runs");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && text.contains("plugin.jar is missing"),
        "{text}"
    );
    fs::write(&jar, "a jar").expect("a file");
    run(&mut script());
    let installed = fs::read(dir.path().join("unfuse-spark.jar")).expect("the jar");
    assert_eq!(installed, b"a jar");
}
