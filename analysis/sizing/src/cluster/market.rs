//! The cheapest cluster of every capacity.

use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

use serde::Serialize;

use super::{Instance, Prices, Tariff};
use crate::SizingError;

/// Parts of a slot in which capacities are counted: speeds have two digits.
const PARTS: f64 = 100.0;
/// Capacities looked at, at most: each is predicted.
const CAPACITIES: usize = 5_000;

/// How many machines of each type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Cluster(pub Vec<(String, u32)>);

/// What can be had within a range of capacities.
#[derive(Clone, Debug)]
pub struct Market {
    /// Of all prices.
    pub currency: String,
    /// Fewest slots.
    pub least: f64,
    /// Most slots.
    pub most: f64,
    pub(super) machines: Vec<Machine>,
    /// Slots, an hour's price and counts of the cheapest cluster of each capacity, by capacity.
    pub(super) clusters: Vec<(f64, f64, Counts)>,
}

/// A type of machine at its price.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    pub name: String,
    /// In parts of a slot.
    parts: usize,
    pub capacity: f64,
    pub price: f64,
    pub at_most: Option<u32>,
}

impl Market {
    /// Finds the cheapest cluster of every capacity that whole machines can have, exactly: however the time depends
    /// on capacity, no other cluster can be better.
    ///
    /// # Errors
    /// If no cluster has so many slots.
    pub fn new(
        prices: &Prices,
        tariff: Tariff,
        least: f64,
        most: f64,
    ) -> Result<Self, SizingError> {
        let priced = |instance: &Instance| {
            let parts = (instance.capacity() * PARTS).round() as usize;
            Some(Machine {
                name: instance.name.clone(),
                parts: parts.max(1),
                capacity: parts.max(1) as f64 / PARTS,
                price: instance.price(tariff)?,
                at_most: instance.at_most,
            })
        };
        let machines: Vec<Machine> = prices.instances.iter().filter_map(priced).collect();
        let nothing = SizingError::NoMachines { least, most };
        if machines.is_empty() || !(least.is_finite() && most.is_finite() && least <= most) {
            return Err(nothing);
        }
        let unit = machines
            .iter()
            .fold(0, |unit, machine| gcd(machine.parts, unit))
            .max(1);
        let size = (most * PARTS / unit as f64 + 1e-6).floor() as usize;
        if size > CAPACITIES {
            return Err(SizingError::File {
                file: "the price table".into(),
                why: format!(
                    "makes more than {CAPACITIES} different capacities up to {most:.0} slots; round the speeds"
                ),
            });
        }
        let mut clusters = Vec::new();
        for (at, found) in fill(&machines, unit, size).into_iter().enumerate().skip(1) {
            let slots = (at * unit) as f64 / PARTS;
            if let Some((price, bought)) = found
                && slots >= least * (1.0 - 1e-9)
            {
                clusters.push((slots, price, counts(&bought)));
            }
        }
        if clusters.is_empty() {
            return Err(nothing);
        }
        let currency = prices.currency.clone();
        Ok(Self {
            currency,
            least,
            most,
            machines,
            clusters,
        })
    }

    pub(super) fn cluster(&self, counts: &[(usize, u32)]) -> Cluster {
        let named = |(kind, count): &(usize, u32)| (self.machines[*kind].name.clone(), *count);
        Cluster(counts.iter().map(named).collect())
    }
}

/// Machines of a cluster, by type.
type Counts = Vec<(usize, u32)>;

/// A price with what was bought, for each capacity that can be had.
type Filled = Vec<Option<(f64, Bought)>>;

/// What was bought, the last first; clusters share what they have in common.
type Bought = Option<Rc<Purchase>>;

/// Some machines of a type, and what was bought before.
struct Purchase {
    kind: usize,
    count: u32,
    before: Bought,
}

impl Drop for Purchase {
    /// One after the other: chains are too long for one call within another.
    fn drop(&mut self) {
        let mut before = self.before.take();
        while let Some(mut purchase) = before.and_then(Rc::into_inner) {
            before = purchase.before.take();
        }
    }
}

/// Counts of machines by type, in order of the types.
fn counts(bought: &Bought) -> Counts {
    let mut counts: BTreeMap<usize, u32> = BTreeMap::new();
    let mut at = bought;
    while let Some(purchase) = at {
        *counts.entry(purchase.kind).or_default() += purchase.count;
        at = &purchase.before;
    }
    counts.into_iter().collect()
}

/// A knapsack with as many of each machine as can be had, one type after the other.
fn fill(machines: &[Machine], unit: usize, size: usize) -> Filled {
    let mut best: Filled = vec![None; size + 1];
    best[0] = Some((0.0, None));
    for (kind, machine) in machines.iter().enumerate() {
        let step = machine.parts / unit;
        let fit = size / step;
        let at_most = machine.at_most.map_or(usize::MAX, |count| count as usize);
        if at_most >= fit {
            // As many as fit: one more than the cheapest of a machine less.
            for at in step..=size {
                buy(&mut best, machine, kind, at, step, 1);
            }
            continue;
        }
        // Lots of 1, 2, 4 … and the rest: sums of them are all numbers up to the most.
        let mut left = at_most;
        let mut lot = 1;
        while left > 0 {
            let count = lot.min(left);
            // From the largest on, so that no lot is bought twice.
            for at in (count * step..=size).rev() {
                buy(&mut best, machine, kind, at, step, count);
            }
            left -= count;
            lot *= 2;
        }
    }
    best
}

/// Replaces the cheapest purchase known for a capacity, if `count` machines more on a smaller one cost less.
fn buy(best: &mut Filled, machine: &Machine, kind: usize, at: usize, step: usize, count: usize) {
    let Some((price, before)) = &best[at - count * step] else {
        return;
    };
    let price = price + count as f64 * machine.price;
    if best[at].as_ref().is_some_and(|(known, _)| price >= *known) {
        return;
    }
    let purchase = Purchase {
        kind,
        count: count as u32,
        before: before.clone(),
    };
    best[at] = Some((price, Some(Rc::new(purchase))));
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl fmt::Display for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self
            .0
            .iter()
            .map(|(name, count)| format!("{count} {name}"))
            .collect();
        f.write_str(&parts.join(" + "))
    }
}
