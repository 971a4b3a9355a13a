//! The cheapest cluster of every capacity.

use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

use schemars::JsonSchema;
use serde::Serialize;

use super::{Instance, Prices, Tariff};
use crate::SizingError;

/// Capacities are counted in such parts of a slot: speeds have two digits.
const PARTS: f64 = 100.0;
/// Maximum number of capacities: each is predicted.
const CAPACITIES: usize = 5_000;

/// Number of machines of each type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Cluster(pub Vec<(String, u32)>);

/// The clusters available within a range of capacities.
#[derive(Clone, Debug)]
pub struct Market {
    /// Currency of all prices.
    pub currency: String,
    /// Fewest slots.
    pub least: f64,
    /// Most slots.
    pub most: f64,
    pub(super) machines: Vec<Machine>,
    /// Slots, hourly price and counts of the cheapest cluster of each capacity, by capacity.
    pub(super) clusters: Vec<(f64, f64, Counts)>,
}

/// A type of machine with its price.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    pub name: String,
    /// Capacity in parts of a slot.
    parts: usize,
    pub capacity: f64,
    pub price: f64,
    pub at_most: Option<u32>,
}

impl Market {
    /// Finds the exactly cheapest cluster for every capacity that whole machines can have: whatever the time as a
    /// function of capacity, no other cluster is better.
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
        for (index, found) in fill(&machines, unit, size).into_iter().enumerate().skip(1) {
            let slots = (index * unit) as f64 / PARTS;
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

/// For each possible capacity, the least price and the purchases for it.
type PriceTable = Vec<Option<(f64, PurchaseChain)>>;

/// Purchases, the last first; clusters share common ones.
type PurchaseChain = Option<Rc<Purchase>>;

/// Some machines of a type, and the purchases before.
struct Purchase {
    kind: usize,
    count: u32,
    before: PurchaseChain,
}

impl Drop for Purchase {
    /// Iteratively: chains are too long for recursion.
    fn drop(&mut self) {
        let mut before = self.before.take();
        while let Some(mut purchase) = before.and_then(Rc::into_inner) {
            before = purchase.before.take();
        }
    }
}

/// Counts of machines by type, in order of the types.
fn counts(bought: &PurchaseChain) -> Counts {
    let mut counts: BTreeMap<usize, u32> = BTreeMap::new();
    let mut rest = bought;
    while let Some(purchase) = rest {
        *counts.entry(purchase.kind).or_default() += purchase.count;
        rest = &purchase.before;
    }
    counts.into_iter().collect()
}

/// A knapsack over the types of machines, each up to its limit.
fn fill(machines: &[Machine], unit: usize, size: usize) -> PriceTable {
    let mut best: PriceTable = vec![None; size + 1];
    best[0] = Some((0.0, None));
    for (kind, machine) in machines.iter().enumerate() {
        let step = machine.parts / unit;
        let fit = size / step;
        let at_most = machine.at_most.map_or(usize::MAX, |count| count as usize);
        if at_most >= fit {
            // Without a limit: one machine more than the cheapest cluster without it.
            for index in step..=size {
                buy(&mut best, machine, kind, index, step, 1);
            }
            continue;
        }
        // Lots of 1, 2, 4 … and the rest: their sums are all numbers up to the limit.
        let mut left = at_most;
        let mut lot = 1;
        while left > 0 {
            let count = lot.min(left);
            // From the largest on, so that no lot is used twice.
            for index in (count * step..=size).rev() {
                buy(&mut best, machine, kind, index, step, count);
            }
            left -= count;
            lot *= 2;
        }
    }
    best
}

/// Replaces the cheapest purchase for a capacity if `count` more machines on a smaller one cost less.
fn buy(
    best: &mut PriceTable,
    machine: &Machine,
    kind: usize,
    index: usize,
    step: usize,
    count: usize,
) {
    let Some((price, before)) = &best[index - count * step] else {
        return;
    };
    let price = price + count as f64 * machine.price;
    if best[index]
        .as_ref()
        .is_some_and(|(known, _)| price >= *known)
    {
        return;
    }
    let purchase = Purchase {
        kind,
        count: count as u32,
        before: before.clone(),
    };
    best[index] = Some((price, Some(Rc::new(purchase))));
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
