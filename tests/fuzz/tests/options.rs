//! The agent's option string.

use bolero::check;
use unfuse_fuzz::{EditedCopies, TEST_TIME};
use unfuse_profiler::options::Options;

#[test]
fn options() {
    check!().with_test_time(TEST_TIME).for_each(read);
}

#[test]
fn options_edited() {
    check!()
        .with_test_time(TEST_TIME)
        .with_generator(EditedCopies::corpus("options"))
        .for_each(|bytes| read(bytes));
}

/// Checks that any text results in valid settings, and in at most one complaint more than it has options.
fn read(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let options = Options::parse(&text);
    assert!(
        options.complaints.len() <= text.split(',').count() + 1,
        "{:?}",
        options.complaints
    );
    let again = Options::parse(&text);
    assert_eq!(options.complaints, again.complaints);
    assert_eq!(options.period_ns(), again.period_ns());
    assert!(!options.config.dir.as_os_str().is_empty());
    assert!(options.config.rate_hz == 0 || options.period_ns() >= 100_000);
    assert!((4..=16_384).contains(&options.config.map_mib));
}
