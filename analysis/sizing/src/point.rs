//! The input variables of section IV-A.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The input variables of a run or a question.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// *n*, number of tasks that can run at once. The paper counts nodes of one type; with several types only slots are
    /// comparable.
    pub slots: f64,
    /// *iter*, number of iterations.
    pub iterations: f64,
    /// *s*, bytes of input.
    pub bytes: f64,
}

/// The range of a variable in the fitted runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Range {
    /// The least.
    pub least: f64,
    /// The most.
    pub most: f64,
}

/// The ranges of all variables.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ranges {
    /// Slots.
    pub slots: Range,
    /// Iterations.
    pub iterations: Range,
    /// Bytes.
    pub bytes: Range,
}

impl Point {
    /// Whether all variables are finite numbers above zero.
    pub fn is_possible(&self) -> bool {
        [self.slots, self.iterations, self.bytes]
            .iter()
            .all(|value| value.is_finite() && *value > 0.0)
    }

    /// Distance between two points: a factor of e in one variable is 1.
    pub(crate) fn distance(&self, other: &Point) -> f64 {
        let pairs = [
            (self.slots, other.slots),
            (self.iterations, other.iterations),
            (self.bytes, other.bytes),
        ];
        pairs.iter().map(|(a, b)| (a / b).ln().abs()).sum()
    }

    /// The point as a key: bytes of equal jobs differ a little.
    pub(crate) fn key(&self) -> [i64; 3] {
        let percent = |value: f64| (value.ln() * 100.0).round() as i64;
        [
            percent(self.slots),
            percent(self.iterations),
            percent(self.bytes),
        ]
    }
}

/// Number of different points.
pub(crate) fn points<'a>(all: impl Iterator<Item = &'a Point>) -> usize {
    all.map(Point::key).collect::<BTreeSet<_>>().len()
}

impl Range {
    /// The range of some values; empty without values.
    pub fn from_values(values: impl Iterator<Item = f64>) -> Self {
        let none = Self {
            least: f64::INFINITY,
            most: f64::NEG_INFINITY,
        };
        values.fold(none, |range, value| Self {
            least: range.least.min(value),
            most: range.most.max(value),
        })
    }

    /// The factor by which a value is outside; 1 inside. Values within 1% are equal.
    pub fn beyond(&self, value: f64) -> f64 {
        let factor = (self.least / value).max(value / self.most).max(1.0);
        if factor < 1.01 { 1.0 } else { factor }
    }

    /// Whether it is a single value.
    pub fn is_point(&self) -> bool {
        self.most < self.least * 1.01
    }
}

impl Ranges {
    /// The ranges of some points.
    pub fn from_points<'a>(points: impl Iterator<Item = &'a Point> + Clone) -> Self {
        Self {
            slots: Range::from_values(points.clone().map(|point| point.slots)),
            iterations: Range::from_values(points.clone().map(|point| point.iterations)),
            bytes: Range::from_values(points.map(|point| point.bytes)),
        }
    }

    /// Name, range and the point's value of each variable.
    pub fn with(&self, point: &Point) -> [(&'static str, Range, f64); 3] {
        [
            ("slots", self.slots, point.slots),
            ("iterations", self.iterations, point.iterations),
            ("bytes of input", self.bytes, point.bytes),
        ]
    }
}
