//! Removes from untrusted texts the characters that a terminal obeys, or that make a text look like another one.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

/// Whether a character has an effect instead of a shape: ESC and all other controls, characters that change the
/// direction of text (Bidi_Control in the Unicode character database), and separators of lines and paragraphs.
pub fn is_obeyed(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2066}'..='\u{2069}'
        )
}

/// A text in one line: such characters are escaped as in Rust, `\u{1b}`, line ends as `\n`.
pub fn line(text: &str) -> Cow<'_, str> {
    if !text.contains(is_obeyed) {
        return text.into();
    }
    let mut plain = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_obeyed(c) {
            plain.extend(c.escape_default());
        } else {
            plain.push(c);
        }
    }
    plain.into()
}

/// A text in one line without such characters, of at most `room` characters.
pub fn shorten(text: &str, room: usize) -> String {
    let mut one_line = String::new();
    for word in text.split_whitespace() {
        if !one_line.is_empty() {
            one_line.push(' ');
        }
        one_line.push_str(word);
        // More of a long text is not needed.
        if one_line.len() > room.saturating_mul(8) {
            break;
        }
    }
    let one_line = line(&one_line);
    if one_line.chars().count() <= room {
        return one_line.into_owned();
    }
    let mut short: String = one_line.chars().take(room.saturating_sub(1)).collect();
    short.push('…');
    short
}

/// A text for an element or an attribute in XML; characters that XML 1.0 forbids become U+FFFD.
pub fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\r' => out.push_str("&#13;"),
            '\t' | '\n' => out.push(c),
            c if c < ' ' || matches!(c, '\u{FFFE}' | '\u{FFFF}') => out.push('\u{FFFD}'),
            c => out.push(c),
        }
    }
    out
}

/// How a writer escapes such characters. Line feeds and tabs stay: they are ours, or [`line()`] has escaped them
/// before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// In a text: `\u{9b}`.
    Text,
    /// In JSON, whose meaning does not change: `\u009b`.
    Json,
    /// In JSON for a page, which then shows `\u{9b}`.
    Page,
}

/// A writer that passes UTF-8 on and escapes characters that a terminal obeys.
#[derive(Debug)]
pub struct Plain<W: Write> {
    out: W,
    form: Form,
    /// The first bytes of an incomplete character.
    begun: Vec<u8>,
}

impl<W: Write> Plain<W> {
    /// Writes to `out`.
    pub fn new(out: W, form: Form) -> Self {
        Self {
            out,
            form,
            begun: Vec::new(),
        }
    }

    fn write_text(&mut self, text: &str) -> io::Result<()> {
        let mut written = 0;
        for (offset, c) in text.char_indices() {
            if matches!(c, '\n' | '\t') || !is_obeyed(c) {
                continue;
            }
            self.out.write_all(&text.as_bytes()[written..offset])?;
            written = offset + c.len_utf8();
            let mut instead = String::new();
            let code = u32::from(c);
            // All of them are in the basic plane: one UTF-16 unit.
            let _ = match self.form {
                Form::Text => write!(instead, "\\u{{{code:x}}}"),
                Form::Json => write!(instead, "\\u{code:04x}"),
                Form::Page => write!(instead, "\\\\u{{{code:x}}}"),
            };
            self.out.write_all(instead.as_bytes())?;
        }
        self.out.write_all(&text.as_bytes()[written..])
    }
}

impl<W: Write> Write for Plain<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // The common case, with a much faster test.
        let is_shown = |byte: &u8| matches!(byte, b'\n' | b'\t' | b' '..=b'~');
        if self.begun.is_empty() && bytes.iter().all(is_shown) {
            self.out.write_all(bytes)?;
            return Ok(bytes.len());
        }
        let joined;
        let all = if self.begun.is_empty() {
            bytes
        } else {
            joined = [self.begun.as_slice(), bytes].concat();
            self.begun.clear();
            &joined
        };
        for chunk in all.utf8_chunks() {
            self.write_text(chunk.valid())?;
            let invalid = chunk.invalid();
            let ends_here = all.as_ptr_range().end == invalid.as_ptr_range().end;
            if ends_here && std::str::from_utf8(invalid).is_err_and(|e| e.error_len().is_none()) {
                self.begun.extend(invalid);
            } else if !invalid.is_empty() {
                self.write_text("\u{fffd}")?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(parts: &[&[u8]], form: Form) -> String {
        let mut out = Vec::new();
        let mut plain = Plain::new(&mut out, form);
        for part in parts {
            plain.write_all(part).expect("memory");
        }
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn nothing_that_is_obeyed_comes_through() {
        let text = "a\u{1b}]0;x\u{7}\u{9b}2J\r\u{202e}b\u{2066}c\u{7f}";
        let plain = "a\\u{1b}]0;x\\u{7}\\u{9b}2J\\u{d}\\u{202e}b\\u{2066}c\\u{7f}";
        assert_eq!(written(&[text.as_bytes()], Form::Text), plain);
        assert_eq!(line("a\u{1b}b\nc"), "a\\u{1b}b\\nc");
        assert_eq!(line("größe → ok"), "größe → ok");
        assert_eq!(written(&["ü\t\n".as_bytes()], Form::Text), "ü\t\n");
        assert_eq!(written(&[b"a\xffb"], Form::Text), "a\u{fffd}b");
    }

    #[test]
    fn xml_has_no_markup_of_a_text() {
        assert_eq!(xml("a<b>&\"\u{1}"), "a&lt;b&gt;&amp;&quot;\u{FFFD}");
    }

    proptest! {
        #[test]
        fn json_stays_what_it_is(text in "[\u{0}-\u{ff}\u{2020}-\u{2070}😀]*", cut in 0usize..40) {
            let json = serde_json::to_vec(&text).expect("a text is JSON");
            let (head, tail) = json.split_at(cut.min(json.len()));
            let plain = written(&[head, tail], Form::Json);
            prop_assert!(!plain.contains(is_obeyed));
            prop_assert_eq!(serde_json::from_str::<String>(&plain).expect("JSON"), text.clone());
            let page = written(&[head, tail], Form::Page);
            let shown: String = serde_json::from_str(&page).expect("JSON");
            // JSON has already escaped the controls of ASCII.
            prop_assert!(!shown.contains(|c| is_obeyed(c) && !c.is_ascii()));
        }
    }
}
