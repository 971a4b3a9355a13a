//! How long each part of a command took.

use std::time::{Duration, Instant};

/// Parts of a command, one after the other.
#[derive(Debug)]
pub struct Parts {
    begun: Instant,
    taken: Vec<(&'static str, Duration)>,
}

impl Parts {
    /// Begins the first part.
    pub fn begin() -> Self {
        Self {
            begun: Instant::now(),
            taken: Vec::new(),
        }
    }

    /// Ends a part, which began at the end of the previous one.
    pub fn end(&mut self, name: &'static str) {
        let before: Duration = self.taken.iter().map(|(_, took)| *took).sum();
        self.taken.push((name, self.begun.elapsed() - before));
    }

    /// All parts with their times, whole seconds.
    pub fn render(&self) -> String {
        let seconds = |took: &Duration| took.as_secs_f64().round();
        let parts: Vec<String> = self
            .taken
            .iter()
            .map(|(name, took)| format!("{name} {} s", seconds(took)))
            .collect();
        format!("{} s: {}", seconds(&self.begun.elapsed()), parts.join(", "))
    }
}
