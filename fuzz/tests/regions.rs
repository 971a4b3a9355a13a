//! Region markers in generated source.

use bolero::check;
use unfuse_fuzz::{Edited, TEST_TIME};
use unfuse_postprocess::RegionMap;

#[test]
fn regions() {
    check!().with_test_time(TEST_TIME).for_each(read);
}

#[test]
fn regions_edited() {
    check!()
        .with_test_time(TEST_TIME)
        .with_generator(Edited::corpus("regions"))
        .for_each(|bytes| read(bytes));
}

fn read(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let map = RegionMap::parse(&text);
    let begins = text.matches("/* BeginCodeRegion(").count();
    for line in (0..=1 + text.lines().count() as u32).chain([u32::MAX]) {
        let around = map.line(line);
        assert!(around.len() <= begins && around.iter().all(|region| region.id >= 0));
    }
}
