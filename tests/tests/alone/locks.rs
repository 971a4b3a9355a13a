//! Locks of the JVM: the query that holds one accounts for most of the waits, and one that runs beside it for nearly nothing.

use serde_json::Value;
use unfuse_tests::{LOCK_CASES, lock_waits, record_locks};

use crate::blame::ranking;

#[test]
fn the_holder_of_a_lock_is_the_first_culprit() {
    let dir = tempfile::tempdir().expect("a directory");
    let profile = dir.path().join("profile");
    record_locks("4.3", &profile);
    for case in LOCK_CASES {
        let waits = lock_waits(&profile, case);
        let (name, holder) = case;
        let said = ranking(&waits.answer);
        assert!(
            waits.all > 5.0 && waits.by_holder > 0.6 * waits.all,
            "{name}: {said}"
        );
        let mut rows = waits.answer["ranked"].as_array().expect("rows").iter();
        let first = rows.find(|row| row["kind"] != "self").expect("a culprit");
        let found = first["name"].as_str().expect("a name");
        assert!(
            found.ends_with(&format!("{holder} {name}")),
            "{name}: {said}"
        );
        assert!(
            first["victim_seconds"].as_f64() > Some(1.0),
            "{name}: {said}"
        );
        // As overlap sees them, they are equal.
        let [of_holder, of_bystander] =
            [holder, "bystander"].map(|query| overlap(&waits.answer, &format!("{query} {name}")));
        assert!(
            of_bystander > 0.7 * of_holder,
            "{name}: {of_holder} s, {of_bystander} s"
        );
        assert!(waits.by_bystanders < 0.05 * waits.all, "{name}: {said}");
    }
}

fn overlap(answer: &Value, culprit: &str) -> f64 {
    let rows = answer["baselines"]["naive_overlap"].as_array();
    let rows = rows.expect("rows").iter();
    let its = rows.filter(|row| row[0].as_str().is_some_and(|name| name.ends_with(culprit)));
    its.filter_map(|row| row[1].as_f64()).sum()
}
