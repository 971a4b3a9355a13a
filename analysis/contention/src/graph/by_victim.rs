//! Values by victim.

use std::ops::Index;

use serde::{Serialize, Serializer};
use smallvec::SmallVec;

use crate::QueryId;

/// A map from victim queries to values, in their order. With one victim, as in nearly all vertices and edges, it does
/// not allocate.
#[derive(Clone, Debug, PartialEq)]
pub struct ByVictim<T>(SmallVec<[(QueryId, T); 1]>);

impl<T> Default for ByVictim<T> {
    fn default() -> Self {
        Self(SmallVec::new())
    }
}

impl<T> ByVictim<T> {
    /// The value of one victim, if there is one.
    pub fn get(&self, victim: &QueryId) -> Option<&T> {
        self.search(victim).ok().map(|index| &self.0[index].1)
    }

    /// Victims and their values.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&QueryId, &T)> {
        self.0.iter().map(|(victim, value)| (victim, value))
    }

    /// Their values.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &T> {
        self.0.iter().map(|(_, value)| value)
    }

    /// Their values, mutable.
    pub fn values_mut(&mut self) -> impl ExactSizeIterator<Item = &mut T> {
        self.0.iter_mut().map(|(_, value)| value)
    }

    /// The number of victims.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no victims.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Maps the values of all victims.
    pub(super) fn map<U>(&self, mut to: impl FnMut(&QueryId, &T) -> U) -> ByVictim<U> {
        let values = self
            .iter()
            .map(|(victim, value)| (*victim, to(victim, value)));
        ByVictim(values.collect())
    }

    fn search(&self, victim: &QueryId) -> Result<usize, usize> {
        // Victims come in order when values are added.
        match self.0.last() {
            Some((last, _)) if last == victim => Ok(self.0.len() - 1),
            Some((last, _)) if last < victim => Err(self.0.len()),
            _ => self.0.binary_search_by_key(victim, |(victim, _)| *victim),
        }
    }
}

impl<T: Default> ByVictim<T> {
    /// The value of one victim; inserts the default if there is none.
    pub(super) fn entry(&mut self, victim: QueryId) -> &mut T {
        let index = self.search(&victim).unwrap_or_else(|index| {
            self.0.insert(index, (victim, T::default()));
            index
        });
        &mut self.0[index].1
    }
}

impl<T> Index<&QueryId> for ByVictim<T> {
    type Output = T;

    /// # Panics
    /// If the victim has no value.
    fn index(&self, victim: &QueryId) -> &T {
        self.get(victim).expect("a value of the victim")
    }
}

impl<T: Serialize> Serialize for ByVictim<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_in_the_order_of_victims() {
        let mut values = ByVictim::default();
        for (victim, value) in [(5, 1), (9, 2), (2, 3), (5, 10), (9, 20)] {
            *values.entry(QueryId(victim)) += value;
        }
        let found: Vec<_> = values
            .iter()
            .map(|(victim, value)| (victim.0, *value))
            .collect();
        assert_eq!(found, [(2, 3), (5, 11), (9, 22)]);
        assert_eq!(
            (values.len(), values[&QueryId(9)], values.get(&QueryId(3))),
            (3, 22, None)
        );
        assert_eq!(
            serde_json::to_string(&values).unwrap(),
            r#"{"2":3,"5":11,"9":22}"#
        );
    }
}
