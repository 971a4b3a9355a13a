//! Finds the time after which the recording of an attached JVM is complete.
//!
//! Until HotSpot has described code, samples in it have no name or no callers. There are many such samples soon after
//! attaching and few later, but never none: code is compiled all the time.

use std::collections::BTreeMap;

use crate::wire::WINDOW_NS;

/// In a complete recording at most one in so many samples is incomplete.
const ONE_IN: i64 = 100;
/// Number of windows to which samplers may still add; older ones are settled.
const OPEN: usize = 1_200;

/// Samples by window.
///
/// The recording is complete from the earliest time T with this property: whenever the recording ends, at most 1% of
/// the samples since T are incomplete.
#[derive(Debug, Default)]
pub(crate) struct Completeness {
    /// By window: all samples, and incomplete ones.
    windows: BTreeMap<u64, (u64, u64)>,
    /// The windows before them.
    settled: Prefix,
    incomplete: u64,
}

/// The state of all windows up to one.
#[derive(Debug, Default, Clone, Copy)]
struct Prefix {
    /// `ONE_IN` × incomplete samples − all samples.
    excess: i64,
    /// The maximum of the excess so far, at least 0.
    most: i64,
    /// The end of the window with the maximum, CLOCK_MONOTONIC ns.
    at: Option<u64>,
}

impl Prefix {
    fn add(&mut self, window: u64, (all, incomplete): (u64, u64)) {
        let of = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        let excess = of(incomplete)
            .saturating_mul(ONE_IN)
            .saturating_sub(of(all));
        self.excess = self.excess.saturating_add(excess);
        if self.excess > self.most {
            self.most = self.excess;
            self.at = Some((window + 1).saturating_mul(WINDOW_NS));
        }
    }
}

impl Completeness {
    /// Adds samples of a window.
    pub(crate) fn add(&mut self, window: u64, all: u64, incomplete: u64) {
        let sum = self.windows.entry(window).or_default();
        sum.0 = sum.0.saturating_add(all);
        sum.1 = sum.1.saturating_add(incomplete);
        self.incomplete = self.incomplete.saturating_add(incomplete);
        while self.windows.len() > OPEN {
            if let Some((window, counts)) = self.windows.pop_first() {
                self.settled.add(window, counts);
            }
        }
    }

    /// Number of incomplete samples in the whole recording.
    pub(crate) fn incomplete(&self) -> u64 {
        self.incomplete
    }

    /// Start of the complete part, CLOCK_MONOTONIC ns; `None` if all of it is complete.
    pub(crate) fn from(&self) -> Option<u64> {
        let mut prefix = self.settled;
        for (window, counts) in &self.windows {
            prefix.add(*window, *counts);
        }
        prefix.at
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn from_windows(windows: &[(u64, u64)]) -> Completeness {
        let mut completeness = Completeness::default();
        for (window, (all, incomplete)) in windows.iter().enumerate() {
            completeness.add(window as u64, *all, *incomplete);
        }
        completeness
    }

    #[test]
    fn a_recording_is_complete_once_the_code_is_described() {
        assert_eq!(from_windows(&[(50, 0), (50, 0)]).from(), None);
        let begins_badly = [(50, 20), (50, 10), (50, 1), (200, 0), (50, 0)];
        assert_eq!(from_windows(&begins_badly).from(), Some(3 * WINDOW_NS));
        // A few later ones do not make it incomplete; many do.
        let single = [(50, 0), (50, 0), (50, 1), (50, 0)];
        assert_eq!(from_windows(&single).from(), None);
        let again = [(50, 0), (50, 0), (50, 30), (50, 0)];
        assert_eq!(from_windows(&again).from(), Some(3 * WINDOW_NS));
        assert_eq!(from_windows(&again).incomplete(), 30);
    }

    proptest! {
        /// The literal definition, for windows in any order of arrival, also beyond those kept open.
        #[test]
        fn at_no_later_time_more_than_one_in_a_hundred_is_incomplete(
            windows in proptest::collection::vec((0u64..300, 0u64..4), 1..60),
            many in any::<bool>(),
        ) {
            let windows: Vec<(u64, u64)> =
                windows.iter().map(|(all, bad)| (*all.max(bad), *bad)).collect();
            let holds = |from: usize| {
                (from..=windows.len()).all(|to| {
                    let sum = windows[from..to].iter().fold((0, 0), |sum, w| (sum.0 + w.0, sum.1 + w.1));
                    100 * sum.1 <= sum.0
                })
            };
            let expected = (0..=windows.len()).find(|from| holds(*from)).unwrap();
            let mut completeness = from_windows(&windows);
            if many {
                for window in 0..OPEN as u64 {
                    completeness.add((windows.len() as u64) + window, 1, 0);
                }
            }
            let found = completeness.from().map_or(0, |ns| (ns / WINDOW_NS) as usize);
            prop_assert_eq!(found, expected);
        }
    }
}
