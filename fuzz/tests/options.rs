//! The agent's option string.

use bolero::check;
use unfuse::options::Options;
use unfuse_fuzz::{Edited, TEST_TIME};

#[test]
fn options() {
    check!().with_test_time(TEST_TIME).for_each(read);
}

#[test]
fn options_edited() {
    check!()
        .with_test_time(TEST_TIME)
        .with_generator(Edited::corpus("options"))
        .for_each(|bytes| read(bytes));
}

/// Whatever is asked, the profiler gets settings it can work with.
fn read(bytes: &[u8]) {
    let options = Options::parse(&String::from_utf8_lossy(bytes));
    assert!(!options.config.dir.as_os_str().is_empty());
    assert!(options.config.rate_hz == 0 || options.period_ns() >= 100_000);
    assert!((4..=16_384).contains(&options.config.map_mib));
}
