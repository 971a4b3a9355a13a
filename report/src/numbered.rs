//! What makes an operator the same in two plans.

use std::collections::HashMap;

/// A text, and which of several equal ones it is, from 0.
pub(crate) type Key = (String, usize);

/// Numbers equal texts in the order in which they come.
#[derive(Debug, Default)]
pub(crate) struct Numbered(HashMap<String, usize>);

impl Numbered {
    /// The key of the next text.
    pub(crate) fn key(&mut self, text: String) -> Key {
        let next = self.0.entry(text.clone()).or_default();
        let key = (text, *next);
        *next += 1;
        key
    }
}
