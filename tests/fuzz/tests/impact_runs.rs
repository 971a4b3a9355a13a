//! Tables of runs, for `unfuse impact`.

use std::path::Path;

use bolero::check;
use unfuse_fuzz::{EditedCopies, TEST_TIME};
use unfuse_impact::{Analysis, Table};

#[test]
fn impact_runs() {
    check!().with_test_time(TEST_TIME).for_each(|bytes| {
        read(bytes);
    });
}

#[test]
fn impact_runs_edited() {
    check!()
        .with_test_time(TEST_TIME)
        .with_generator(EditedCopies::corpus("impact_runs"))
        .for_each(|bytes| {
            read(bytes);
        });
}

#[test]
fn the_corpus_has_answers() {
    let answers = unfuse_fuzz::corpus("impact_runs")
        .iter()
        .map(|bytes| read(bytes))
        .sum::<usize>();
    assert!(answers >= 2, "{answers} indicators of CSV and TOML");
}

/// Parses the text in both formats. An indicator is a number, and one outside 0 to 1 has a note.
/// Returns the number of indicators.
fn read(bytes: &[u8]) -> usize {
    let text = String::from_utf8_lossy(bytes);
    let mut indicators = 0;
    for name in ["runs.csv", "runs.toml"] {
        let Ok(table) = Table::parse(&text, Path::new(name), None) else {
            continue;
        };
        let Ok(workloads) = table.workloads() else {
            continue;
        };
        for runs in workloads.values() {
            let analysis = Analysis::new(runs);
            for scheme in &analysis.schemes {
                assert!(
                    scheme.seconds.is_finite() && scheme.seconds > 0.0,
                    "{scheme:?}"
                );
            }
            for indicator in &analysis.indicators {
                let value = indicator.value;
                let is_share = (0.0..=1.0).contains(&value);
                assert!(value.is_finite(), "{indicator:?}");
                assert!(is_share || indicator.outside.is_some(), "{indicator:?}");
            }
            indicators += analysis.indicators.len();
        }
    }
    indicators
}
