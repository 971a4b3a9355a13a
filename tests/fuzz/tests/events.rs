//! The JVM's event stream.

use bolero::check;
use unfuse_format::ProfileDir;
use unfuse_fuzz::{EditedCopies, TEST_TIME, private_dir};
use unfuse_profiler::take_events;

#[test]
fn events() {
    let (_tmp, dir) = profile();
    check!()
        .with_test_time(TEST_TIME)
        .for_each(|bytes| assert!(take_events(&dir, bytes) <= bytes.len() / 4));
}

#[test]
fn events_edited() {
    let (_tmp, dir) = profile();
    check!()
        .with_test_time(TEST_TIME)
        .with_generator(EditedCopies::corpus("events"))
        .for_each(|bytes| assert!(take_events(&dir, bytes) <= bytes.len() / 4));
}

/// The target writes nothing to it, but a writer needs one.
fn profile() -> (tempfile::TempDir, ProfileDir) {
    let tmp = private_dir();
    let dir = ProfileDir::create(tmp.path()).expect("a profile directory");
    (tmp, dir)
}
