//! The queries, and the arithmetic that is added to them.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;
use serde::Deserialize;

static PLACE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\{([\w.]+):([^{}]+)\}").expect("a constant pattern"));

/// The file `boundaries.toml`.
#[derive(Deserialize)]
pub(super) struct Shapes {
    pub(super) query: Vec<Shape>,
}

/// A query with places where work can be added.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Shape {
    pub(super) name: String,
    sql: String,
}

/// How the steps of the added arithmetic depend on each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Work {
    /// Each step needs the one before.
    Dependent,
    /// No step needs another one, so a processor computes several at a time.
    Independent,
}

/// One altered query.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Variant {
    pub(super) shape: String,
    pub(super) place: String,
    pub(super) work: Work,
}

impl Shape {
    /// The text of the query with the work in one place, or without it.
    pub(super) fn text(&self, altered: Option<(&Variant, u32)>) -> String {
        let replaced = PLACE.replace_all(&self.sql, |found: &regex::Captures<'_>| {
            let value = found[2].to_owned();
            match altered {
                Some((variant, steps)) if variant.place == found[1] => {
                    variant.work.added_to(&value, steps)
                }
                _ => value,
            }
        });
        replaced.into_owned()
    }

    /// Every place, with each kind of work.
    pub(super) fn variants(&self) -> Vec<Variant> {
        let places: BTreeSet<&str> = PLACE
            .captures_iter(&self.sql)
            .filter_map(|found| Some(found.get(1)?.as_str()))
            .collect();
        let variant = |place: &str, work| Variant {
            shape: self.name.clone(),
            place: place.to_owned(),
            work,
        };
        places
            .into_iter()
            .flat_map(|place| [Work::Dependent, Work::Independent].map(|work| variant(place, work)))
            .collect()
    }
}

impl Work {
    /// An expression that does the work and has the same value. The work would change the value
    /// only in rows from 2⁴⁰ on.
    fn added_to(self, value: &str, steps: u32) -> String {
        let work = match self {
            Self::Dependent => (1..=steps).fold(format!("({value})"), |so_far, step| {
                format!("(({so_far} * {}L) ^ {step}L)", 2 * step + 1)
            }),
            Self::Independent => {
                let terms: Vec<String> = (1..=steps)
                    .map(|step| format!("((({value}) * {}L) ^ {step}L)", 2 * step + 1))
                    .collect();
                terms.join(" ^ ")
            }
        };
        format!("({value} + (({work}) & shiftright(id, 40)))")
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Dependent => "dependent",
            Self::Independent => "independent",
        }
    }
}

impl Variant {
    /// The name of its runs.
    pub(super) fn name(&self) -> String {
        format!("{}/{}/{}", self.shape, self.place, self.work.name())
    }

    /// The altered operator.
    pub(super) fn operator(&self) -> &str {
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
