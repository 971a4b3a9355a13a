//! Queries that wait for locks of the JVM (`tests/programs/locks.py`).

use std::path::Path;

use serde_json::Value;

use crate::{ask_number, compile_against, jdks, pyspark, root, run, spark, spark_submit, unfuse};

/// The cases of the program, with the query that holds what the victim waits for.
pub const LOCK_CASES: [(&str, &str); 3] =
    [("monitor", "holder"), ("lock", "holder"), ("chain", "root")];

/// What a victim waited for locks, s.
pub struct LockWaits {
    /// The whole answer of `unfuse blame`.
    pub answer: Value,
    /// Whatever caused it.
    pub all: f64,
    /// Caused by the query that holds the lock.
    pub by_holder: f64,
    /// Caused by other queries than these and the victim.
    pub by_bystanders: f64,
}

/// Profiles all cases on a version of Spark.
pub fn record_locks(version: &str, profile: &Path) {
    let classes = tempfile::tempdir().expect("a directory");
    let home = spark(version);
    let jars = pyspark(&home).join("jars/*").display().to_string();
    compile_against(&jdks()[0], "Locks.java", &jars, classes.path());
    let class_path = classes.path().display().to_string();
    let options = ["--master", "local[12]", "--driver-class-path", &class_path];
    let mut command = spark_submit(&home, profile, &options);
    run(command
        .arg(root().join("tests/programs/locks.py"))
        .args(LOCK_CASES.map(|(case, _)| case)));
    // The chain was followed to its end.
    let followed = "SELECT coalesce(max(\"between\"), 0) FROM 'DIR/lock_waits/*.parquet' WHERE lock LIKE '%ReentrantLock%'";
    assert!(ask_number(profile, followed) >= 1.0);
}

/// Whom `unfuse blame` blames for the waits of a case's victim.
pub fn lock_waits(profile: &Path, (case, holder): (&str, &str)) -> LockWaits {
    let ask = |arguments: &[&str]| -> Value {
        let mut command = unfuse();
        command.arg("blame").arg(profile).arg("--json");
        let output = run(command.args(arguments));
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    let all = ask(&[]);
    let [victim, holder] = ["victim", holder].map(|name| format!(": {name} {case}"));
    let ends = |text: &Value, name: &str| text.as_str().is_some_and(|text| text.ends_with(name));
    let mut victims = all["victims"].as_array().expect("victims").iter();
    let known = victims.find(|known| ends(&known["label"], &victim));
    let known = known.unwrap_or_else(|| panic!("no {victim}: {all:#}"));
    let answer = ask(&["--victim", &known["query"].to_string(), "--limit", "1000"]);
    let paths = answer["explanations"].as_array().expect("paths").iter();
    let paths = paths.filter(|path| path["kind"] == "lock wait");
    let of = |is: &dyn Fn(&Value) -> bool| -> f64 {
        let its = paths.clone().filter(|path| is(path));
        its.filter_map(|path| path["seconds"].as_f64()).sum()
    };
    let by_query = |path: &Value| {
        let name = path["culprit"].as_str();
        name.is_some_and(|name| name.starts_with("query "))
    };
    LockWaits {
        all: of(&|_| true),
        by_holder: of(&|path| ends(&path["culprit"], &holder)),
        by_bystanders: of(&|path| {
            let culprit = &path["culprit"];
            by_query(path) && !ends(culprit, &holder) && !ends(culprit, &victim)
        }),
        answer,
    }
}
