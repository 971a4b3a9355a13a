//! Files that `unfuse size` reads besides prices: its own profiles, and tables of runs.

use std::path::Path;

use bolero::check;
use unfuse_fuzz::{EditedCopies, TEST_TIME};
use unfuse_sizing::{GivenValues, Point, Profile};

#[test]
fn sizing_tables() {
    check!().with_test_time(TEST_TIME).for_each(|bytes| {
        read(bytes);
    });
}

#[test]
fn sizing_tables_edited() {
    check!()
        .with_test_time(TEST_TIME)
        .with_generator(EditedCopies::corpus("sizing_tables"))
        .for_each(|bytes| {
            read(bytes);
        });
}

#[test]
fn the_corpus_has_a_profile_and_a_table() {
    let corpus = unfuse_fuzz::corpus("sizing_tables");
    assert!(
        corpus.iter().any(|bytes| read(bytes)),
        "a profile with an answer"
    );
    assert!(corpus.iter().any(|bytes| {
        GivenValues::parse(bytes, Path::new("runs.csv"))
            .is_ok_and(|of| of != GivenValues::default())
    }));
}

/// Checks that a profile stays the same when it is written and read, and that it predicts a time or
/// nothing. Returns whether it predicts.
fn read(bytes: &[u8]) -> bool {
    let _ = GivenValues::parse(bytes, Path::new("runs.csv"));
    let Ok(profile) = Profile::parse(&String::from_utf8_lossy(bytes)) else {
        return false;
    };
    let written = profile.to_toml().expect("what was read can be written");
    assert_eq!(Profile::parse(&written).as_ref(), Ok(&profile));
    let ranges = profile.ranges();
    let point = Point {
        slots: ranges.slots.most,
        iterations: ranges.iterations.most,
        bytes: ranges.bytes.most,
    };
    let Ok(prediction) = profile.predict(&point, None) else {
        return false;
    };
    assert!(
        prediction.seconds.is_finite() && prediction.seconds >= 0.0,
        "{prediction:?}"
    );
    true
}
