//! Scans of files that are not in the page cache.

use unfuse_tests::{brief_driver, is, root, run, spark, spark_submit, top, tpch};

/// Spark 4.3 reads Parquet by threads of the file system, Spark 3.5 by the task's thread.
#[test]
fn a_scan_waits_for_the_disk_whoever_reads() {
    for version in ["4.3", "3.5"] {
        let dir = tempfile::tempdir().expect("a directory");
        let profile = dir.path().join("profile");
        let brief = brief_driver();
        let mut options: Vec<&str> = brief.iter().map(String::as_str).collect();
        options.extend(["--master", "local[2]"]);
        run(spark_submit(&spark(version), &profile, &options)
            .arg(root().join("tests/programs/cold_scan.py"))
            .arg(tpch("0.2"))
            .arg("8"));
        let rows = top(&profile, &["--kind", "off-cpu"]);
        let waited = |reason: &str| -> f64 {
            let of_scan =
                |row: &&serde_json::Value| is(row, "Scan parquet") && row["waiting_for"] == reason;
            let rows = rows.iter().filter(of_scan);
            rows.filter_map(|row| row["waiting_seconds"].as_f64()).sum()
        };
        let (disk, lock) = (waited("disk read"), waited("lock"));
        assert!(
            disk > 0.02 && lock < disk,
            "{version}: {disk} s for the disk, {lock} s for locks: {rows:#?}"
        );
    }
}
