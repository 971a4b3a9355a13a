//! CSV files of any engine, for `unfuse blame`.

use std::fs;

use bolero::check;
use tempfile::TempDir;
use unfuse_contention::{Blame, Graph, INTERVALS_CSV, Options, VictimStages, Workload, from_csv};
use unfuse_fuzz::{EditedCopies, TEST_TIME};

#[test]
fn contention_csv() {
    let files = Files::default();
    check!().with_test_time(TEST_TIME).for_each(|bytes| {
        files.read(bytes);
    });
}

#[test]
fn contention_csv_edited() {
    let files = Files::default();
    check!()
        .with_test_time(TEST_TIME)
        .with_generator(EditedCopies::corpus("contention_csv"))
        .for_each(|bytes| {
            files.read(bytes);
        });
}

#[test]
fn the_corpus_has_an_answer() {
    let corpus = unfuse_fuzz::corpus("contention_csv");
    assert!(corpus.iter().any(|bytes| Files::default().read(bytes) > 0));
}

/// A directory of CSV files. An input contains them one after the other, separated by NUL bytes.
struct Files(TempDir);

impl Default for Files {
    fn default() -> Self {
        Self(tempfile::tempdir().expect("a temporary directory"))
    }
}

impl Files {
    /// Checks that the blame is a part of the blocked time. Returns the number of culprits.
    fn read(&self, bytes: &[u8]) -> usize {
        let names = [INTERVALS_CSV, "hosts.csv", "queries.csv", "stages.csv"];
        let mut parts = bytes.split(|byte| *byte == 0);
        for name in names {
            let path = self.0.path().join(name);
            let _ = fs::remove_file(&path);
            if let Some(part) = parts.next() {
                fs::write(path, part).expect("a file is written");
            }
        }
        let Ok(input) = from_csv(self.0.path()) else {
            return 0;
        };
        let Ok(workload) = Workload::new(input.tables) else {
            return 0;
        };
        let options = Options {
            stages: VictimStages::All,
            ..Options::default()
        };
        if options.check(&workload).is_err() {
            return 0;
        }
        let rows = &workload.tables().intervals;
        let blocked: f64 = rows.iter().map(|row| row.blocked_ns as f64 / 1e9).sum();
        let graph = Graph::from_blame(&workload, &Blame::new(&workload, &options));
        let level = |level: u8| {
            graph
                .nodes
                .iter()
                .filter(move |node| node.key.level() == level)
        };
        for number in [0, 4] {
            let impacts = level(number).flat_map(|node| node.impact.values());
            let seconds: f64 = impacts
                .inspect(|impact| assert!(impact.seconds >= 0.0, "{impact:?}"))
                .map(|impact| impact.seconds)
                .sum();
            assert!(
                seconds <= blocked * (1.0 + 1e-6) + 1e-6,
                "level {number}: {seconds} of {blocked}"
            );
        }
        level(4).count()
    }
}
