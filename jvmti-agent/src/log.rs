//! What the user gets to read: one line, on stderr.

/// Prints `unfuse: LINE`. A closed stderr is no reason to fail.
pub(crate) fn say(line: impl std::fmt::Display) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "unfuse: {line}");
}
