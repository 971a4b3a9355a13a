//! Lines of bounded length.

use std::io::{self, BufRead};

/// The result of reading a line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A complete line, without its end.
    Whole,
    /// The last line, without a line end: possibly cut off.
    Last,
    /// A line longer than allowed, which was skipped.
    TooLong,
    /// There are no more lines.
    End,
}

/// Reads the next non-empty line into `line`.
///
/// # Errors
/// If the text becomes unreadable; the part of the line that was read is lost.
pub(crate) fn next(text: &mut dyn BufRead, line: &mut Vec<u8>, most: usize) -> io::Result<Line> {
    line.clear();
    let mut too_long = false;
    loop {
        let ready = match text.fill_buf() {
            Ok(ready) => ready,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if ready.is_empty() {
            return Ok(match (too_long, line.is_empty()) {
                (true, _) => Line::TooLong,
                (false, true) => Line::End,
                (false, false) => Line::Last,
            });
        }
        let end = memchr::memchr(b'\n', ready);
        let part = &ready[..end.unwrap_or(ready.len())];
        too_long |= line.len() + part.len() > most;
        if too_long {
            line.clear();
        } else {
            line.extend_from_slice(part);
        }
        let used = part.len() + usize::from(end.is_some());
        text.consume(used);
        if end.is_some() {
            if too_long {
                return Ok(Line::TooLong);
            }
            if !line.trim_ascii().is_empty() {
                return Ok(Line::Whole);
            }
            line.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, most: usize) -> Vec<(Line, String)> {
        // As little at a time as possible.
        let mut text = io::BufReader::with_capacity(1, text.as_bytes());
        let mut line = Vec::new();
        let mut lines = Vec::new();
        loop {
            let found = next(&mut text, &mut line, most).unwrap();
            if found == Line::End {
                return lines;
            }
            lines.push((found, String::from_utf8(line.clone()).unwrap()));
        }
    }

    #[test]
    fn long_lines_are_skipped_and_the_last_is_told() {
        assert_eq!(
            lines("one\n\n  \ntoo long a line\nthree\r\nfour", 8),
            [
                (Line::Whole, "one".to_owned()),
                (Line::TooLong, String::new()),
                (Line::Whole, "three\r".to_owned()),
                (Line::Last, "four".to_owned()),
            ]
        );
        assert_eq!(lines("", 8), []);
        assert_eq!(
            lines("too long a line", 8),
            [(Line::TooLong, String::new())]
        );
    }
}
