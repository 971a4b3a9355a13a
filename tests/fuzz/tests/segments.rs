//! A segment of arbitrary bytes as each of the tables.

use std::fs;

use bolero::check;
use tempfile::TempDir;
use unfuse_format::*;
use unfuse_fuzz::{EditedCopies, TEST_TIME, private_dir};

#[test]
fn segments() {
    let profile = Tables::new();
    check!().with_test_time(TEST_TIME).for_each(|bytes| {
        profile.read(bytes);
    });
}

/// Uses the corpus of the target `profile`.
#[test]
fn segments_edited() {
    let profile = Tables::new();
    check!()
        .with_test_time(TEST_TIME)
        .with_generator(EditedCopies::corpus("profile"))
        .for_each(|bytes| {
            profile.read(bytes);
        });
}

#[test]
fn the_corpus_has_rows() {
    let profile = Tables::new();
    let rows: usize = unfuse_fuzz::corpus("profile")
        .iter()
        .map(|bytes| profile.read(bytes))
        .sum();
    assert!(rows > 0);
}

/// Bytes of rows that any segment may unpack to, and further bytes per byte of the segment.
const ANY: usize = 64 << 20;
const PER_BYTE: usize = 512;

struct Tables {
    tmp: TempDir,
    dir: ProfileDir,
}

impl Tables {
    fn new() -> Self {
        let tmp = private_dir();
        let dir = ProfileDir::create(tmp.path()).expect("a profile directory");
        Self { tmp, dir }
    }

    /// Reads the segment as each table. Returns the number of rows, which take no more memory
    /// than its size allows.
    fn read(&self, bytes: &[u8]) -> usize {
        let mut rows = 0;
        macro_rules! read_tables {
            ($({ $($id:ident $name:ident: $row:ty => $lifetime:ident,)+ })+) => {
                $($(rows += self.read_as::<$row>(bytes);)+)+
            };
        }
        unfuse_format::every_table!(read_tables);
        rows
    }

    fn read_as<T: Table>(&self, bytes: &[u8]) -> usize {
        let folder = self.tmp.path().join(T::NAME);
        let path = folder.join("anything.parquet");
        if !folder.exists() {
            fs::create_dir(&folder).expect("a table's folder");
        }
        // A new file each time: some file systems flush a truncated and rewritten file.
        let _ = fs::remove_file(&path);
        fs::write(&path, bytes).expect("a file is written");
        let read = self
            .dir
            .read::<T>()
            .expect("one bad segment spoils no table");
        assert!(
            read.rows.is_empty() || read.problems.is_empty(),
            "rows of a segment that was left out"
        );
        let taken = read.rows.len() * size_of::<T>();
        assert!(
            taken <= ANY + PER_BYTE * bytes.len(),
            "{taken} bytes of {}",
            bytes.len()
        );
        read.rows.len()
    }
}
