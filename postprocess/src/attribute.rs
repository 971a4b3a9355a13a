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
use crate::regions::{RegionKind, RegionMap};

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

/// Attributes groups. Those of one stage attempt should follow each other, as they do in a profile: what was
/// found for one helps with the next.
#[derive(Debug)]
pub struct Attributor<'a> {
    profile: &'a Profile,
    place: Option<Place<'a>>,
}

impl<'a> Attributor<'a> {
    /// For the groups of a profile.
    pub fn new(profile: &'a Profile) -> Self {
        Self {
            profile,
            place: None,
        }
    }

    /// The profile.
    pub(crate) fn profile(&self) -> &'a Profile {
        self.profile
    }

    /// Attributes the stack of a group.
    pub fn of(&mut self, group: &Group) -> Attribution {
        let frames = self.profile.stacks.get(&group.stack);
        let frames = frames.map_or(&[][..], Vec::as_slice);
        let place = match self.place.take().filter(|place| place.holds(group)) {
            Some(place) => place,
            None => Place::of(self.profile, group, frames),
        };
        let place = self.place.insert(place);
        let nobody = || Owner::Heading(heading(group, frames));
        let Some((execution, context)) = &mut place.context else {
            return Attribution {
                owner: nobody(),
                begins: Vec::new(),
                execution: None,
            };
        };
        let mut walk = Walk {
            context,
            current: None,
            begins: Vec::new(),
        };
        let landmarks = self.profile.landmarks.get(&group.stack);
        for (index, boundary) in landmarks.map_or(&[][..], Vec::as_slice) {
            walk.step(*index, &frames[*index], *boundary);
        }
        let owner = match walk.current {
            Some(node) => Owner::Node(execution.clone(), node),
            None => nobody(),
        };
        Attribution {
            owner,
            begins: walk.begins,
            execution: Some(execution.clone()),
        }
    }
}

/// What the groups of a stage attempt have in common.
#[derive(Debug)]
struct Place<'a> {
    app: String,
    query: Option<i64>,
    stage: Option<i32>,
    attempt: Option<i32>,
    context: Option<(ExecutionKey, Context<'a>)>,
}

impl<'a> Place<'a> {
    fn of(profile: &'a Profile, group: &Group, frames: &[Frame]) -> Self {
        let execution = execution_of(profile, group, frames);
        let context = execution.and_then(|execution| {
            let stage = (
                group.app.clone(),
                group.stage.unwrap_or(-1),
                group.attempt.unwrap_or(0),
            );
            let context = Context {
                plan: profile.plans.get(&execution)?,
                accumulators: profile.stages.get(&stage).map(|stage| &stage.accumulators),
                generated: profile.generated.get(&execution),
                regions: &profile.regions,
                taken: Vec::new(),
            };
            Some((execution, context))
        });
        Self {
            app: group.app.clone(),
            query: group.query,
            stage: group.stage,
            attempt: group.attempt,
            context,
        }
    }

    /// Where a task's query is not known, each stack may know another.
    fn holds(&self, group: &Group) -> bool {
        let known = group.query.is_some() || group.stage.is_none();
        known
            && (self.query, self.stage, self.attempt) == (group.query, group.stage, group.attempt)
            && self.app == group.app
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

struct Walk<'a, 'b> {
    context: &'b mut Context<'a>,
    current: Option<usize>,
    begins: Vec<(usize, usize)>,
}

impl Walk<'_, '_> {
    fn step(&mut self, index: usize, frame: &Frame, boundary: Option<&'static Boundary>) {
        if let Some(hash) = generated_hash(&frame.file) {
            let chain = self.context.operators_at(hash, frame.line, self.current);
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
}

/// A boundary, by its address, with the node that it is reached from.
type Taking = (*const Boundary, Option<usize>);

/// The plan and what of it runs in the stage.
#[derive(Debug)]
struct Context<'a> {
    plan: &'a Plan,
    /// Those that the stage updated.
    accumulators: Option<&'a HashSet<i64>>,
    /// Plan nodes by region id, for each text.
    generated: Option<&'a HashMap<String, Vec<usize>>>,
    regions: &'a HashMap<String, RegionMap>,
    /// Who took over at which boundaries so far: they are few, and asked for by every stack.
    taken: Vec<(Taking, Option<usize>)>,
}

impl Context<'_> {
    /// The operators that begin at a line: those around it since the innermost one that produces, which
    /// is how a row passes them, from the producer up to the consumer whose code it is.
    fn operators_at(&self, hash: &str, line: u32, current: Option<usize>) -> Vec<usize> {
        let Some(nodes) = self.generated.and_then(|texts| texts.get(hash)) else {
            return Vec::new();
        };
        let regions = self.regions.get(hash).map_or(&[][..], |map| map.line(line));
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
        if current.is_some_and(|current| nodes.contains(&current)) {
            return Vec::new();
        }
        let first = nodes.get(1).or(nodes.first());
        first.copied().into_iter().collect()
    }

    /// The node that a boundary frame hands over to, `None` to leave things as they are.
    fn take_over(&mut self, boundary: &'static Boundary, current: Option<usize>) -> Option<usize> {
        let taking = (std::ptr::from_ref(boundary), current);
        if let Some((_, node)) = self.taken.iter().find(|(known, _)| *known == taking) {
            return *node;
        }
        let node = self.find(*boundary, current);
        self.taken.push((taking, node));
        node
    }

    fn find(&self, boundary: Boundary, current: Option<usize>) -> Option<usize> {
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
                .filter(|at| self.accumulators.is_none_or(HashSet::is_empty) || self.runs(*at)),
            Boundary::Node(names) => self.nearest(current, named(names, false)),
            Boundary::ExchangeRead => self
                .nearest(current, |plan, at| {
                    plan.nodes[at].operator.contains("Exchange")
                })
                .filter(|at| current.is_some() || self.updated(*at, "records read")),
            Boundary::ExchangeWrite => (0..self.plan.nodes.len()).find(|at| {
                self.plan.nodes[*at].operator.contains("Exchange")
                    && (self.updated(*at, "shuffle records written")
                        || self.updated(*at, "shuffle bytes written"))
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
        self.updated(at, "")
    }

    fn updated(&self, at: usize, metric: &str) -> bool {
        self.accumulators
            .is_some_and(|accumulators| self.plan.updated(at, accumulators, metric))
    }
}
