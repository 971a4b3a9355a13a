//! Following records through programs on real Spark in which a known record takes long.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use unfuse_tests::{
    Hdfs, brief_driver, compile_against, jdks, pyspark, root, run, skew_on_spark, spark,
    spark_submit_by, unfuse,
};

/// The number of the line that takes long.
const NEEDLE: i32 = 31_234;

struct Ran {
    home: tempfile::TempDir,
    profile: PathBuf,
    input: String,
}

/// Runs a case of `Records.java` under `unfuse run --records`.
fn records(version: &str, case: &str, master: &str, records: &str) -> Ran {
    let home = tempfile::tempdir().expect("a directory");
    let mut input = String::new();
    for number in 0..40_000 {
        let (name, amount) = match number {
            NEEDLE if case == "sql" => ("needle".to_owned(), 5),
            NEEDLE => ("needle".to_owned(), 77_777),
            _ => (format!("k{}", number % 40), number % 1000),
        };
        input.push_str(&format!("{number},{name},{amount}\n"));
    }
    fs::write(home.path().join("in.csv"), &input).expect("the input");
    let spark = spark(version);
    let jar = jar(&spark, home.path());
    let profile = home.path().join("profile");
    // A test of this case checks the line of code that took the time.
    let java: &[String] = match (case, records) {
        ("sums", "--records") => &[],
        _ => &brief_driver(),
    };
    let options = ["--master", master, "--class", "Records"];
    // This short job copies its profile, and must copy the last records, too.
    let to = match records {
        "--records=redacted" => PathBuf::from(format!("file://{}", profile.display())),
        _ => profile.clone(),
    };
    run(spark_submit_by(&[records], &spark, &to, &options)
        .args(java)
        .arg(jar)
        .arg(case)
        .arg(home.path().join("in.csv"))
        .arg(home.path().join("out")));
    Ran {
        home,
        profile,
        input,
    }
}

/// `Records.java` as a jar: with a directory in its class path the JVM does not use its archive.
fn jar(spark: &Path, dir: &Path) -> PathBuf {
    let (classes, jar) = (dir.join("classes"), dir.join("records.jar"));
    let jars = pyspark(spark).join("jars/*").display().to_string();
    compile_against(&jdks()[0], "Records.java", &jars, &classes);
    let files = fs::read_dir(&classes).expect("classes").flatten();
    run(Command::new("python3")
        .args(["-m", "zipfile", "-c"])
        .arg(&jar)
        .args(files.map(|file| file.path())));
    jar
}

impl Ran {
    fn skew(&self) -> Value {
        let output = run(unfuse().arg("skew").arg(&self.profile).arg("--json"));
        answer(&output.stdout)["records"].clone()
    }

    fn needle(&self) -> (i64, &str) {
        let start = self
            .input
            .find(&format!("\n{NEEDLE},"))
            .expect("the needle")
            + 1;
        let line = self.input[start..].lines().next().expect("a line");
        (start as i64, line)
    }
}

/// The answer of `unfuse skew --json` for a profile with records.
fn answer(json: &[u8]) -> Value {
    let answer: Value = serde_json::from_slice(json).expect("JSON");
    assert!(!answer["records"].is_null(), "{answer:#}");
    answer
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[test]
fn a_slow_line_and_a_slow_key_are_found() {
    for version in ["4.3", "3.5"] {
        let ran = records(version, "sums", "local[2]", "--records");
        let records = ran.skew();
        let (offset, line) = ran.needle();
        // One is before the shuffle and one after it; both take equally long.
        let slow = &records["slow_records"];
        let find = |content: &str| {
            let rows = slow.as_array().expect("rows").iter().take(2);
            let mut rows = rows.filter(|row| text(&row["at"]["content"]) == content);
            rows.next()
                .unwrap_or_else(|| panic!("{version}: {content}: {slow:#}"))
        };
        let before = find(line);
        assert_eq!(before["at"]["offset"], offset, "{before:#}");
        assert!(
            text(&before["at"]["file"]).ends_with("in.csv"),
            "{before:#}"
        );
        assert!(
            text(&before["lines"][0]["line"]).contains("Records.work"),
            "{before:#}"
        );
        find("key k7");
        // The results of both come first. Each names the input for which it had to wait.
        let results = records["slow_results"].as_array().expect("results");
        let of_needle = results[..2]
            .iter()
            .find(|row| text(&row["content"]).starts_with("needle="));
        let of_needle = of_needle.unwrap_or_else(|| panic!("{version}: {results:#?}"));
        assert_eq!(
            of_needle["expensive_input"]["offset"], offset,
            "{of_needle:#}"
        );
        assert_eq!(of_needle["inputs"], 1);
        let of_key = results[..2]
            .iter()
            .find(|row| text(&row["content"]).starts_with("k7="));
        let of_key = of_key.unwrap_or_else(|| panic!("{version}: {results:#?}"));
        assert_eq!(of_key["slowest_step"]["kind"], "shuffle", "{of_key:#}");
        // All its lines: of 40,000, every fortieth.
        assert_eq!(of_key["inputs"], 1000, "{of_key:#}");
        assert!(contains(&ran.profile, b"needle"));
        assert_eq!(
            (&records["inputs"], &records["results"]),
            (&40_000.into(), &41.into())
        );
        let by_a_job = run(&mut skew_on_spark(
            &spark(version),
            &ran.profile,
            &["--json"],
        ));
        assert_eq!(answer(&by_a_job.stdout)["records"], records, "{version}");
        // The report has them, among all records and among those of the work outside queries.
        let page = run(unfuse().arg("report").arg(&ran.profile).args(["-o", "-"])).stdout;
        assert!(String::from_utf8_lossy(&page).contains("id=\"block-skew-"));
    }
}

#[test]
fn a_slow_function_is_found_behind_a_sort() {
    let ran = records("4.3", "sorted", "local[2]", "--records");
    let records = ran.skew();
    let result = &records["slow_results"][0];
    let (_, line) = ran.needle();
    assert_eq!(text(&result["content"]), line, "{result:#}");
    // The slow function uses 1.5 s of CPU time.
    assert!(result["seconds"].as_f64() > Some(1.4), "{result:#}");
    // It came from all lines of its partition, and no single line is the cause.
    assert_eq!(result["slowest_step"]["position"], -1, "{result:#}");
    assert!(result["inputs"].as_u64() > Some(5000), "{result:#}");
}

#[test]
fn a_slow_line_is_found_behind_a_cache_and_a_join() {
    let ran = records("4.3", "cached", "local[2]", "--records");
    let records = ran.skew();
    let (offset, _) = ran.needle();
    let first = &records["slow_records"][0];
    assert_eq!(first["at"]["offset"], offset, "{records:#}");
    // One result of the count that filled the cache, and one of the join that read it.
    let results = records["slow_results"].as_array().expect("results");
    let both = results.get(..2).unwrap_or_else(|| panic!("{records:#}"));
    for result in both {
        assert_eq!(result["expensive_input"]["offset"], offset, "{result:#}");
    }
    let joined = |result: &&Value| text(&result["content"]) == "needleNEEDLE";
    assert_eq!(both.iter().filter(joined).count(), 1, "{records:#}");
}

#[test]
fn attempts_that_failed_do_not_count() {
    let ran = records("4.3", "retried", "local[2,2]", "--records");
    let records = ran.skew();
    assert_eq!(records["inputs"], 40_000, "{records:#}");
    let (offset, _) = ran.needle();
    assert_eq!(
        records["slow_results"][0]["expensive_input"]["offset"], offset,
        "{records:#}"
    );
}

#[test]
fn a_slow_row_of_a_file_is_found() {
    for version in ["4.3", "3.5"] {
        let ran = records(version, "sql", "local[2]", "--records");
        let records = ran.skew();
        let place = &records["slow_records"][0]["at"];
        let expected = "name=needle";
        assert!(
            text(&place["content"]).contains(expected),
            "{version}: {records:#}"
        );
        assert!(
            text(&place["file"]).ends_with(".parquet"),
            "{version}: {records:#}"
        );
        assert_eq!(place["row"], NEEDLE, "{version}: {records:#}");
    }
}

#[test]
fn contents_stay_out_of_a_profile_that_is_not_to_have_them() {
    let ran = records("4.3", "sums", "local[2]", "--records=redacted");
    let records = ran.skew();
    let (offset, _) = ran.needle();
    let rows = records["slow_records"].as_array().expect("rows");
    assert!(
        rows.iter().take(2).any(|row| row["at"]["offset"] == offset),
        "{records:#}"
    );
    assert!(
        rows.iter().all(|row| row["at"]["content"].is_null()),
        "{records:#}"
    );
    assert!(!contains(&ran.profile, b"needle"));
    assert!(ran.home.path().join("out").exists());
}

/// Makes up a profile with records of all kinds.
fn made_up(dir: &Path, seed: &str) {
    run(Command::new(spark("4.3").join("venv/bin/python"))
        .arg(root().join("tests/programs/made_up_records.py"))
        .arg(dir)
        .arg(seed));
}

#[test]
fn a_spark_job_says_the_same_of_records_of_all_kinds() {
    let home = tempfile::tempdir().expect("a directory");
    for (version, seed) in [("4.3", "1"), ("3.5", "2")] {
        // Spark takes this path for a pattern unless it is escaped.
        let profile = home.path().join(format!("made [up] {seed}"));
        made_up(&profile, seed);
        let how = ["--json", "--top", "300"];
        let here = run(unfuse().arg("skew").arg(&profile).args(how));
        let there = run(&mut skew_on_spark(&spark(version), &profile, &how));
        let (here, there) = (answer(&here.stdout), answer(&there.stdout));
        let results = here["records"]["slow_results"].as_array().map(Vec::len);
        assert_eq!(results, Some(300), "{here:#}");
        assert_eq!(there, here, "{version}");
    }
}

/// Called by the test that starts an HDFS.
pub(crate) fn a_spark_job_follows_records_of_a_profile_on_hdfs(hdfs: &Hdfs, home: &Path) {
    let near = home.join("made-up");
    made_up(&near, "3");
    let here = run(unfuse().arg("skew").arg(&near).arg("--json"));
    let newest = spark("4.3");
    let far = hdfs.put(&newest, &near);
    let cached = home.join("cache-of-records");
    let there = run(skew_on_spark(&newest, &far, &["--json"]).env("XDG_CACHE_HOME", &cached));
    assert_eq!(answer(&there.stdout), answer(&here.stdout));
    // Tables that only the job reads were not copied.
    assert!(is_in(&cached, "record_texts") && !is_in(&cached, "records_in"));
}

/// Whether there is a directory of this name below.
fn is_in(dir: &Path, name: &str) -> bool {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .any(|path| path.ends_with(name) || is_in(&path, name))
}

#[test]
fn python_processes_are_told() {
    for version in ["4.3", "3.5"] {
        let home = tempfile::tempdir().expect("a directory");
        let profile = home.path().join("profile");
        let options = ["--master", "local[2]"];
        run(
            spark_submit_by(&["--records"], &spark(version), &profile, &options)
                .args(brief_driver())
                .arg(root().join("tests/programs/python_records.py")),
        );
        let output = run(unfuse().arg("skew").arg(&profile).arg("--json"));
        let notes = answer(&output.stdout)["notes"].to_string();
        assert!(notes.contains("Python process"), "{version}: {notes}");
    }
}

fn contains(dir: &Path, word: &[u8]) -> bool {
    fs::read_dir(dir)
        .expect("a directory")
        .flatten()
        .any(|entry| {
            let path = entry.path();
            if path.is_dir() {
                return contains(&path, word);
            }
            let bytes = fs::read(&path).unwrap_or_default();
            bytes.windows(word.len()).any(|window| window == word)
        })
}
