//! Fuzz targets for everything that reads bytes from outside its own process.
//!
//! Each file of `tests/` is a target with two tests. `NAME` replays the files of
//! `tests/__fuzz__/NAME/corpus` (and `crashes`) and continues with random bytes. `NAME_edited` takes
//! edited copies of these files. `segments` has no corpus of its own: `segments_edited` takes that of
//! `profile`. Some targets have a third test, which checks that the corpus gives answers.
//!
//! `cargo test` gives each of the two about one second, on stable. For a longer run:
//!
//! ```text
//! CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS=true BOLERO_RANDOM_TEST_TIME_MS=600000 TMPDIR=/dev/shm \
//!     cargo test --release -p unfuse-fuzz --test profile
//! ```
//!
//! With `cargo bolero test -p unfuse-fuzz NAME` (cargo-bolero, nightly) libFuzzer chooses the inputs.
//! An input that crashed stays in the corpus.

mod edited;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

pub use edited::EditedCopies;

/// Time of one test of `cargo test`, the corpus included.
pub const TEST_TIME: Duration = Duration::from_secs(1);

/// The folder of a target's corpus.
pub fn corpus_dir(target: &str) -> PathBuf {
    [
        env!("CARGO_MANIFEST_DIR"),
        "tests/__fuzz__",
        target,
        "corpus",
    ]
    .iter()
    .collect()
}

/// A temporary directory that only its user can open, as a profile has to be.
pub fn private_dir() -> tempfile::TempDir {
    let mode = fs::Permissions::from_mode(0o700);
    let mut builder = tempfile::Builder::new();
    let made = builder.permissions(mode).tempdir();
    made.unwrap_or_else(|e| panic!("a temporary directory: {e}"))
}

/// A target's corpus, in file name order.
pub fn corpus(target: &str) -> Vec<Vec<u8>> {
    let dir = corpus_dir(target);
    let mut paths: Vec<PathBuf> = fs::read_dir(&dir)
        .unwrap_or_else(|e| panic!("{}: {e}", dir.display()))
        .flatten()
        .map(|entry| entry.path())
        .collect();
    paths.sort();
    paths
        .iter()
        .map(|path| fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
        .collect()
}
