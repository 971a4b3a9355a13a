//! The operators of a stage, and which of them owns a line of generated code or a boundary frame.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;

use unfuse_format::Frame;

use crate::boundary::{self, Boundary};
use crate::collect::{self, Collector, is_exchange};
use crate::plan::Plan;
use crate::regions::{RegionKind, RegionMap};
use crate::rule::{BoundaryKind, Rule};

/// The operators of a line of generated code.
pub(super) enum Operators {
    /// The operators that begin there, from the producer to the consumer whose code it is.
    Begin(Vec<usize>, Rule),
    /// The caller's operator, which is of the same codegen stage.
    OfCaller,
    /// Unknown: the execution has no such text.
    Unknown,
}

/// A boundary by its address, the node from which it is reached, and whether a boundary led to that node.
type BoundaryKey = (*const Boundary, Option<(usize, bool)>);

/// The node to which a boundary hands over, and the rule that found it.
pub(super) type Handover = Option<(usize, Rule)>;

/// The plan, and what of it runs in the stage.
#[derive(Debug)]
pub(super) struct Context<'a> {
    pub(super) plan: &'a Plan,
    /// Accumulators that the stage updated.
    pub(super) accumulators: Option<&'a HashSet<i64>>,
    /// Plan nodes by region id, for each text.
    pub(super) generated: Option<&'a HashMap<String, Vec<usize>>>,
    pub(super) regions: &'a HashMap<String, RegionMap>,
    /// The nodes found for boundaries so far: there are few, and every stack needs them.
    pub(super) taken: Vec<(BoundaryKey, Handover)>,
    pub(super) collector: OnceCell<Option<(Collector, bool)>>,
}

impl Context<'_> {
    /// The operators that begin at a line: those around it from the innermost producing one, in the order in which a
    /// row passes them, from the producer up to the consumer that owns the code.
    pub(super) fn operators_at(&self, hash: &str, line: u32, current: Option<usize>) -> Operators {
        let Some(nodes) = self.generated.and_then(|texts| texts.get(hash)) else {
            return Operators::Unknown;
        };
        let map = self.regions.get(hash);
        let mut chain = Vec::new();
        let outwards = map.map(|map| map.outwards(line));
        for region in outwards.into_iter().flatten() {
            chain.extend(nodes.get(region.id as usize).copied());
            if region.kind == RegionKind::Produce {
                break;
            }
        }
        chain.reverse();
        if !chain.is_empty() {
            let by_call_site = map.is_some_and(|map| map.is_by_call_site(line));
            return Operators::Begin(
                chain,
                if by_call_site {
                    Rule::CallSite
                } else {
                    Rule::Region
                },
            );
        }
        // A helper outside all regions belongs to its caller's operator, if that is of this stage.
        if current.is_some_and(|current| nodes.contains(&current)) {
            return Operators::OfCaller;
        }
        let first = nodes.get(1).or(nodes.first());
        Operators::Begin(first.copied().into_iter().collect(), Rule::CodegenStage)
    }

    /// Collects the operators that can own an instruction of a method whose own line, `line`, was described after it,
    /// and the line `before` before it. Each has the weight of its lines between the two.
    pub(super) fn between(
        &self,
        hash: &str,
        (before, line): (u32, u32),
        into: &mut Vec<(usize, u32)>,
    ) {
        let Some(map) = self.regions.get(hash) else {
            return;
        };
        let lines = map.statements().between(before, line);
        self.weigh(hash, map, lines.unwrap_or(before..=before), before, into);
    }

    /// The same for a method that was inlined after the line before: its lines up to `line`.
    pub(super) fn method_until(&self, hash: &str, line: u32, into: &mut Vec<(usize, u32)>) {
        if let Some(map) = self.regions.get(hash) {
            let lines = map.statements().method_until(line);
            self.weigh(hash, map, lines, 0, into);
        }
    }

    /// Adds the weights of lines. The one that was described `before` has none: its code is before the instruction.
    fn weigh(
        &self,
        hash: &str,
        map: &RegionMap,
        lines: RangeInclusive<u32>,
        before: u32,
        into: &mut Vec<(usize, u32)>,
    ) {
        let Some(nodes) = self.generated.and_then(|texts| texts.get(hash)) else {
            return;
        };
        for line in lines {
            let region = map.innermost(line);
            let Some(node) = region.and_then(|region| nodes.get(region.id as usize)) else {
                continue;
            };
            let weight = match line == before {
                true => 0,
                false => map.statements().weight(line),
            };
            match into.iter_mut().find(|(known, _)| known == node) {
                Some((_, sum)) => *sum = sum.saturating_add(weight),
                None => into.push((*node, weight)),
            }
        }
    }

    /// The node to which a boundary frame hands over; `None` keeps the current node.
    pub(super) fn take_over(
        &mut self,
        boundary: &'static Boundary,
        frame: &Frame,
        current: Option<(usize, Rule)>,
    ) -> Handover {
        let from = current.map(|(node, rule)| {
            let by_boundary = matches!(rule, Rule::Boundary(_) | Rule::Metrics(_));
            (node, by_boundary)
        });
        // Each class has its own node.
        if *boundary == Boundary::NamedAsClass {
            return self.find(boundary, frame, from);
        }
        let taking = (std::ptr::from_ref(boundary), from);
        if let Some((_, taken)) = self.taken.iter().find(|(known, _)| *known == taking) {
            return *taken;
        }
        let taken = self.find(boundary, frame, from);
        self.taken.push((taking, taken));
        taken
    }

    fn find(&self, boundary: &Boundary, frame: &Frame, from: Option<(usize, bool)>) -> Handover {
        let kind = boundary.kind();
        match boundary {
            // Where no scan runs, the classes of readers do other work, such as reading footers of files.
            Boundary::Source(names) => self
                .nearest(kind, from, |operator| {
                    names.iter().any(|name| operator.starts_with(name.as_str()))
                })
                .filter(|(index, _)| {
                    self.accumulators.is_none_or(HashSet::is_empty) || self.runs(*index)
                }),
            Boundary::Node(names) => self.nearest(kind, from, |operator| {
                names.iter().any(|name| operator.contains(name.as_str()))
            }),
            Boundary::Mapped => self
                .nearest(kind, from, boundary::is_mapping)
                .filter(|(index, _)| self.plan.nodes[*index].codegen_stage.is_none()),
            Boundary::NamedAsClass => {
                let operator = boundary::operator_of(&frame.class)?;
                self.nearest(kind, from, |other| other == operator)
            }
            Boundary::ExchangeRead => self
                .nearest(kind, from, is_exchange)
                .filter(|(index, _)| from.is_some() || self.updated(*index, "records read")),
            Boundary::ExchangeWrite => {
                let writes = |index: &usize| {
                    is_exchange(&self.plan.nodes[*index].operator)
                        && (self.updated(*index, "shuffle records written")
                            || self.updated(*index, "shuffle bytes written"))
                };
                let index = (0..self.plan.nodes.len()).find(writes)?;
                Some((index, Rule::Metrics(kind)))
            }
            Boundary::Collect => match (from, self.collector()?) {
                (None, (Collector::Node(index), true)) => Some((index, Rule::Metrics(kind))),
                (None, (Collector::Node(index), false)) => Some((index, Rule::OneOfSeveral(kind))),
                _ => None,
            },
        }
    }

    /// The collector of the stage's rows, and whether it is certain.
    pub(super) fn collector(&self) -> Option<(Collector, bool)> {
        *self
            .collector
            .get_or_init(|| collect::collector(self.plan, self.accumulators?))
    }

    /// The current node if it is wanted; else the nearest wanted node below it; else the only or the deepest one that
    /// runs in this stage.
    fn nearest(
        &self,
        kind: BoundaryKind,
        from: Option<(usize, bool)>,
        wanted: impl Fn(&str) -> bool,
    ) -> Handover {
        let wanted = |index: &usize| wanted(&self.plan.nodes[*index].operator);
        if let Some((current, by_boundary)) = from {
            let below = self.plan.below(current);
            let below: Vec<usize> = below.into_iter().filter(wanted).collect();
            let running = below.iter().copied().filter(|index| self.runs(*index));
            let running: Vec<usize> = running.collect();
            if wanted(&current) {
                // An operator that is not fused may get its rows from another operator of its kind.
                let again = by_boundary && kind == BoundaryKind::Operator && !running.is_empty();
                let rule = if again {
                    Rule::OneOfSeveral(kind)
                } else {
                    Rule::Boundary(kind)
                };
                return Some((current, rule));
            }
            if let Some(found) = choose(kind, &running, &below) {
                return Some(found);
            }
            if let Some(first) = below.first() {
                return Some((*first, Rule::OneOfSeveral(kind)));
            }
        }
        let all: Vec<usize> = (0..self.plan.nodes.len()).rev().filter(wanted).collect();
        let running: Vec<usize> = all
            .iter()
            .copied()
            .filter(|index| self.runs(*index))
            .collect();
        choose(kind, &running, &all)
    }

    fn runs(&self, index: usize) -> bool {
        self.updated(index, "")
    }

    fn updated(&self, index: usize, metric: &str) -> bool {
        self.accumulators
            .is_some_and(|accumulators| self.plan.updated(index, accumulators, metric))
    }
}

/// The first node that runs. Not every operator has metrics, so the only one of its kind needs no proof that it runs.
fn choose(kind: BoundaryKind, running: &[usize], all: &[usize]) -> Handover {
    match (running, all) {
        (_, [only]) => Some((*only, Rule::Boundary(kind))),
        ([only], _) => Some((*only, Rule::Metrics(kind))),
        ([first, ..], _) => Some((*first, Rule::OneOfSeveral(kind))),
        ([], _) => None,
    }
}
