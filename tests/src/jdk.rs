//! The JDKs of this machine, and programs compiled by them.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use unfuse_machine::java_release;

use crate::{root, run};

/// The JDKs in /usr/lib/jvm from 17 on, the oldest first: 17 itself and at least one of 21 or newer.
///
/// # Panics
/// If one of the two is missing, because half of the tests would be left out.
pub fn jdks() -> Vec<PathBuf> {
    let mut homes: Vec<(u32, PathBuf)> = fs::read_dir("/usr/lib/jvm")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| fs::canonicalize(entry.path()).ok())
        .filter(|home| home.join("bin/javac").exists())
        .filter_map(|home| Some((java_release(&home)?, home)))
        .filter(|(release, _)| *release >= 17)
        .collect();
    homes.sort();
    homes.dedup();
    let has = |wanted: fn(u32) -> bool| homes.iter().any(|(release, _)| wanted(*release));
    assert!(
        has(|release| release == 17) && has(|release| release >= 21),
        "the tests need JDK 17 and a JDK of 21 or newer in /usr/lib/jvm; found {homes:?}"
    );
    homes.into_iter().map(|(_, home)| home).collect()
}

/// Class files by name.
type Classes = Vec<(OsString, Vec<u8>)>;

/// A JDK, a program and a class path.
type Key = (PathBuf, String, String);

/// Compiled programs, because javac takes longer than many tests.
static COMPILED: Mutex<Option<HashMap<Key, Classes>>> = Mutex::new(None);

/// Compiles a program of `tests/programs`, and the other programs that it uses, into `into`.
pub fn compile(home: &Path, program: &str, into: &Path) {
    compile_against(home, program, "", into);
}

/// The same with a class path for classes that are not in `tests/programs`.
pub fn compile_against(home: &Path, program: &str, class_path: &str, into: &Path) {
    let key = (home.to_owned(), program.to_owned(), class_path.to_owned());
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    let classes = compiled
        .get_or_insert_default()
        .entry(key)
        .or_insert_with(|| javac(home, program, class_path));
    fs::create_dir_all(into).expect("a directory for classes");
    for (name, bytes) in classes {
        fs::write(into.join(name), bytes).expect("a class file");
    }
}

fn javac(home: &Path, program: &str, class_path: &str) -> Classes {
    let dir = tempfile::tempdir().expect("a directory");
    let programs = root().join("tests/programs");
    run(Command::new(home.join("bin/javac"))
        .args(["-nowarn", "-cp", class_path, "-sourcepath"])
        .arg(&programs)
        .arg("-d")
        .arg(dir.path())
        .arg(programs.join(program)));
    let files = fs::read_dir(dir.path()).expect("class files").flatten();
    files
        .map(|file| {
            let bytes = fs::read(file.path()).expect("a class file");
            (file.file_name(), bytes)
        })
        .collect()
}
