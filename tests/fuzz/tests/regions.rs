//! Region markers in generated source.

use bolero::check;
use unfuse_fuzz::{EditedCopies, TEST_TIME};
use unfuse_postprocess::{RegionKind, RegionMap};

#[test]
fn regions() {
    check!().with_test_time(TEST_TIME).for_each(read);
}

#[test]
fn regions_edited() {
    check!()
        .with_test_time(TEST_TIME)
        .with_generator(EditedCopies::corpus("regions"))
        .for_each(|bytes| read(bytes));
}

/// Checks that the text has a marker for each region of a line, that no line is in more regions than there are markers,
/// and that all queries agree.
fn read(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let map = RegionMap::parse(&text);
    let lines = text.lines().count() as u32;
    let begins = text.matches("/* BeginCodeRegion(").count();
    for number in 1..=lines {
        let around = map.line(number);
        for region in &around {
            let kind = match region.kind {
                RegionKind::Produce => "PRODUCE",
                RegionKind::Consume => "CONSUME",
            };
            let marker = format!("/* BeginCodeRegion({kind}_");
            assert!(
                text.contains(&marker) && region.id >= 0,
                "{region:?} was not opened"
            );
        }
        assert_eq!(map.innermost(number), around.last().copied());
        assert!(map.outwards(number).eq(around.iter().rev().copied()));
        assert!(around.len() <= begins);
    }
    for outside in [0, lines + 1, u32::MAX] {
        assert!(map.line(outside).is_empty());
    }
}
