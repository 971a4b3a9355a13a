//! Which plan node each part of a stack belongs to.
//!
//! Frames are walked from the root. Generated code belongs to the operator whose region its line is in;
//! generated code without a region (split helpers, hash map classes) and library code belong to whoever
//! called them; at a boundary frame another plan node takes over.

use std::collections::{HashMap, HashSet};

use unfuse_format::Frame;

use crate::boundary::Boundary;
use crate::heading;
use crate::plan::Plan;
use crate::profile::{ExecutionKey, Group, Profile, generated_hash};
use crate::regions::RegionKind;

/// Who a sample belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Owner {
    /// A plan node: index into the nodes of the execution's plan.
    Node(ExecutionKey, usize),
    /// A heading for work that no operator does.
    Heading(&'static str),
}

/// A stack with its owners.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribution {
    /// Owner of the leaf, that is of the samples.
    pub owner: Owner,
    /// Plan nodes that begin at a frame: (frame's index from the root, node), in order.
    pub begins: Vec<(usize, usize)>,
    /// The execution the nodes are of.
    pub execution: Option<ExecutionKey>,
}

impl Attribution {
    /// Attributes the stack of a group.
    pub fn of(profile: &Profile, group: &Group) -> Self {
        let frames = profile
            .stacks
            .get(&group.stack)
            .map_or(&[][..], Vec::as_slice);
        let execution = execution_of(profile, group, frames);
        let plan = execution.as_ref().and_then(|key| profile.plans.get(key));
        let (Some(execution), Some(plan)) = (execution, plan) else {
            return Self {
                owner: Owner::Heading(heading(group, frames)),
                begins: Vec::new(),
                execution: None,
            };
        };
        let nothing = HashSet::new();
        let stage = (
            group.app.clone(),
            group.stage.unwrap_or(-1),
            group.attempt.unwrap_or(0),
        );
        let accumulators = profile
            .stages
            .get(&stage)
            .map_or(&nothing, |stage| &stage.accumulators);
        let mut walk = Walk {
            profile,
            generated: profile.generated.get(&execution),
            context: Context { plan, accumulators },
            current: None,
            begins: Vec::new(),
        };
        let landmarks = profile.landmarks.get(&group.stack);
        for (index, boundary) in landmarks.map_or(&[][..], Vec::as_slice) {
            walk.step(*index, &frames[*index], *boundary);
        }
        let (current, begins) = (walk.current, walk.begins);
        let owner = match current {
            Some(node) => Owner::Node(execution.clone(), node),
            None => Owner::Heading(heading(group, frames)),
        };
        Self {
            owner,
            begins,
            execution: Some(execution),
        }
    }
}

/// The stage's execution; where the stage is not known (the driver's tables are lost), the one that
/// generated the code.
pub(crate) fn execution_of(
    profile: &Profile,
    group: &Group,
    frames: &[Frame],
) -> Option<ExecutionKey> {
    if let Some(query) = group.query {
        return Some((group.app.clone(), query));
    }
    group.stage?;
    let known = profile
        .stages
        .contains_key(&(group.app.clone(), group.stage?, group.attempt?));
    let hash = frames
        .iter()
        .find_map(|frame| generated_hash(&frame.file))
        .filter(|_| !known)?;
    profile
        .generated
        .iter()
        .filter(|(_, texts)| texts.contains_key(hash))
        .map(|(execution, _)| execution)
        .min()
        .cloned()
}

fn heading(group: &Group, frames: &[Frame]) -> &'static str {
    heading::of(group.stage.is_some(), &group.thread, frames)
}

struct Walk<'a> {
    profile: &'a Profile,
    generated: Option<&'a HashMap<String, Vec<usize>>>,
    context: Context<'a>,
    current: Option<usize>,
    begins: Vec<(usize, usize)>,
}

impl Walk<'_> {
    fn step(&mut self, index: usize, frame: &Frame, boundary: Option<Boundary>) {
        if let Some(hash) = generated_hash(&frame.file) {
            let chain = self.generated(hash, frame);
            if let Some(last) = chain.last() {
                self.begins.extend(chain.iter().map(|node| (index, *node)));
                self.current = Some(*last);
            }
        } else if let Some(boundary) = boundary
            && let Some(node) = self.context.take_over(boundary, self.current)
            && self.current != Some(node)
        {
            self.begins.push((index, node));
            self.current = Some(node);
        }
    }

    /// The operators that begin at a line: those around it since the innermost one that produces, which
    /// is how a row passes them, from the producer up to the consumer whose code it is.
    fn generated(&self, hash: &str, frame: &Frame) -> Vec<usize> {
        let Some(nodes) = self.generated.and_then(|texts| texts.get(hash)) else {
            return Vec::new();
        };
        let regions = self
            .profile
            .regions
            .get(hash)
            .map_or(&[][..], |map| map.line(frame.line));
        let since = regions
            .iter()
            .rposition(|region| region.kind == RegionKind::Produce)
            .unwrap_or(0);
        let chain: Vec<usize> = regions[since.min(regions.len())..]
            .iter()
            .filter_map(|region| nodes.get(region.id as usize).copied())
            .collect();
        if !chain.is_empty() {
            return chain;
        }
        // A helper outside all regions: its caller's, if that is of this stage too.
        if self.current.is_some_and(|current| nodes.contains(&current)) {
            return Vec::new();
        }
        nodes
            .get(1)
            .or(nodes.first())
            .copied()
            .into_iter()
            .collect()
    }
}

/// The plan and what of it runs in the stage.
struct Context<'a> {
    plan: &'a Plan,
    accumulators: &'a HashSet<i64>,
}

impl Context<'_> {
    /// The node that a boundary frame hands over to, `None` to leave things as they are.
    fn take_over(&self, boundary: Boundary, current: Option<usize>) -> Option<usize> {
        let named = |names: &'static [&'static str], start: bool| {
            move |plan: &Plan, at: usize| {
                let operator = plan.nodes[at].operator.as_str();
                names.iter().any(|name| {
                    if start {
                        operator.starts_with(name)
                    } else {
                        operator.contains(name)
                    }
                })
            }
        };
        match boundary {
            // Where no scan runs, readers' classes do something else, such as footers of files.
            Boundary::Source(names) => self
                .nearest(current, named(names, true))
                .filter(|at| self.accumulators.is_empty() || self.runs(*at)),
            Boundary::Node(names) => self.nearest(current, named(names, false)),
            Boundary::ExchangeRead => self
                .nearest(current, |plan, at| {
                    plan.nodes[at].operator.contains("Exchange")
                })
                .filter(|at| {
                    current.is_some() || self.plan.updated(*at, self.accumulators, "records read")
                }),
            Boundary::ExchangeWrite => (0..self.plan.nodes.len()).find(|at| {
                self.plan.nodes[*at].operator.contains("Exchange")
                    && (self
                        .plan
                        .updated(*at, self.accumulators, "shuffle records written")
                        || self
                            .plan
                            .updated(*at, self.accumulators, "shuffle bytes written"))
            }),
        }
    }

    /// The current node if it is one of those wanted, else the nearest below it, else the only or the
    /// deepest one that runs in this stage.
    fn nearest(
        &self,
        current: Option<usize>,
        wanted: impl Fn(&Plan, usize) -> bool,
    ) -> Option<usize> {
        if let Some(current) = current {
            if wanted(self.plan, current) {
                return Some(current);
            }
            let below: Vec<usize> = self
                .plan
                .below(current)
                .into_iter()
                .filter(|at| wanted(self.plan, *at))
                .collect();
            let running = below.iter().find(|at| self.runs(**at));
            if let Some(at) = running.or(below.first()) {
                return Some(*at);
            }
        }
        let mut running = (0..self.plan.nodes.len())
            .rev()
            .filter(|at| wanted(self.plan, *at));
        running.clone().find(|at| self.runs(*at)).or_else(|| {
            // Not every operator has metrics; one alone of its kind is meant.
            let only = running.next()?;
            running.next().is_none().then_some(only)
        })
    }

    fn runs(&self, at: usize) -> bool {
        self.plan.updated(at, self.accumulators, "")
    }
}
