//! The output of a Spark job.

use std::fs;
use std::path::Path;

/// Lines of the job's output that are shown if it fails.
const LAST: usize = 10;

/// The last lines that a program printed, without the stacks of exceptions.
pub(super) fn last_lines(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines = text.lines().filter(|line| {
        let line = line.trim_start();
        !line.is_empty() && !line.starts_with("at ") && !line.starts_with("... ")
    });
    let mut last: Vec<String> = lines
        .rev()
        .take(LAST)
        .map(|line| format!("  {}", line.replace(char::is_control, " ")))
        .collect();
    last.reverse();
    last.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_shown_without_stacks() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        fs::write(
            &log,
            "one\nwhy it failed\n\tat a.B.c(B.java:1)\n\t... 7 more\n\n",
        )
        .unwrap();
        assert_eq!(last_lines(&log), "  one\n  why it failed");
    }
}
