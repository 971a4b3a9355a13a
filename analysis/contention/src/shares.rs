//! How blocked seconds add up by source (eqs. 9 and 10).

use std::collections::BTreeMap;

use crate::waits::{Blamed, Wait};
use crate::{Source, Split};

/// So many sources are compared one after the other before the rest is searched.
const NEAR: usize = 8;

/// Blame toward one victim vertex as it adds up.
#[derive(Default)]
pub(crate) struct Shares {
    /// Blocked seconds by a single cause.
    by_one: BTreeMap<Source, f64>,
    /// Blocked seconds that users share.
    blocked: f64,
    /// β of eq. 9 by source, or seconds with [`Split::ByWindow`]; in order.
    blame: Vec<(Source, f64)>,
    /// Blocked seconds in windows in which nobody else used anything.
    unaccounted: f64,
}

impl Shares {
    /// Adds a part (0 to 1) of a wait, as if its window ended there.
    pub(crate) fn add(&mut self, wait: &Wait<'_>, part: f64, split: Split) {
        let blocked = wait.blocked * part;
        let rates = match wait.by {
            Blamed::One(source) => {
                *self.by_one.entry(source).or_default() += blocked;
                return;
            }
            Blamed::Users(rates) => rates,
        };
        let total: f64 = rates.iter().map(|(_, rate)| rate).sum();
        if total <= 0.0 || wait.units <= 0.0 {
            self.unaccounted += blocked;
            return;
        }
        self.blocked += blocked;
        let factor = match split {
            // A ratio: cutting a window shortens both.
            Split::Pooled => wait.blocked / wait.units,
            Split::ByWindow => blocked / total,
        };
        self.add_blame(rates, factor);
    }

    /// Adds rates, which are in the order of their sources. Most of these are there already, close to each other.
    fn add_blame(&mut self, rates: &[(Source, f64)], factor: f64) {
        let mut from = 0;
        for (source, rate) in rates {
            let rest = &self.blame[from..];
            let near = rest.iter().take(NEAR);
            let mut skipped = near.take_while(|(known, _)| known < source).count();
            if skipped == NEAR {
                skipped += rest[NEAR..].partition_point(|(known, _)| known < source);
            }
            from += skipped;
            match self.blame.get_mut(from) {
                Some((known, blame)) if known == source => *blame += factor * rate,
                _ => self.blame.insert(from, (*source, factor * rate)),
            }
        }
    }

    /// Eq. 10 in seconds, by source, in order.
    pub(crate) fn seconds(self) -> Vec<(Source, f64)> {
        let mut seconds = self.blame;
        let total: f64 = seconds.iter().map(|(_, blame)| blame).sum();
        for (_, blame) in &mut seconds {
            *blame = *blame / total * self.blocked;
        }
        let unaccounted = (self.unaccounted > 0.0).then_some((Source::Unknown, self.unaccounted));
        for (source, more) in self.by_one.into_iter().chain(unaccounted) {
            match seconds.binary_search_by_key(&source, |(source, _)| *source) {
                Ok(at) => seconds[at].1 += more,
                Err(at) => seconds.insert(at, (source, more)),
            }
        }
        seconds
    }
}
