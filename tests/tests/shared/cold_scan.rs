//! Scans of files that are not in the page cache.

use unfuse_tests::{brief_driver, is, root, run, spark, spark_submit, top, tpch};

/// Spark 4.3 reads Parquet by threads of the file system, Spark 3.5 by the task's thread.
#[test]
fn a_scan_waits_for_the_disk_whoever_reads() {
    for version in ["4.3", "3.5"] {
        let dir = tempfile::tempdir().expect("a directory");
        let profile = dir.path().join("profile");
        // Other tests read the original into the page cache.
        let on_disk = tempfile::tempdir_in(root().join("target")).expect("a directory");
        let file = on_disk.path().join("lineitem.parquet");
        std::fs::copy(tpch("0.2").join("lineitem.parquet"), &file).expect("a copy");
        let brief = brief_driver();
        let mut options: Vec<&str> = brief.iter().map(String::as_str).collect();
        options.extend(["--master", "local[2]"]);
        run(spark_submit(&spark(version), &profile, &options)
            .arg(root().join("tests/programs/cold_scan.py"))
            .arg(&file)
            .arg("16"));
        let rows = top(&profile, &["--kind", "off-cpu"]);
        let waited = |reason: &str| -> f64 {
            let of_scan =
                |row: &&serde_json::Value| is(row, "Scan parquet") && row["waiting_for"] == reason;
            let rows = rows.iter().filter(of_scan);
            rows.filter_map(|row| row["waiting_seconds"].as_f64()).sum()
        };
        let (disk, lock) = (waited("disk read"), waited("lock"));
        // If a wait for the future counted as one for a lock, locks would have 30 times as much. On a busy machine, locks of
        // class loading can have twice as much.
        assert!(
            disk > 0.02 && lock < 4.0 * disk,
            "{version}: {disk} s for the disk, {lock} s for locks: {rows:#?}"
        );
    }
}
