//! Hostile inputs: a file of a stranger may contain anything. Every command that reads it ends by itself, with an answer or a
//! message, within limits of memory and time. The terminal gets no control characters from the file.
//!
//! The code here makes each input. Each command runs on each input as a user would run it.

mod check;
mod csv;
mod jobs;
mod logs;
mod parquet;
mod profiles;
mod settings;

use std::path::Path;

use check::{Case, check_all};

/// A text that must not appear in any output. It is in a file to which inputs refer, but which no command names.
const SECRET: &str = "CANARY-7f3a9c";

/// A name with all kinds of characters that a terminal or a page could interpret.
const NAME: &str = "evil\u{1b}]0;title\u{7}\u{1b}[2J\u{9b}31m\r\u{8}\u{202e}txt\u{2066}\u{2028}\u{7f}<script>\"',;=\n+1";

/// Makes the file that no command names.
fn secret(dir: &Path) -> std::path::PathBuf {
    let path = dir.join("secret.txt");
    std::fs::write(&path, format!("{SECRET}\n").repeat(50)).expect("written");
    path
}

#[test]
fn profiles_of_strangers() {
    let dir = tempfile::tempdir().expect("a directory");
    let cases: Vec<Case> = profiles::make(dir.path())
        .into_iter()
        .flat_map(|profile| profiles::commands(&profile, dir.path()))
        .collect();
    check_all(&cases);
}

#[test]
fn event_logs_of_strangers() {
    let dir = tempfile::tempdir().expect("a directory");
    check_all(&logs::cases(dir.path()));
}

#[test]
fn csv_files_of_strangers() {
    let dir = tempfile::tempdir().expect("a directory");
    check_all(&csv::cases(dir.path()));
}

#[test]
fn tables_and_settings_of_strangers() {
    let dir = tempfile::tempdir().expect("a directory");
    check_all(&settings::cases(dir.path()));
}
