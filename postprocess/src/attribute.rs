//! Which plan node each part of a stack belongs to.
//!
//! Frames are walked from the root. Generated code belongs to the operator whose region its line is in;
//! generated code without a region (split helpers, hash map classes) and library code belong to whoever
//! called them; at a boundary frame another plan node takes over.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use unfuse_format::{ExecutionId, Frame, StageAttempt};

use crate::boundary::{self, Boundary};
use crate::collect::{self, Collector};
use crate::heading;
use crate::plan::Plan;
use crate::profile::{Group, Profile, generated_hash};
use crate::regions::{RegionKind, RegionMap};
use crate::rule::{BoundaryKind, Rule, Standing};

/// Lines between two descriptions that are looked at.
const MOST_LINES: u32 = 4096;

/// Who a sample belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Owner {
    /// A plan node: index into the nodes of the execution's plan.
    Node(ExecutionId, usize),
    /// A heading for work that no operator does.
    Heading(&'static str),
}

/// A stack with its owners.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribution {
    /// Owner of the leaf, that is of the samples.
    pub owner: Owner,
    /// The rule that found the owner.
    pub rule: Rule,
    /// Plan nodes that the samples may be of as well: the compiler described code of theirs just before, or could not
    /// describe any of them between that and the owner's.
    pub also: Vec<usize>,
    /// Plan nodes that begin at a frame: (frame's index from the root, node), in order.
    pub begins: Vec<(usize, usize)>,
    /// The execution the nodes are of.
    pub execution: Option<ExecutionId>,
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
        let Some((execution, context)) = &mut place.context else {
            let (heading, rule) = heading(group, frames, None);
            return Attribution {
                owner: Owner::Heading(heading),
                rule,
                also: Vec::new(),
                begins: Vec::new(),
                execution: None,
            };
        };
        let mut walk = Walk {
            context,
            current: None,
            also: Vec::new(),
            begins: Vec::new(),
        };
        let landmarks = self.profile.landmarks.get(&group.stack);
        for (index, boundary) in landmarks.map_or(&[][..], Vec::as_slice) {
            walk.step(*index, frames, *boundary);
        }
        let Walk {
            context,
            current,
            also,
            begins,
        } = walk;
        let (owner, rule) = match current {
            Some((node, rule)) => (Owner::Node(execution.clone(), node), rule),
            None => {
                let (heading, rule) = heading(group, frames, Some(context));
                (Owner::Heading(heading), rule)
            }
        };
        Attribution {
            owner,
            rule,
            also,
            begins,
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
    context: Option<(ExecutionId, Context<'a>)>,
}

impl<'a> Place<'a> {
    fn of(profile: &'a Profile, group: &Group, frames: &[Arc<Frame>]) -> Self {
        let execution = execution_of(profile, group, frames);
        let context = execution.and_then(|execution| {
            let (stage, attempt) = (group.stage.unwrap_or(-1), group.attempt.unwrap_or(0));
            let stage = StageAttempt::new(&*group.app, stage, attempt);
            let context = Context {
                plan: profile.plans.get(&execution)?,
                accumulators: profile.stages.get(&stage).map(|stage| &stage.accumulators),
                generated: profile.generated.get(&execution),
                regions: &profile.regions,
                taken: Vec::new(),
                collector: OnceCell::new(),
            };
            Some((execution, context))
        });
        Self {
            app: group.app.to_string(),
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
            && *self.app == *group.app
    }
}

/// The execution of a group's stage; if the stage is unknown (the driver's tables are lost), the one that
/// generated the code in `frames`.
pub fn execution_of(
    profile: &Profile,
    group: &Group,
    frames: &[Arc<Frame>],
) -> Option<ExecutionId> {
    if let Some(query) = group.query {
        return Some(ExecutionId::new(&*group.app, query));
    }
    group.stage?;
    let known = profile.stages.contains_key(&StageAttempt::new(
        &*group.app,
        group.stage?,
        group.attempt?,
    ));
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

fn heading(
    group: &Group,
    frames: &[Arc<Frame>],
    context: Option<&Context<'_>>,
) -> (&'static str, Rule) {
    let collector = context.and_then(Context::collector);
    let place = heading::Place {
        task: group.stage.is_some(),
        planned: context.is_some(),
        results: collector == Some((Collector::Result, true)),
        thread: &group.thread,
    };
    heading::of(place, frames)
}

struct Walk<'a, 'b> {
    context: &'b mut Context<'a>,
    /// Whose the frame is, and the rule that told.
    current: Option<(usize, Rule)>,
    /// Whose it may be as well.
    also: Vec<usize>,
    begins: Vec<(usize, usize)>,
}

impl Walk<'_, '_> {
    fn step(&mut self, index: usize, frames: &[Arc<Frame>], boundary: Option<&'static Boundary>) {
        let frame = &frames[index];
        if let Some(hash) = generated_hash(&frame.file) {
            self.generated(index, frames, hash);
        } else if let Some(boundary) = boundary {
            self.boundary(index, frame, boundary);
        }
    }

    fn generated(&mut self, index: usize, frames: &[Arc<Frame>], hash: &str) {
        let frame = &frames[index];
        let current = self.current.map(|(node, _)| node);
        match self.context.operators_at(hash, frame.line, current) {
            Operators::Begin(chain, rule) => {
                if let Some(last) = chain.last() {
                    self.current = Some((*last, rule));
                    self.begins.extend(chain.iter().map(|node| (index, *node)));
                }
            }
            Operators::OfCaller => self.call(Rule::Caller),
            Operators::Unknown if is_mapped(frames, index) => {
                self.boundary(index, frame, &boundary::MAPPED);
            }
            // Projections, orderings: whoever calls them had them made.
            Operators::Unknown if !frame.class.contains("GeneratedIterator") => {
                self.call(Rule::Caller);
            }
            Operators::Unknown => self.call(Rule::UnknownOperator),
        }
        self.also.clear();
        if let Some((owner, _)) = self.current
            && frame.line_before > 0
        {
            let lines = (frame.line_before, frame.line);
            self.context.between(hash, lines, owner, &mut self.also);
        }
    }

    /// Code that does not tell its operator is its caller's; where the caller was guessed, so is this.
    fn call(&mut self, rule: Rule) {
        if let Some((_, known)) = &mut self.current
            && known.standing() == Standing::Proved
        {
            *known = rule;
        }
    }

    fn boundary(&mut self, index: usize, frame: &Frame, boundary: &'static Boundary) {
        let taken = self.context.take_over(boundary, frame, self.current);
        self.hand_over(index, taken, boundary.kind());
    }

    fn hand_over(&mut self, index: usize, taken: Taken, kind: BoundaryKind) {
        match taken {
            Some((node, rule)) => match self.current {
                Some((current, known)) if current == node => {
                    if known.standing() != Standing::Proved {
                        self.current = Some((node, rule));
                    }
                }
                _ => {
                    self.begins.push((index, node));
                    self.current = Some((node, rule));
                    self.also.clear();
                }
            },
            None if kind == BoundaryKind::Operator => self.call(Rule::UnknownOperator),
            None => {}
        }
    }
}

/// Whether a Scala iterator calls the frame, once for each row. The frame then belongs to the operator that made the
/// iterator, not to the one that reads from it.
pub(crate) fn is_mapped(frames: &[Arc<Frame>], index: usize) -> bool {
    let caller = index.checked_sub(1).and_then(|before| frames.get(before));
    caller.is_some_and(|caller| caller.class.starts_with("scala.collection.Iterator"))
}

/// Whose a line of generated code is.
enum Operators {
    /// Those that begin there, from the producer to the consumer whose code it is.
    Begin(Vec<usize>, Rule),
    /// Its caller's, which is of the same codegen stage.
    OfCaller,
    /// Of a text that the execution is not known to have.
    Unknown,
}

/// A boundary, by its address, with the node that it is reached from and whether a boundary led there.
type Taking = (*const Boundary, Option<(usize, bool)>);

/// The node that a boundary hands over to, and the rule that told.
type Taken = Option<(usize, Rule)>;

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
    taken: Vec<(Taking, Taken)>,
    collector: OnceCell<Option<(Collector, bool)>>,
}

impl Context<'_> {
    /// The operators that begin at a line: those around it since the innermost one that produces, which
    /// is how a row passes them, from the producer up to the consumer whose code it is.
    fn operators_at(&self, hash: &str, line: u32, current: Option<usize>) -> Operators {
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
        // A helper outside all regions: its caller's, if that is of this stage too.
        if current.is_some_and(|current| nodes.contains(&current)) {
            return Operators::OfCaller;
        }
        let first = nodes.get(1).or(nodes.first());
        Operators::Begin(first.copied().into_iter().collect(), Rule::CodegenStage)
    }

    /// Collects the operators other than `owner` that code between two described lines may be of: that of the first, and where the
    /// second stands further down, those of all lines between them.
    fn between(&self, hash: &str, (before, line): (u32, u32), owner: usize, into: &mut Vec<usize>) {
        let nodes = self.generated.and_then(|texts| texts.get(hash));
        let (Some(nodes), Some(map)) = (nodes, self.regions.get(hash)) else {
            return;
        };
        let is_near = (before..before.saturating_add(MOST_LINES)).contains(&line);
        let last = if is_near { line } else { before };
        for line in before..=last {
            let region = map.innermost(line);
            let node = region.and_then(|region| nodes.get(region.id as usize));
            if let Some(node) = node.filter(|node| **node != owner && !into.contains(node)) {
                into.push(*node);
            }
        }
    }

    /// The node that a boundary frame hands over to, `None` to leave things as they are.
    fn take_over(
        &mut self,
        boundary: &'static Boundary,
        frame: &Frame,
        current: Option<(usize, Rule)>,
    ) -> Taken {
        let from = current.map(|(node, rule)| {
            let by_boundary = matches!(rule, Rule::Boundary(_) | Rule::Metrics(_));
            (node, by_boundary)
        });
        // Each class has a node of its own.
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

    fn find(&self, boundary: &Boundary, frame: &Frame, from: Option<(usize, bool)>) -> Taken {
        let kind = boundary.kind();
        match boundary {
            // Where no scan runs, readers' classes do something else, such as footers of files.
            Boundary::Source(names) => {
                self.nearest(kind, from, |operator| {
                    names.iter().any(|name| operator.starts_with(name.as_str()))
                })
                .filter(|(at, _)| self.accumulators.is_none_or(HashSet::is_empty) || self.runs(*at))
            }
            Boundary::Node(names) => self.nearest(kind, from, |operator| {
                names.iter().any(|name| operator.contains(name.as_str()))
            }),
            Boundary::Mapped => self
                .nearest(kind, from, |operator| boundary::MAPPING.contains(&operator))
                .filter(|(at, _)| self.plan.nodes[*at].codegen_stage.is_none()),
            Boundary::NamedAsClass => {
                let operator = boundary::operator_of(&frame.class)?;
                self.nearest(kind, from, |other| other == operator)
            }
            Boundary::ExchangeRead => self
                .nearest(kind, from, |operator| operator.contains("Exchange"))
                .filter(|(at, _)| from.is_some() || self.updated(*at, "records read")),
            Boundary::ExchangeWrite => {
                let writes = |at: &usize| {
                    self.plan.nodes[*at].operator.contains("Exchange")
                        && (self.updated(*at, "shuffle records written")
                            || self.updated(*at, "shuffle bytes written"))
                };
                let at = (0..self.plan.nodes.len()).find(writes)?;
                Some((at, Rule::Metrics(kind)))
            }
            Boundary::Collect => match (from, self.collector()?) {
                (None, (Collector::Node(at), true)) => Some((at, Rule::Metrics(kind))),
                (None, (Collector::Node(at), false)) => Some((at, Rule::OneOfSeveral(kind))),
                _ => None,
            },
        }
    }

    /// Who collects the stage's rows, and whether that is sure.
    fn collector(&self) -> Option<(Collector, bool)> {
        *self
            .collector
            .get_or_init(|| collect::of(self.plan, self.accumulators?))
    }

    /// The current node if it is one of those wanted, else the nearest below it, else the only or the
    /// deepest one that runs in this stage.
    fn nearest(
        &self,
        kind: BoundaryKind,
        from: Option<(usize, bool)>,
        wanted: impl Fn(&str) -> bool,
    ) -> Taken {
        let wanted = |at: &usize| wanted(&self.plan.nodes[*at].operator);
        if let Some((current, by_boundary)) = from {
            let below = self.plan.below(current);
            let below: Vec<usize> = below.into_iter().filter(wanted).collect();
            let running = below.iter().copied().filter(|at| self.runs(*at));
            let running: Vec<usize> = running.collect();
            if wanted(&current) {
                // An operator that is not fused may have got its rows from another one of its kind.
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
        let running: Vec<usize> = all.iter().copied().filter(|at| self.runs(*at)).collect();
        choose(kind, &running, &all)
    }

    fn runs(&self, at: usize) -> bool {
        self.updated(at, "")
    }

    fn updated(&self, at: usize, metric: &str) -> bool {
        self.accumulators
            .is_some_and(|accumulators| self.plan.updated(at, accumulators, metric))
    }
}

/// The first one that runs; not every operator has metrics, so one alone of its kind will do.
fn choose(kind: BoundaryKind, running: &[usize], all: &[usize]) -> Taken {
    match (running, all) {
        (_, [only]) => Some((*only, Rule::Boundary(kind))),
        ([only], _) => Some((*only, Rule::Metrics(kind))),
        ([first, ..], _) => Some((*first, Rule::OneOfSeveral(kind))),
        ([], _) => None,
    }
}

#[cfg(test)]
mod tests {
    use unfuse_format::{
        FrameKind, PlanRow, ProfileDir, SampleKind, SampleRow, SegmentWriter, StackRow, StageRow,
        Table,
    };

    use super::*;
    use crate::profile::Selection;
    use crate::totals::{By, Totals};

    fn write<T: Table>(dir: &ProfileDir, rows: Vec<T>) {
        let mut segment = SegmentWriter::new(dir, "test-1");
        rows.into_iter().for_each(|row| segment.push(row));
        segment.flush().expect("written");
    }

    /// The operator that a stack of classes is attributed to, in a plan of a write over a projection over a scan.
    fn operator(classes: &[&str]) -> String {
        let home = tempfile::tempdir().expect("a directory");
        let dir = ProfileDir::create(&home.path().join("profile")).expect("a profile");
        let frame = |class: &&str| Frame {
            kind: FrameKind::Java,
            class: (*class).to_owned(),
            ..Frame::default()
        };
        let stack = StackRow::from_frames(classes.iter().map(frame).collect());
        write(
            &dir,
            vec![SampleRow {
                app: "app".to_owned(),
                kind: SampleKind::Cpu,
                stage: Some(3),
                stage_attempt: Some(0),
                task: Some(1),
                stack: stack.stack,
                count: 1,
                weight_ns: 1,
                ..SampleRow::default()
            }],
        );
        write(&dir, vec![stack]);
        let node = |(node, operator): (i32, &str)| PlanRow {
            app: "app".to_owned(),
            execution: 7,
            node,
            parent: (node > 0).then(|| node - 1),
            operator: operator.to_owned(),
            ..PlanRow::default()
        };
        let plan = [(0, "OverwriteByExpression"), (1, "Project"), (2, "Scan")];
        write(&dir, plan.map(node).to_vec());
        write(
            &dir,
            vec![StageRow {
                app: "app".to_owned(),
                stage: 3,
                execution: Some(7),
                ..StageRow::default()
            }],
        );
        let profile = Profile::open(dir.path()).expect("a profile");
        let rows = Totals::of(&profile, Selection::default(), By::Operator).rows;
        rows[0].operator.clone()
    }

    #[test]
    fn an_interpreted_projection_is_of_the_operator_that_maps_rows_with_it() {
        let write = "org.apache.spark.sql.execution.datasources.v2.WritingSparkTask";
        let projection = "org.apache.spark.sql.catalyst.expressions.InterpretedUnsafeProjection";
        let function = "org.apache.spark.sql.catalyst.expressions.ScalaUDF";
        let mapped = [
            write,
            "scala.collection.Iterator$$anon$9",
            projection,
            function,
        ];
        assert_eq!(operator(&mapped), "Project");
        // The writer has projections of its own.
        assert_eq!(
            operator(&[write, projection, function]),
            "OverwriteByExpression"
        );
    }
}
