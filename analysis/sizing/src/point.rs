//! The input variables of section IV-A.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// Where a run was made or is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Tasks that can run at once, *n*. The paper counts nodes of one type; with several types only slots compare.
    pub slots: f64,
    /// *iter*.
    pub iterations: f64,
    /// Bytes of input, *s*.
    pub bytes: f64,
}

/// What a variable was in the runs that were fitted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Range {
    /// The least.
    pub least: f64,
    /// The most.
    pub most: f64,
}

/// The ranges of all three.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ranges {
    /// Of the slots.
    pub slots: Range,
    /// Of the iterations.
    pub iterations: Range,
    /// Of the bytes.
    pub bytes: Range,
}

impl Point {
    /// Whether all three are numbers above zero.
    pub fn is_possible(&self) -> bool {
        [self.slots, self.iterations, self.bytes]
            .iter()
            .all(|value| value.is_finite() && *value > 0.0)
    }

    /// How far apart two points are: a factor of e in one variable is 1.
    pub(crate) fn distance(&self, other: &Point) -> f64 {
        let pairs = [
            (self.slots, other.slots),
            (self.iterations, other.iterations),
            (self.bytes, other.bytes),
        ];
        pairs.iter().map(|(a, b)| (a / b).ln().abs()).sum()
    }

    /// The same point, for comparing: bytes of equal jobs differ a little.
    pub(crate) fn key(&self) -> [i64; 3] {
        let percent = |value: f64| (value.ln() * 100.0).round() as i64;
        [
            percent(self.slots),
            percent(self.iterations),
            percent(self.bytes),
        ]
    }
}

/// How many different ones.
pub(crate) fn points<'a>(all: impl Iterator<Item = &'a Point>) -> usize {
    all.map(Point::key).collect::<BTreeSet<_>>().len()
}

impl Range {
    /// Of some values; of none it is empty.
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

    /// By which factor a value is outside; 1 within. Values a percent apart are one.
    pub fn beyond(&self, value: f64) -> f64 {
        let factor = (self.least / value).max(value / self.most).max(1.0);
        if factor < 1.01 { 1.0 } else { factor }
    }

    /// Whether it is one value.
    pub fn is_point(&self) -> bool {
        self.most < self.least * 1.01
    }
}

impl Ranges {
    /// Of some points.
    pub fn from_points<'a>(points: impl Iterator<Item = &'a Point> + Clone) -> Self {
        Self {
            slots: Range::from_values(points.clone().map(|point| point.slots)),
            iterations: Range::from_values(points.clone().map(|point| point.iterations)),
            bytes: Range::from_values(points.map(|point| point.bytes)),
        }
    }

    /// Name, range and a point's value of each variable.
    pub fn with(&self, at: &Point) -> [(&'static str, Range, f64); 3] {
        [
            ("slots", self.slots, at.slots),
            ("iterations", self.iterations, at.iterations),
            ("bytes of input", self.bytes, at.bytes),
        ]
    }
}
