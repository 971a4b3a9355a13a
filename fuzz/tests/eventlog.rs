//! Spark's event logs, of whatever codec.

use std::io::Cursor;
use std::path::Path;

use bolero::check;
use unfuse_eventlog::EventLog;
use unfuse_fuzz::{Edited, TEST_TIME};

#[test]
fn eventlog() {
    check!().with_test_time(TEST_TIME).for_each(read);
}

#[test]
fn eventlog_edited() {
    check!()
        .with_test_time(TEST_TIME)
        .with_generator(Edited::corpus("eventlog"))
        .for_each(|bytes| read(bytes));
}

fn read(bytes: &[u8]) {
    let reader = Cursor::new(bytes.to_vec());
    if let Ok(mut log) = EventLog::from_reader(reader, Path::new("log")) {
        let events = log.by_ref().count() as u64;
        assert!(events <= log.bytes());
        log.damage().notes();
    }
}
