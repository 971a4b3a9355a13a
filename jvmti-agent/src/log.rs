//! Messages for the user: one line, on stderr.

/// Prints `unfuse: LINE`. A closed stderr is not a failure.
pub(crate) fn say(line: impl std::fmt::Display) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "unfuse: {line}");
}
