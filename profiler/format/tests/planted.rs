//! What others have put in the place of a profile, or into one.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use tempfile::TempDir;
use unfuse_format::{
    FormatError, LiveMarker, MANIFEST, ProfileDir, Retention, SampleRow, SegmentWriter,
};

fn home() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

fn row(count: u64) -> SampleRow {
    SampleRow {
        count,
        ..SampleRow::default()
    }
}

fn write(dir: &ProfileDir, writer: &str) -> Result<(), FormatError> {
    let mut samples = SegmentWriter::new(dir, writer);
    samples.push(row(1));
    samples.flush()
}

/// Everything below a directory.
fn all(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).expect("a directory").flatten() {
        if entry.file_type().expect("its kind").is_dir() {
            found.extend(all(&entry.path()));
        }
        found.push(entry.path());
    }
    found
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("its mode");
}

#[test]
fn everything_in_a_profile_is_private() {
    let home = home();
    let dir = ProfileDir::create(&home.path().join("profile")).expect("a profile");
    let _live = LiveMarker::hold(&dir, "h-1").expect("announced");
    write(&dir, "h-1").expect("written");
    dir.save_source("0a", "class A {}").expect("saved");
    dir.make_records_waiting().expect("made");
    let found = all(home.path());
    assert_eq!(found.len(), 9, "{found:?}");
    for path in found {
        let metadata = fs::symlink_metadata(&path).expect("there");
        let expected = if metadata.is_dir() { 0o700 } else { 0o600 };
        let mode = metadata.permissions().mode() & 0o7777;
        assert_eq!(mode, expected, "{}", path.display());
    }
}

#[test]
fn a_directory_that_others_can_read_is_refused_unless_it_is_a_profile() {
    let home = home();
    let path = home.path().join("profile");
    fs::create_dir(&path).expect("a directory");
    for mode in [0o755, 0o777] {
        set_mode(&path, mode);
        let refused = ProfileDir::create(&path).expect_err("refused").to_string();
        assert!(
            refused.contains("chmod go-rwx") && refused.contains("-o or dir="),
            "{refused}"
        );
    }
    set_mode(&path, 0o700);
    ProfileDir::create(&path).expect("a profile");
    set_mode(&path, 0o755);
    let dir = ProfileDir::create(&path).expect("its owner lets others read it");
    write(&dir, "h-1").expect("written");
    for mode in [0o775, 0o777, 0o1777] {
        set_mode(&path, mode);
        assert!(matches!(
            ProfileDir::create(&path),
            Err(FormatError::Refused(_))
        ));
    }
}

#[test]
fn nothing_is_written_through_links() {
    let home = home();
    let dir = ProfileDir::create(&home.path().join("profile")).expect("a profile");
    let outside = home.path().join("outside");
    fs::create_dir(&outside).expect("a directory");
    for folder in ["samples", "live", "sources", "records.waiting"] {
        symlink(&outside, dir.path().join(folder)).expect("a link");
    }
    assert!(write(&dir, "h-1").is_err());
    assert!(LiveMarker::hold(&dir, "h-1").is_err());
    assert!(dir.save_source("0a", "class A {}").is_err());
    assert!(dir.make_records_waiting().is_err());
    assert_eq!(all(&outside).len(), 0);
    // Nor is anything deleted behind them.
    let segment = outside.join("h-1-g00001-00000.parquet");
    fs::write(&segment, [0; 1000]).expect("a file");
    let limits = Retention {
        bytes: Some(1),
        age: None,
    };
    assert_eq!(limits.enforce(&dir), 0);
    assert!(segment.exists());
    // A link in the place of the manifest, and of the directory.
    let other = home.path().join("other");
    fs::create_dir(&other).expect("a directory");
    set_mode(&other, 0o700);
    symlink(outside.join("planted"), other.join(MANIFEST)).expect("a link");
    assert!(ProfileDir::create(&other).is_err());
    assert!(!outside.join("planted").exists());
    symlink(&other, home.path().join("link")).expect("a link");
    assert!(matches!(
        ProfileDir::create(&home.path().join("link")),
        Err(FormatError::Refused(_))
    ));
}

#[test]
fn links_and_pipes_in_a_profile_are_not_read() {
    let home = home();
    let dir = ProfileDir::create(&home.path().join("profile")).expect("a profile");
    write(&dir, "h-1").expect("written");
    let samples = dir.path().join("samples");
    let own = samples.join("h-1-00000.parquet");
    symlink(&own, samples.join("h-2-00000.parquet")).expect("a link");
    mkfifo(&samples.join("h-3-00000.parquet"), Mode::S_IRWXU).expect("a pipe");
    let read = ProfileDir::open(dir.path())
        .and_then(|dir| dir.read::<SampleRow>())
        .expect("read");
    assert_eq!(read.rows, [row(1)]);
    let reasons: Vec<String> = read.problems.iter().map(ToString::to_string).collect();
    assert!(
        reasons.len() == 2 && reasons[0].contains("link") && reasons[1].contains("pipe"),
        "{reasons:?}"
    );
    for path in dir.segments::<SampleRow>().expect("segments") {
        assert_eq!(dir.read_segment::<SampleRow>(&path).is_ok(), path == own);
    }
    dir.save_source("0a", "class A {}").expect("saved");
    let sources = dir.path().join("sources");
    symlink("0a.java", sources.join("0b.java")).expect("a link");
    mkfifo(&sources.join("0c.java"), Mode::S_IRWXU).expect("a pipe");
    fs::File::create(sources.join("0d.java"))
        .and_then(|file| file.set_len(1 << 40))
        .expect("a large file");
    assert_eq!(
        dir.source("0a").expect("read").as_deref(),
        Some("class A {}")
    );
    for other in ["0b", "0c", "0d"] {
        assert!(dir.source(other).is_err(), "{other}");
    }
    let live = LiveMarker::hold(&dir, "h-1").expect("announced");
    mkfifo(&dir.path().join("live/h-2"), Mode::S_IRWXU).expect("a pipe");
    assert_eq!(LiveMarker::at_work(&dir).len(), 1);
    drop(live);
    fs::remove_file(dir.path().join(MANIFEST)).expect("removed");
    mkfifo(&dir.path().join(MANIFEST), Mode::S_IRWXU).expect("a pipe");
    assert!(!ProfileDir::is_at(dir.path()));
    assert!(ProfileDir::open(dir.path()).is_err());
    fs::remove_dir_all(&samples).expect("removed");
    symlink(&sources, &samples).expect("a link");
    let read = dir.read::<SampleRow>().expect("read");
    assert_eq!((read.rows.len(), read.problems.len()), (0, 1));
}

#[test]
fn a_writer_stays_in_the_directory_that_it_opened() {
    let home = home();
    let (path, moved) = (home.path().join("profile"), home.path().join("moved"));
    let dir = ProfileDir::create(&path).expect("a profile");
    fs::rename(&path, &moved).expect("moved");
    fs::create_dir(&path).expect("another");
    write(&dir, "h-1").expect("written");
    assert!(moved.join("samples/h-1-00000.parquet").exists());
    assert_eq!(all(&path).len(), 0);
    fs::remove_dir_all(&moved).expect("removed");
    assert!(!dir.is_there());
}
