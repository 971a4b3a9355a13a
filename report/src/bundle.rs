//! Details of several queries in one block of the page. Data that they share, such as the frames of runs of the same
//! query, is in the block once.

use std::collections::HashMap;

use serde::Serialize;
use ts_rs::TS;

use crate::model::{Flame, QueryDetail};

/// Maximum number of queries in a block.
const QUERIES: usize = 64;
/// Maximum number of tasks and groups of samples in a block of several queries: the page unpacks a whole block.
const ROWS: usize = 20_000;

/// Details of several queries.
#[derive(Debug, Default, Serialize, TS)]
pub(super) struct Bundle {
    /// The details without flame graphs.
    details: Vec<QueryDetail>,
    /// The flame graphs of each query: operators by plan, operators by code, all frames.
    flames: Vec<[Stacks; 3]>,
    /// The frames of all flame graphs.
    frames: Frames,
}

/// Frames with their callers, as columns.
#[derive(Debug, Default, Serialize, TS)]
#[ts(rename = "BundleFrames")]
struct Frames {
    /// Distance to the caller, which comes before the frame; 0 for roots.
    caller: Vec<u32>,
    /// As in [`Flame`].
    kind: Vec<u8>,
    /// As in [`Flame`].
    of: Vec<u32>,
    #[serde(skip)]
    #[ts(skip)]
    known: HashMap<(Option<u32>, u8, u32), u32, ahash::RandomState>,
}

/// A flame graph as the stacks that end in it, in its order, as columns.
#[derive(Debug, Default, Serialize, TS)]
struct Stacks {
    /// The innermost frame of each stack, an index into the bundle's frames.
    leaf: Vec<u32>,
    /// CPU time, in `unit_ns`.
    cpu: Vec<u64>,
    /// The unit, ns.
    unit_ns: u64,
    /// Number of samples.
    samples: Vec<u64>,
}

impl Bundle {
    /// Adds a query.
    pub(super) fn add(&mut self, mut detail: QueryDetail) {
        let flames = [
            &mut detail.operators,
            &mut detail.operators_by_code,
            &mut detail.frames,
        ];
        let flames = flames.map(std::mem::take);
        self.flames
            .push(flames.map(|flame| self.frames.stacks(&flame)));
        self.details.push(detail);
    }
}

impl Frames {
    /// The stacks of a flame graph. Adds its frames to the bundle.
    fn stacks(&mut self, flame: &Flame) -> Stacks {
        let mut stacks = Stacks {
            unit_ns: flame.cpu_ns.iter().copied().fold(0, common_divisor).max(1),
            ..Stacks::default()
        };
        let mut open: Vec<u32> = Vec::new();
        for (index, depth) in flame.depth.iter().enumerate() {
            open.truncate(*depth as usize);
            let frame = self.number(open.last().copied(), flame.kind[index], flame.of[index]);
            open.push(frame);
            let (ns, samples) = (flame.cpu_ns[index], flame.samples[index]);
            let calls = flame.depth.get(index + 1).is_some_and(|next| next > depth);
            if calls && ns == 0 && samples == 0 {
                continue;
            }
            stacks.leaf.push(frame);
            stacks.cpu.push(ns / stacks.unit_ns);
            stacks.samples.push(samples);
        }
        stacks
    }

    fn number(&mut self, caller: Option<u32>, kind: u8, of: u32) -> u32 {
        let next = self.of.len() as u32;
        *self.known.entry((caller, kind, of)).or_insert_with(|| {
            self.caller.push(caller.map_or(0, |caller| next - caller));
            self.kind.push(kind);
            self.of.push(of);
            next
        })
    }
}

fn common_divisor(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Where the details of each query are, as columns with an entry for each query in the list.
#[derive(Debug, Default, Serialize, TS)]
pub(super) struct Places {
    /// Number of the bundle.
    bundle: Vec<usize>,
    /// Index in the bundle.
    at: Vec<usize>,
}

impl Places {
    /// The places of the queries in `bundles`.
    pub(super) fn new(bundles: &[Vec<usize>]) -> Self {
        let mut places = Self::default();
        let count = bundles.iter().map(Vec::len).sum();
        places.bundle.resize(count, 0);
        places.at.resize(count, 0);
        for (bundle, queries) in bundles.iter().enumerate() {
            for (index, query) in queries.iter().enumerate() {
                places.bundle[*query] = bundle;
                places.at[*query] = index;
            }
        }
        places
    }
}

/// Distributes queries, each a fingerprint and a number of tasks and groups of samples, to bundles. Queries with the
/// same fingerprint are next to each other.
pub(super) fn bundles(queries: &[(&str, usize)]) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..queries.len()).collect();
    order.sort_by_key(|index| queries[*index].0);
    let mut bundles: Vec<Vec<usize>> = Vec::new();
    let mut total = 0;
    for index in order {
        let (_, rows) = queries[index];
        total += rows;
        match bundles.last_mut() {
            Some(bundle) if bundle.len() < QUERIES && total <= ROWS => bundle.push(index),
            _ => {
                bundles.push(vec![index]);
                total = rows;
            }
        }
    }
    bundles
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flame::{Key, Tree};
    use crate::model::{Cost, FlameKind};

    /// Unpacks as `bundle.ts` does.
    fn unpacked(frames: &Frames, stacks: &Stacks) -> Flame {
        let mut flame = Flame::default();
        let mut open: Vec<u32> = Vec::new();
        for (index, leaf) in stacks.leaf.iter().enumerate() {
            let caller = |frame: &u32| match frames.caller[*frame as usize] {
                0 => None,
                before => Some(frame - before),
            };
            let mut stack: Vec<u32> = std::iter::successors(Some(*leaf), caller).collect();
            stack.reverse();
            let common = stack.iter().zip(&open).take_while(|(a, b)| a == b).count();
            for (depth, frame) in stack.iter().enumerate().skip(common) {
                let is_leaf = depth + 1 == stack.len();
                flame.depth.push(depth as u32);
                flame.kind.push(frames.kind[*frame as usize]);
                flame.of.push(frames.of[*frame as usize]);
                let ns = stacks.cpu[index] * stacks.unit_ns;
                flame.cpu_ns.push(if is_leaf { ns } else { 0 });
                let samples = stacks.samples[index];
                flame.samples.push(if is_leaf { samples } else { 0 });
            }
            open = stack;
        }
        flame
    }

    fn flame(stacks: &[(&[u32], u64, u64)]) -> Flame {
        let mut tree = Tree::default();
        for (stack, cpu_ns, samples) in stacks {
            let keys = stack.iter().enumerate().map(|(depth, of)| -> Key {
                let kind = if depth == 0 {
                    FlameKind::Stage
                } else {
                    FlameKind::Frame
                };
                (kind, *of)
            });
            let (cpu_ns, samples) = (*cpu_ns, *samples);
            tree.add(keys, Cost { cpu_ns, samples });
        }
        tree.into_flame()
    }

    #[test]
    fn a_flame_graph_comes_out_as_it_went_in() {
        let flames = [
            flame(&[]),
            flame(&[(&[0, 7, 8, 9], 15, 3), (&[0, 7], 5, 1), (&[0, 7, 8], 30, 6)]),
            // Equal widths, a stack without samples, and no common unit.
            flame(&[
                (&[1, 7], 4, 1),
                (&[0, 8, 7], 4, 1),
                (&[0, 8, 9], 0, 0),
                (&[0, 8], 7, 2),
            ]),
            flame(&[(&[0, 7, 8, 9], 10, 2), (&[1], 10, 2)]),
        ];
        let mut frames = Frames::default();
        let stacks: Vec<Stacks> = flames.iter().map(|flame| frames.stacks(flame)).collect();
        for (flame, stacks) in flames.iter().zip(&stacks) {
            assert_eq!(&unpacked(&frames, stacks), flame);
        }
        assert_eq!(stacks[1].leaf.len(), 3);
        assert_eq!((stacks[1].unit_ns, stacks[2].unit_ns), (5, 1));
    }

    #[test]
    fn runs_of_a_query_are_in_one_bundle() {
        let found = bundles(&[("b", 10), ("a", 10), ("b", ROWS), ("a", 10), ("c", 10)]);
        assert_eq!(found, [vec![1, 3, 0], vec![2], vec![4]]);
        let places = Places::new(&found);
        assert_eq!(places.bundle, [0, 0, 1, 0, 2]);
        assert_eq!(places.at, [2, 0, 0, 1, 0]);
        let many = bundles(&[("a", 2); 100]);
        let sizes: Vec<usize> = many.iter().map(Vec::len).collect();
        assert_eq!(sizes, [64, 36]);
    }
}
