//! Records of the perf ring.

use bolero::check;
use unfuse_fuzz::{EditedCopies, TEST_TIME};
use unfuse_profiler::perf_event::Record;

#[test]
fn record() {
    check!().with_test_time(TEST_TIME).for_each(read);
}

#[test]
fn record_edited() {
    check!()
        .with_test_time(TEST_TIME)
        .with_generator(EditedCopies::corpus("record"))
        .for_each(|bytes| read(bytes));
}

/// Reads a record as a sampler does, and checks that results are within the record.
fn read(bytes: &[u8]) {
    let Record::Sample(sample) = Record::parse(bytes) else {
        return;
    };
    let words = sample.callchain().count() + sample.stack().count();
    assert!(words <= bytes.len() / 8, "{words} words");
    for address in sample.callchain().chain([sample.frame_pointer, u64::MAX]) {
        let _ = sample.stack_word(address);
    }
    let first = sample.stack_word(sample.stack_pointer);
    assert_eq!(first, sample.stack().next());
}
