//! Python environments of tests. Lock files below `tests` pin their packages, and the cache directory keeps them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cache::installed;
use crate::{root, run};

/// The environment of `tests/NAME/requirements.lock`; installs it if it is missing.
///
/// # Panics
/// If that fails.
pub fn python_environment(name: &str) -> PathBuf {
    let lock = format!("{name}/requirements.lock");
    installed(name, &[&lock], |home| {
        install(home, &root().join("tests").join(&lock), &[]);
    })
}

/// Makes an environment with the packages of a lock file, with further options of pip.
pub(crate) fn install(environment: &Path, lock: &Path, options: &[&str]) {
    run(Command::new("python3")
        .args(["-m", "venv", "--clear"])
        .arg(environment));
    run(Command::new(environment.join("bin/python"))
        .args(["-m", "pip", "install", "--quiet", "--require-hashes"])
        .args(options)
        .arg("-r")
        .arg(lock));
}

/// Where an environment has its packages.
///
/// # Panics
/// If it is no environment.
pub fn packages(environment: &Path) -> PathBuf {
    let lib = fs::read_dir(environment.join("lib")).expect("a virtual environment");
    let version = lib.flatten().next().expect("a version of Python");
    version.path().join("site-packages")
}
