//! Texts: borrowed from the line if they have no escapes, shared if they are frequent.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Deserializer};

/// Messages and reasons, which can be whole stack traces, are cut after so many bytes.
const LONGEST: usize = 2000;

/// A text in a line.
#[derive(Default, Deserialize)]
#[serde(transparent)]
pub(super) struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl Text<'_> {
    pub(super) fn into_owned(self) -> String {
        self.0.into_owned()
    }
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

pub(super) fn owned(text: Option<Text<'_>>) -> Option<String> {
    text.map(Text::into_owned)
}

/// The description of a job or a query. For a request of Spark Connect, Spark's description has the session and numbers
/// that differ for each request, but not the query: it becomes `Spark Connect`.
pub(super) fn described(description: String) -> String {
    match description.starts_with("Spark Connect - session_id: ") {
        true => "Spark Connect".to_owned(),
        false => description,
    }
}

/// The begin of a possibly long text.
pub(super) fn bounded(text: &str) -> String {
    text[..text.floor_char_boundary(LONGEST)].to_owned()
}

/// A time; `None` for 0 and -1, which Spark writes if there is none.
pub(super) fn moment(ms: i64) -> Option<i64> {
    (ms > 0).then_some(ms)
}

/// A non-negative number; Spark writes -1 if it is unknown.
pub(super) fn amount<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let number = i64::deserialize(deserializer)?;
    Ok(number.max(0).unsigned_abs())
}

/// The name of a line's event. Spark writes it first; otherwise the line is searched.
pub(super) fn head_of(line: &[u8]) -> serde_json::Result<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Head<'a> {
        #[serde(rename = "Event", borrow)]
        event: Text<'a>,
    }
    if let Some(rest) = line.strip_prefix(br#"{"Event":""#)
        && let Some(end) = memchr::memchr2(b'"', b'\\', rest)
        && rest[end] == b'"'
        && let Ok(name) = std::str::from_utf8(&rest[..end])
    {
        return Ok(Cow::Borrowed(name));
    }
    Ok(serde_json::from_slice::<Head>(line)?.event.0)
}

/// Names of executors and hosts, each kept once.
#[derive(Default)]
pub(crate) struct Names(HashSet<Arc<str>>);

impl Names {
    /// Maximum number of names kept; others are copied each time.
    const MOST: usize = 1 << 16;

    pub(crate) fn intern(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.0.get(name) {
            return Arc::clone(known);
        }
        let new: Arc<str> = name.into();
        if self.0.len() < Self::MOST {
            self.0.insert(Arc::clone(&new));
        }
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_found_wherever_it_is() {
        for line in [
            r#"{"Event":"E","x":1}"#,
            r#"{"x":{"Event":"no"},"Event":"E"}"#,
            r#"{ "Event" : "\u0045" }"#,
            r#"{"Event":"\u0045"}"#,
        ] {
            assert_eq!(head_of(line.as_bytes()).unwrap(), "E", "{line}");
        }
        for line in ["", "{", "[]", r#"{"Event":1}"#, r#"{"x":"E"}"#] {
            assert!(head_of(line.as_bytes()).is_err(), "{line}");
        }
    }

    #[test]
    fn names_are_shared_and_long_texts_cut_at_a_character() {
        let mut names = Names::default();
        assert!(Arc::ptr_eq(&names.intern("a"), &names.intern("a")));
        assert_eq!(bounded(&"ä".repeat(2000)).chars().count(), LONGEST / 2);
    }
}
