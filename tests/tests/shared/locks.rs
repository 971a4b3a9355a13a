//! Locks of the JVM: of all queries, the one that holds a lock is to blame. What takes the CPU from it is, too, and this machine is
//! busy; `alone/locks.rs` says which part the holder has.

use unfuse_tests::{LOCK_CASES, ask_number, lock_waits, record_locks};

fn check(version: &str) {
    let dir = tempfile::tempdir().expect("a directory");
    let profile = dir.path().join("profile");
    record_locks(version, &profile);
    for case in LOCK_CASES {
        let waits = lock_waits(&profile, case);
        let (by_holder, by_bystanders) = (waits.by_holder, waits.by_bystanders);
        assert!(
            by_holder > 1.0 && by_bystanders < 0.2 * by_holder,
            "{case:?}: {by_holder} s, {by_bystanders} s"
        );
    }
    // Both have tasks, and other threads of the JVM hold none of these locks.
    let by_tasks = "SELECT coalesce(sum(waited_ns) FILTER (holder = 'task') / sum(waited_ns), 0) FROM 'DIR/lock_waits/*.parquet'";
    let by_tasks = ask_number(&profile, by_tasks);
    assert!(by_tasks > 0.9, "{by_tasks}");
}

#[test]
fn the_holder_of_a_lock_is_found_in_spark_3() {
    check("3.5");
}

#[test]
fn the_holder_of_a_lock_is_found_in_spark_4() {
    check("4.3");
}
