//! The queries, and the arithmetic that is added to them.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use anyhow::{Result, bail};
use regex::Regex;
use serde::Deserialize;

static PLACE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\{([\w.]+):([^{}]+)\}").expect("a constant pattern"));

/// The file `boundaries.toml`.
#[derive(Deserialize)]
pub(crate) struct Shapes {
    pub(crate) query: Vec<Shape>,
}

impl Shapes {
    /// All queries, or only those with these names.
    pub(crate) fn wanted(only: &[String]) -> Result<Vec<Shape>> {
        let all: Self = toml::from_str(include_str!("../../assets/boundaries.toml"))?;
        let is_wanted = |shape: &Shape| only.is_empty() || only.contains(&shape.name);
        let wanted: Vec<Shape> = all.query.into_iter().filter(is_wanted).collect();
        if wanted.is_empty() {
            bail!("--only names no query of bench/assets/boundaries.toml");
        }
        Ok(wanted)
    }
}

/// A query with places where work can be added.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Shape {
    pub(crate) name: String,
    sql: String,
}

/// How the steps of the added arithmetic depend on each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Work {
    /// Each step needs the one before.
    Dependent,
    /// No step needs another one, so a processor computes several at a time.
    Independent,
}

/// One altered query.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Variant {
    pub(crate) shape: String,
    pub(crate) place: String,
    pub(crate) work: Work,
}

impl Shape {
    /// The text of the query with the work in one place, or without it.
    pub(crate) fn text(&self, altered: Option<(&Variant, u32)>) -> String {
        let operands = |_, step| [2 * step + 1, step];
        match altered {
            Some((variant, steps)) => {
                self.altered_in(&[(&variant.place, steps)], variant.work, operands)
            }
            None => self.altered_in(&[], Work::Dependent, operands),
        }
    }

    /// The places.
    pub(crate) fn places(&self) -> BTreeSet<&str> {
        PLACE
            .captures_iter(&self.sql)
            .filter_map(|found| Some(found.get(1)?.as_str()))
            .collect()
    }

    /// The text of the query with work in some of its places, each with its number of steps. `operands` gets the index
    /// of a place in `places`.
    pub(crate) fn altered_in(
        &self,
        places: &[(&str, u32)],
        work: Work,
        operands: impl Fn(usize, u32) -> [u32; 2],
    ) -> String {
        let replaced = PLACE.replace_all(&self.sql, |found: &regex::Captures<'_>| {
            match places.iter().position(|(place, _)| *place == &found[1]) {
                Some(index) => {
                    let (_, steps) = places[index];
                    work.added_to(&found[2], steps, |step| operands(index, step))
                }
                None => found[2].to_owned(),
            }
        });
        replaced.into_owned()
    }

    /// Every place, with each kind of work.
    pub(crate) fn variants(&self) -> Vec<Variant> {
        let variant = |place: &str, work| Variant {
            shape: self.name.clone(),
            place: place.to_owned(),
            work,
        };
        self.places()
            .into_iter()
            .flat_map(|place| [Work::Dependent, Work::Independent].map(|work| variant(place, work)))
            .collect()
    }
}

impl Work {
    /// An expression that does the work and has the same value. The work would change the value
    /// only in rows from 2⁴⁰ on. Each step multiplies and combines with the operands of its number.
    fn added_to(self, value: &str, steps: u32, operands: impl Fn(u32) -> [u32; 2]) -> String {
        let step = |of: &str, step| {
            let [factor, mask] = operands(step);
            format!("(({of} * {factor}L) ^ {mask}L)")
        };
        let value_of_row = format!("({value})");
        let work = match self {
            Self::Dependent => {
                (1..=steps).fold(value_of_row, |so_far, number| step(&so_far, number))
            }
            Self::Independent => {
                let terms = (1..=steps).map(|number| step(&value_of_row, number));
                terms.collect::<Vec<_>>().join(" ^ ")
            }
        };
        format!("({value} + (({work}) & shiftright(id, 40)))")
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Dependent => "dependent",
            Self::Independent => "independent",
        }
    }
}

impl Variant {
    /// The name of its runs.
    pub(crate) fn name(&self) -> String {
        format!("{}/{}/{}", self.shape, self.place, self.work.name())
    }

    /// The altered operator.
    pub(crate) fn operator(&self) -> &str {
        self.place.split('.').next().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_added_in_one_place_only() {
        let shape = Shape {
            name: "shape".to_owned(),
            sql: "SELECT {Project:a} FROM t WHERE {Filter:b + 1} > 0".to_owned(),
        };
        assert_eq!(shape.text(None), "SELECT a FROM t WHERE b + 1 > 0");
        let variants = shape.variants();
        assert_eq!(variants.len(), 4);
        assert_eq!(
            shape.text(Some((&variants[0], 1))),
            "SELECT a FROM t WHERE (b + 1 + (((((b + 1) * 3L) ^ 1L)) \
             & shiftright(id, 40))) > 0"
        );
    }
}
