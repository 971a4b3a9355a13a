//! A set that forgets old values, so that it stays small in a JVM that loads and unloads classes.

use std::collections::HashSet;
use std::hash::Hash;

/// Keeps at least the last `least` distinct values, and at most twice as many.
#[derive(Debug)]
pub(crate) struct RecentSet<T> {
    least: usize,
    young: HashSet<T>,
    old: HashSet<T>,
}

impl<T: Eq + Hash> RecentSet<T> {
    pub(crate) fn new(least: usize) -> Self {
        Self {
            least,
            young: HashSet::new(),
            old: HashSet::new(),
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
    }

    /// Adds a value; false if it was already there.
    pub(crate) fn insert(&mut self, value: T) -> bool {
        if self.young.contains(&value) {
            return false;
        }
        if self.young.len() >= self.least {
            std::mem::swap(&mut self.young, &mut self.old);
            self.young.clear();
        }
        let known = self.old.remove(&value);
        self.young.insert(value);
        !known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_met_stays_and_what_is_not_goes() {
        let mut recent = RecentSet::new(100);
        for value in 0..10_000 {
            assert!(recent.insert(value));
            assert_eq!(recent.insert(-1), value == 0, "met all the time");
            assert!(!recent.insert(value));
            assert!(recent.young.len() + recent.old.len() <= 200);
        }
        assert!(!recent.insert(9_950), "one of the last hundred");
        assert!(recent.insert(9_000));
        recent.clear();
        assert!(recent.insert(9_950) && recent.insert(9_000));
    }
}
