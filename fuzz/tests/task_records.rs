//! The files in which a task's records wait for the writer.

use bolero::check;
use unfuse_fuzz::{Edited, TEST_TIME};
use unfuse_profiler::take_records;

#[test]
fn task_records() {
    check!().with_test_time(TEST_TIME).for_each(read);
}

#[test]
fn task_records_edited() {
    check!()
        .with_test_time(TEST_TIME)
        .with_generator(Edited::corpus("task_records"))
        .for_each(|bytes| read(bytes));
}

/// Each row has bytes of its own, but for those that a record has of several sources.
fn read(bytes: &[u8]) {
    assert!(take_records(bytes) <= bytes.len() * bytes.len());
}
