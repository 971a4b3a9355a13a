//! Attributes each part of a stack to a plan node.
//!
//! Frames are walked from the root. Generated code belongs to the operator whose region contains its line. Generated
//! code without a region (split helpers, hash map classes) and library code belong to their caller. At a boundary
//! frame, another plan node takes over.

mod context;

use std::cell::OnceCell;
use std::sync::Arc;

use unfuse_format::{ExecutionId, Frame, FrameKind, INSTRUCTION, StageAttempt};

use crate::boundary::{self, Boundary};
use crate::collect::Collector;
use crate::generated::{generated_hash, is_mapped};
use crate::heading;
use crate::landmarks::Landmarks;
use crate::profile::{Group, Profile};
use crate::rule::{BoundaryKind, Rule, Standing};
use context::{Context, Handover, Operators};

/// The owner of a sample.
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
    /// Other plan nodes that may own the samples: the compiler described their code just before the leaf, or described
    /// none of the code between that and the owner's.
    pub also: Vec<usize>,
    /// Plan nodes that begin at a frame: (frame's index from the root, node), in order.
    pub begins: Vec<(usize, usize)>,
    /// The execution of the nodes.
    pub execution: Option<ExecutionId>,
}

/// Attributes groups. Each stage attempt's context is kept for the next group, so groups of one attempt should follow
/// each other, as they do in a profile.
#[derive(Debug)]
pub struct Attributor<'a> {
    profile: &'a Profile,
    place: Option<Place<'a>>,
}

impl<'a> Attributor<'a> {
    /// An attributor for the groups of a profile.
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
    pub fn attribute(&mut self, group: &Group) -> Attribution {
        let frames = self.profile.stacks.get(&group.stack);
        let frames = frames.map_or(&[][..], Vec::as_slice);
        let place = match self.place.take().filter(|place| place.holds(group)) {
            Some(place) => place,
            None => Place::new(self.profile, group, frames),
        };
        let place = self.place.insert(place);
        let unknown = Landmarks::default();
        let landmarks = self.profile.landmarks.get(&group.stack);
        let landmarks = landmarks.unwrap_or(&unknown);
        let Some((execution, context)) = &mut place.context else {
            let (heading, rule) = heading(group, frames, landmarks, None);
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
            between: None,
            begins: Vec::new(),
        };
        for (index, boundary) in &landmarks.frames {
            walk.step(*index, frames, *boundary);
        }
        if let Some((index, _)) = landmarks.frames.last() {
            walk.settle(*index, frames);
        }
        let also = walk.others();
        let Walk {
            context,
            current,
            begins,
            ..
        } = walk;
        let (owner, rule) = match current {
            Some((node, rule)) => (Owner::Node(execution.clone(), node), rule),
            None => {
                let (heading, rule) = heading(group, frames, landmarks, Some(context));
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

/// What the groups of a stage attempt share.
#[derive(Debug)]
struct Place<'a> {
    app: String,
    query: Option<i64>,
    stage: Option<i32>,
    attempt: Option<i32>,
    context: Option<(ExecutionId, Context<'a>)>,
}

impl<'a> Place<'a> {
    fn new(profile: &'a Profile, group: &Group, frames: &[Arc<Frame>]) -> Self {
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

    /// Where a task's query is unknown, each stack can identify another one.
    fn holds(&self, group: &Group) -> bool {
        let known = group.query.is_some() || group.stage.is_none();
        known
            && (self.query, self.stage, self.attempt) == (group.query, group.stage, group.attempt)
            && *self.app == *group.app
    }
}

/// The execution of a group's stage. If the stage is unknown (the driver's tables are lost), the execution that
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
    landmarks: &Landmarks,
    context: Option<&Context<'_>>,
) -> (&'static str, Rule) {
    let collector = context.and_then(Context::collector);
    let place = heading::Place {
        task: group.stage.is_some(),
        planned: context.is_some(),
        results: collector == Some((Collector::Result, true)),
        thread: &group.thread,
    };
    heading::classify(place, frames, landmarks)
}

struct Walk<'a, 'b> {
    context: &'b mut Context<'a>,
    /// The node that owns the frame, and the rule that found it.
    current: Option<(usize, Rule)>,
    /// The nodes that may own its code, each with the weight of its lines, if the code is between two descriptions.
    between: Option<Vec<(usize, u32)>>,
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
            // Projections, orderings: they belong to their caller.
            Operators::Unknown if !frame.class.contains("GeneratedIterator") => {
                self.call(Rule::Caller);
            }
            Operators::Unknown => self.call(Rule::UnknownOperator),
        }
        if frame.line_before > 0 {
            let lines = (frame.line_before, frame.line);
            let between = self.between.insert(Vec::new());
            self.context.between(hash, lines, between);
        } else if let Some(between) = &mut self.between {
            self.context.method_until(hash, frame.line, between);
        }
    }

    /// Gives code between two descriptions to the node with most arithmetic there, if its owner so far has none. Only if
    /// the innermost method is that of the frame: the code of a method that is inlined into it is described well.
    fn settle(&mut self, index: usize, frames: &[Arc<Frame>]) {
        let is_innermost = frames[index + 1..]
            .iter()
            .all(|frame| frame.kind == FrameKind::Kernel || frame.method == INSTRUCTION);
        let (Some((owner, _)), Some(between)) = (self.current, &self.between) else {
            return;
        };
        let of = |node: usize| {
            let found = between.iter().find(|(known, _)| *known == node);
            found.map_or(0, |(_, weight)| *weight)
        };
        let most = between.iter().max_by_key(|(_, weight)| *weight);
        if let Some((node, weight)) = most
            && is_innermost
            && *weight > 1
            && of(owner) == 0
        {
            self.current = Some((*node, Rule::BetweenLines));
            let stays = |begin: usize, of: usize| begin != index || (of != owner && of != *node);
            self.begins.retain(|(begin, of)| stays(*begin, *of));
            self.begins.push((index, *node));
        }
    }

    /// Other nodes that may own the code.
    fn others(&self) -> Vec<usize> {
        let owner = self.current.map(|(node, _)| node);
        let nodes = self.between.iter().flatten().map(|(node, _)| *node);
        nodes.filter(|node| Some(*node) != owner).collect()
    }

    /// Attributes code without an operator of its own to its caller's operator. A guess about the caller is a guess
    /// about the callee.
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

    fn hand_over(&mut self, index: usize, taken: Handover, kind: BoundaryKind) {
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
                    self.between = None;
                }
            },
            None if kind == BoundaryKind::Operator => self.call(Rule::UnknownOperator),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use unfuse_format::{
        PlanRow, ProfileDir, SampleKind, SampleRow, SegmentWriter, StackRow, StageRow, Table,
    };

    use super::*;
    use crate::profile::Selection;
    use crate::totals::{By, Totals};

    fn write<T: Table>(dir: &ProfileDir, rows: Vec<T>) {
        let mut segment = SegmentWriter::new(dir, "test-1");
        rows.into_iter().for_each(|row| segment.push(row));
        segment.flush().expect("written");
    }

    /// The operator to which a stack of classes is attributed, in a plan of a write over a projection over a scan.
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
        let rows = Totals::new(&profile, Selection::default(), By::Operator).rows;
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
        // The writer also has projections.
        assert_eq!(
            operator(&[write, projection, function]),
            "OverwriteByExpression"
        );
    }
}
