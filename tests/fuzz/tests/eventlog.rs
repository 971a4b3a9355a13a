//! Spark's event logs, in any codec.

use std::io::Cursor;
use std::path::Path;

use bolero::check;
use unfuse_eventlog::EventLog;
use unfuse_fuzz::{EditedCopies, TEST_TIME};
use unfuse_skew::{Options, detect, from_event_log};

#[test]
fn eventlog() {
    check!().with_test_time(TEST_TIME).for_each(read);
}

#[test]
fn eventlog_edited() {
    check!()
        .with_test_time(TEST_TIME)
        .with_generator(EditedCopies::corpus("eventlog"))
        .for_each(|bytes| read(bytes));
}

/// Checks that each event is a line of the text, that no more text is unpacked than a log of this size may hold, and that
/// findings about stages are numbers.
fn read(bytes: &[u8]) {
    let open = || EventLog::from_reader(Cursor::new(bytes.to_vec()), Path::new("log"));
    let Ok(mut log) = open() else { return };
    let events = log.by_ref().count() as u64;
    let damage = log.damage();
    assert!(2 * (events + damage.broken_lines) <= log.bytes() + 1);
    assert!(log.bytes() <= (65 << 20) + 201 * bytes.len() as u64);
    assert_eq!(damage.is_none(), damage.notes().is_empty());
    let run = from_event_log(&mut open().expect("it was opened before"));
    for stage in &run.stages {
        let finding = detect(stage, &Options::default());
        assert!(
            finding.saved_ms.is_finite() && finding.saved_ms >= 0.0,
            "{finding:?}"
        );
    }
}
