use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

use nix::sys::stat::Mode;
use nix::unistd::{Uid, geteuid, mkfifo};
use tempfile::TempDir;

use crate::{Access, Directory, DirectoryError, Kind};

/// Nobody's.
const OTHER: u32 = 65_534;

fn home() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

fn mode(path: &Path) -> u32 {
    let metadata = fs::symlink_metadata(path).expect("it is there");
    metadata.permissions().mode() & 0o7777
}

fn directory(home: &TempDir, name: &str, mode: u32) -> PathBuf {
    let path = home.path().join(name);
    fs::create_dir(&path).expect("a directory");
    fs::set_permissions(&path, Permissions::from_mode(mode)).expect("its mode");
    path
}

fn create(path: &Path) -> Result<Directory, DirectoryError> {
    Directory::create(path, Access::Private)
}

/// The suite runs as root: only root can make what belongs to others.
fn require_root() {
    assert!(
        geteuid().is_root(),
        "this test needs root: it makes directories of another user"
    );
}

#[test]
fn what_is_created_is_private() {
    let home = home();
    let path = home.path().join("a/b");
    let made = create(&path).expect("a directory");
    made.write("file", b"text").expect("written");
    made.create_file("other").expect("created");
    made.open_or_create("third").expect("created");
    made.create_folder("folder", Access::Private).expect("made");
    for (name, expected) in [("a", 0o700), ("a/b", 0o700), ("a/b/folder", 0o700)] {
        assert_eq!(mode(&home.path().join(name)), expected, "{name}");
    }
    for name in ["file", "other", "third"] {
        assert_eq!(mode(&path.join(name)), 0o600, "{name}");
    }
    assert!(create(&path).is_ok(), "it is there");
    let mut names = made.names().expect("names");
    names.sort();
    assert_eq!(names, ["file", "folder", "other", "third"]);
}

#[test]
fn directories_that_let_others_in_are_refused() {
    let home = home();
    for (name, bits, access, fails) in [
        ("p755", 0o755, Access::Private, true),
        ("p710", 0o710, Access::Private, true),
        ("p770", 0o770, Access::Private, true),
        ("r755", 0o755, Access::Readable, false),
        ("r775", 0o775, Access::Readable, true),
        ("r757", 0o757, Access::Readable, true),
        ("r1777", 0o1777, Access::Readable, true),
    ] {
        let path = directory(&home, name, bits);
        let created = Directory::create(&path, access);
        assert_eq!(
            matches!(created, Err(DirectoryError::OpenToOthers { mode, .. }) if mode == bits),
            fails,
            "{name}"
        );
    }
    let refused = create(&home.path().join("p770")).expect_err("refused");
    let text = refused.to_string();
    assert!(
        text.contains("write to") && text.contains("chmod go-rwx"),
        "{text}"
    );
}

#[test]
fn directories_of_others_are_refused() {
    require_root();
    let home = home();
    let path = directory(&home, "foreign", 0o700);
    chown(&path, Some(OTHER), None).expect("given away");
    assert!(matches!(
        create(&path),
        Err(DirectoryError::OfAnotherUser { owner, .. }) if owner == Uid::from_raw(OTHER)
    ));
}

#[test]
fn directories_for_all_are_those_of_root_and_ones_own() {
    require_root();
    let home = home();
    for (name, owner, bits, accepted) in [
        ("sticky", 0, 0o1777, true),
        ("volume", 0, 0o777, true),
        ("foreign", OTHER, 0o1777, false),
        ("foreign-private", OTHER, 0o700, false),
    ] {
        let path = directory(&home, name, bits);
        chown(&path, Some(owner), None).expect("its owner");
        assert_eq!(Directory::create_shared(&path).is_ok(), accepted, "{name}");
    }
    let new = home.path().join("new");
    Directory::create_shared(&new).expect("made");
    assert_eq!(mode(&new), 0o700);
}

#[test]
fn links_in_the_place_of_directories_are_refused() {
    let home = home();
    let target = directory(&home, "target", 0o700);
    let link = home.path().join("link");
    symlink(&target, &link).expect("a link");
    for path in [
        link.clone(),
        link.join("."),
        PathBuf::from(format!("{}/", link.display())),
    ] {
        assert!(
            matches!(create(&path), Err(DirectoryError::Link(_))),
            "{path:?}"
        );
    }
    fs::write(home.path().join("file"), "").expect("a file");
    let file = create(&home.path().join("file"));
    assert!(matches!(file, Err(DirectoryError::NotADirectory(_))));
    let made = create(&target).expect("a directory");
    symlink(home.path(), target.join("folder")).expect("a link");
    assert!(matches!(
        made.create_folder("folder", Access::Private),
        Err(DirectoryError::Link(_))
    ));
    assert!(
        made.folder("folder")
            .expect_err("a link")
            .to_string()
            .contains("symbolic link")
    );
}

#[test]
fn only_regular_files_are_opened() {
    let home = home();
    let made = create(&home.path().join("made")).expect("a directory");
    fs::write(home.path().join("secret"), "secret").expect("a file");
    symlink("../secret", made.path().join("link")).expect("a link");
    mkfifo(&made.path().join("pipe"), Mode::S_IRWXU).expect("a pipe");
    fs::create_dir(made.path().join("folder")).expect("a folder");
    for (name, kind) in [
        ("link", Kind::Link),
        ("pipe", Kind::Special),
        ("folder", Kind::Directory),
    ] {
        assert_eq!(made.about(name).expect("there").kind, kind);
        assert!(made.open_file(name).is_err(), "{name}");
        assert!(made.open_or_create(name).is_err(), "{name}");
        assert!(made.create_file(name).is_err(), "{name}");
    }
    for name in [
        "../secret",
        "/etc/passwd",
        "..",
        ".",
        "",
        "folder/x",
        "folder/",
    ] {
        assert!(made.open_file(name).is_err(), "{name:?}");
        assert!(made.create_file(name).is_err(), "{name:?}");
        assert!(made.write(name, b"x").is_err(), "{name:?}");
    }
    // Written in the place of links and pipes, not through them.
    for name in ["link", "pipe"] {
        made.write(name, b"new").expect("written");
        assert_eq!(made.read(name, 3).expect("read"), b"new");
    }
    assert_eq!(
        fs::read(home.path().join("secret")).expect("read"),
        b"secret"
    );
    let too_long = made.read("link", 2).expect_err("longer");
    assert_eq!(too_long.kind(), io::ErrorKind::FileTooLarge);
}

#[test]
fn it_stays_the_directory_that_was_opened() {
    let home = home();
    let (path, moved) = (home.path().join("made"), home.path().join("moved"));
    let made = create(&path).expect("a directory");
    fs::rename(&path, &moved).expect("moved");
    let planted = directory(&home, "planted", 0o777);
    symlink(&planted, &path).expect("a link");
    made.write("file", b"text").expect("written");
    made.create_folder("folder", Access::Private).expect("made");
    assert!(moved.join("file").exists() && moved.join("folder").exists());
    assert_eq!(fs::read_dir(planted).expect("read").count(), 0);
}

#[test]
fn only_a_directory_that_was_not_there_is_new() {
    let home = home();
    let new = home.path().join("a/new");
    assert!(Directory::create_new(&new).expect("made").is_some());
    assert_eq!(mode(&new), 0o700);
    symlink(&new, home.path().join("link")).expect("a link");
    fs::write(home.path().join("file"), "").expect("a file");
    for name in ["a/new", "a/new/", "link", "file", "."] {
        let made = Directory::create_new(&home.path().join(name)).expect("looked at");
        assert!(made.is_none(), "{name}");
    }
}

#[test]
fn a_directory_is_deleted_with_what_is_in_it() {
    let home = home();
    let outside = directory(&home, "outside", 0o700);
    fs::write(outside.join("file"), "text").expect("a file");
    let made = create(&home.path().join("made")).expect("a directory");
    let folder = made
        .create_folder("folder", Access::Private)
        .expect("a folder");
    folder
        .create_folder("folder", Access::Private)
        .expect("a folder");
    for directory in [&made, &folder] {
        let path = directory.path();
        directory.write("file", b"text").expect("written");
        symlink(&outside, path.join("link")).expect("a link");
        symlink("nothing", path.join("broken")).expect("a link");
        fs::hard_link(outside.join("file"), path.join("second")).expect("a name");
        mkfifo(&path.join("pipe"), Mode::S_IRWXU).expect("a pipe");
    }
    made.delete().expect("deleted");
    assert!(!made.path().exists());
    assert_eq!(fs::read(outside.join("file")).expect("read"), b"text");
}

#[test]
fn another_directory_is_not_deleted() {
    let home = home();
    let (path, moved) = (home.path().join("made"), home.path().join("moved"));
    let made = create(&path).expect("a directory");
    made.write("file", b"text").expect("written");
    fs::rename(&path, &moved).expect("moved");
    for plant in [
        |path: &Path| fs::create_dir(path),
        |path: &Path| symlink(path.with_file_name("planted"), path),
    ] {
        fs::create_dir_all(home.path().join("planted")).expect("a directory");
        fs::write(home.path().join("planted/other"), "other").expect("a file");
        plant(&path).expect("planted");
        let error = made.delete().expect_err("moved");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert_eq!(fs::read_dir(&moved).expect("read").count(), 0);
        assert!(home.path().join("planted/other").exists());
        assert!(fs::symlink_metadata(&path).is_ok());
        let _ = fs::remove_dir(&path);
    }
}

#[test]
fn a_folder_of_another_owner_keeps_what_is_in_it() {
    require_root();
    let home = home();
    let made = create(&home.path().join("made")).expect("a directory");
    let folder = directory(&home, "made/foreign", 0o700);
    fs::write(folder.join("file"), "text").expect("a file");
    made.write("file", b"text").expect("written");
    chown(&folder, Some(OTHER), None).expect("given away");
    made.delete().expect_err("not empty");
    assert_eq!(made.names().expect("names"), ["foreign"]);
    fs::remove_file(folder.join("file")).expect("removed");
    made.delete().expect("deleted");
    assert!(!made.path().exists());
}

#[test]
fn a_file_that_is_not_complete_is_removed() {
    let home = home();
    let made = create(&home.path().join("made")).expect("a directory");
    let mut file = made.new_file().expect("a file");
    file.write_all(b"half").expect("written");
    let [temporary] = <[_; 1]>::try_from(made.names().expect("names")).expect("one name");
    assert_eq!(mode(&made.path().join(temporary)), 0o600);
    drop(file);
    assert!(made.names().expect("names").is_empty());
    // A name that cannot be had: the file is removed, too.
    made.create_folder("name", Access::Private).expect("made");
    assert!(made.write("name", b"text").is_err());
    assert_eq!(made.names().expect("names"), ["name"]);
}
