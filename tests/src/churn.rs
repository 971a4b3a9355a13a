//! What `Churn.java` says about itself.

use std::path::Path;

use crate::{is, samples, top};

/// Classes that came and went, each with the time it ran.
#[derive(Debug)]
pub struct Churned(Vec<(String, f64)>);

impl Churned {
    /// Reads the program's output: `NAME FROM UNTIL`.
    ///
    /// # Panics
    /// If it is something else.
    pub fn read(output: &[u8]) -> Self {
        let text = String::from_utf8_lossy(output).into_owned();
        let ran = text.lines().filter(|line| line.starts_with("Gen"));
        Self(
            ran.map(|line| {
                let mut words = line.split(' ');
                let name = words.next().expect("a name").to_owned();
                let mut time = || {
                    words
                        .next()
                        .and_then(|w| w.parse::<f64>().ok())
                        .expect("a time")
                };
                let (from, until) = (time(), time());
                (name, (until - from) / 1e9)
            })
            .collect(),
        )
    }

    /// How many classes ran.
    pub fn classes(&self) -> usize {
        self.0.len()
    }

    /// For each of the eight kinds of class: its name, its share of the time and its share of the samples.
    pub fn shares(&self, profile: &Path) -> Vec<(String, f64, f64)> {
        let rows = top(profile, &["--by", "method"]);
        let all = samples(&rows, |_| true) as f64;
        let whole: f64 = self.0.iter().map(|(_, s)| s).sum();
        (0..8)
            .map(|kind| {
                let name = format!("Gen{kind}");
                let ran: f64 = self
                    .0
                    .iter()
                    .filter(|(n, _)| *n == name)
                    .map(|(_, s)| s)
                    .sum();
                let seen = samples(&rows, |row| is(row, &format!("{name}.run"))) as f64;
                (name, ran / whole, seen / all)
            })
            .collect()
    }
}
