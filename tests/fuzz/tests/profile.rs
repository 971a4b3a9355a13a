//! A segment of arbitrary bytes inside an otherwise good profile.

use std::fs;
use std::io;
use std::path::PathBuf;

use bolero::check;
use tempfile::TempDir;
use unfuse_format::{ProfileDir, Table};
use unfuse_fuzz::{EditedCopies, TEST_TIME, corpus_dir, private_dir};

use unfuse_postprocess::{By, Level, Order, Profile, Selection, Totals, annotated, export, folded};

#[test]
fn profile() {
    let profile = Surrounding::new();
    check!()
        .with_test_time(TEST_TIME)
        .for_each(|bytes| profile.read_with(bytes));
}

#[test]
fn profile_edited() {
    let profile = Surrounding::new();
    check!()
        .with_test_time(TEST_TIME)
        .with_generator(EditedCopies::corpus("profile"))
        .for_each(|bytes| profile.read_with(bytes));
}

#[test]
fn the_surrounding_profile_has_answers() {
    let profile = Surrounding::new();
    let read = Profile::open(profile.tmp.path()).expect("a good profile");
    let totals = Totals::new(&read, Selection::default(), By::Operator);
    assert!(totals.rows.iter().any(|row| row.node_id.is_some()));
    assert!(
        !annotated(&read, Selection::default())
            .expect("sources")
            .is_empty()
    );
}

const RECORDED_SOURCES: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../cli/tests/fixtures/canonical/sources"
);

/// The tables from which answers come; only other readers of the profile use `tasks`.
const TABLES: [&str; 8] = [
    unfuse_format::SampleRow::NAME,
    unfuse_format::StackRow::NAME,
    unfuse_format::ProcessRow::NAME,
    unfuse_format::SourceRow::NAME,
    unfuse_format::CodegenRow::NAME,
    unfuse_format::PlanRow::NAME,
    unfuse_format::ExecutionRow::NAME,
    unfuse_format::StageRow::NAME,
];

/// A profile with the good segments of the corpus, `TABLE.parquet`, and one file of arbitrary bytes.
/// The file is a segment of every table, because only the name of its folder selects the table. It is
/// also a source.
struct Surrounding {
    tmp: TempDir,
    anything: PathBuf,
    /// Hard links to it, because readers follow no symbolic links.
    places: Vec<PathBuf>,
}

impl Surrounding {
    fn new() -> Self {
        let tmp = private_dir();
        let anything = tmp.path().join("anything");
        let mut places = Vec::new();
        ProfileDir::create(tmp.path()).expect("a profile directory");
        for table in TABLES {
            let folder = tmp.path().join(table);
            fs::create_dir(&folder).expect("a table's folder");
            let good = corpus_dir("profile").join(table).with_extension("parquet");
            fs::copy(good, folder.join("good.parquet")).expect("a segment of the corpus");
            places.push(folder.join("anything.parquet"));
        }
        let sources = tmp.path().join("sources");
        fs::create_dir(&sources).expect("the sources' folder");
        places.push(sources.join("anything.java"));
        for entry in fs::read_dir(RECORDED_SOURCES).expect("sources").flatten() {
            fs::copy(entry.path(), sources.join(entry.file_name())).expect("a source");
        }
        Self {
            tmp,
            anything,
            places,
        }
    }

    fn read_with(&self, bytes: &[u8]) {
        // A new file each time: some file systems flush a truncated and rewritten file.
        let _ = fs::remove_file(&self.anything);
        fs::write(&self.anything, bytes).expect("a file is written");
        for place in &self.places {
            let _ = fs::remove_file(place);
            fs::hard_link(&self.anything, place).expect("a link");
        }
        let read = Profile::open(self.tmp.path()).expect("one bad segment spoils no profile");
        let all = Selection::default();
        for by in [
            By::Operator,
            By::Line,
            By::Method,
            By::Stage,
            By::Query,
            By::Thread,
            By::Rule,
        ] {
            let _ = Totals::new(&read, all, by);
        }
        let _ = folded(&read, all, Level::Operator, Order::Plan);
        let _ = folded(&read, all, Level::Full, Order::Code);
        for write in [
            export::speedscope,
            export::pprof,
            export::otlp,
            export::firefox,
            export::json,
        ] {
            let _ = write(&read, all, Level::Full, io::sink());
        }
        annotated(&read, all).expect("one bad segment spoils no source");
    }
}
