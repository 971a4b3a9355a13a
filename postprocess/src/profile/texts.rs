//! Texts that many rows share.

use std::collections::HashMap;
use std::sync::Arc;

/// Texts, each kept once.
#[derive(Default)]
pub(crate) struct TextTable {
    numbers: HashMap<Arc<str>, u32>,
    pub(super) texts: Vec<Arc<str>>,
}

impl TextTable {
    /// The number of a text, from 0, in the order of first use.
    pub(super) fn number(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.texts.len() as u32;
        let text: Arc<str> = text.into();
        self.numbers.insert(Arc::clone(&text), number);
        self.texts.push(text);
        number
    }

    /// The shared copy of a text.
    pub(crate) fn get(&mut self, text: &str) -> Arc<str> {
        let number = self.number(text);
        Arc::clone(&self.texts[number as usize])
    }
}
