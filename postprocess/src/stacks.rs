//! The walk over stacks that all exports share: real frames with operators between them.
//!
//! A stack starts with its scope (the stage, or the thread outside tasks), then the heading if no operator owns the
//! samples. The rest has one of two orders ([`Order`]): frames from root to leaf, with an operator after the frame at
//! which its code begins; or the operators of the plan from its root down to the owner. If the thread waits, the reason
//! is the leaf.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use unfuse_format::{ExecutionId, Frame, FrameKind as CodeKind, SampleKind};

use crate::attribute::{Attribution, Attributor, Owner};
use crate::family::QueryFamily;
use crate::plan::PlanNode;
use crate::profile::Group;
use crate::rule::Rule;
use crate::totals::method_name;

/// How much of a stack is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Stage and operators.
    Operator,
    /// Every frame.
    Full,
}

/// The order of operators in a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// As in the plan: an operator is below the one that takes its rows; the plan's root is first.
    Plan,
    /// As in the code: an operator is below the one whose code calls it. In a fused pipeline this is the way of a row,
    /// from the producing operator to the consuming one.
    Code,
}

/// An order with the data that it needs.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Nesting<'a> {
    /// [`Order::Plan`], with the runs of each query merged.
    Plan(&'a HashMap<ExecutionId, QueryFamily>),
    /// [`Order::Code`].
    Code,
}

/// What a frame stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum FrameKind {
    /// Query and stage, or the thread of work outside tasks.
    Scope,
    /// A heading for work that no operator does.
    Heading,
    /// A plan node.
    Operator,
    /// Java code, also interpreted.
    Java,
    /// Python code.
    Python,
    /// Native code, stubs of the JVM, and code of unknown origin.
    Native,
    /// The kernel.
    Kernel,
    /// The reason of a wait.
    Waiting,
}

impl FrameKind {
    /// Its name in formats that have one.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Scope => "scope",
            Self::Heading => "heading",
            Self::Operator => "operator",
            Self::Java => "java",
            Self::Python => "python",
            Self::Native => "native",
            Self::Kernel => "kernel",
            Self::Waiting => "waiting",
        }
    }
}

/// One frame of an exported stack.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct StackFrame<'a> {
    pub(crate) kind: FrameKind,
    /// Method, function, or the operator as the plan prints it.
    pub(crate) name: Cow<'a, str>,
    /// The operator's short name, such as `HashAggregate`; empty for other frames.
    pub(crate) operator: &'a str,
    /// Source file of a Java frame, library of a native one; empty if unknown.
    pub(crate) file: &'a str,
    /// Source line, 0 where unknown.
    pub(crate) line: u32,
}

/// The frames of a group's samples, and the owner of the samples.
#[derive(Debug)]
pub(crate) struct Stack<'a> {
    /// From root to leaf.
    pub(crate) frames: Vec<StackFrame<'a>>,
    /// The plan node that owns the samples.
    pub(crate) node: Option<&'a PlanNode>,
    /// That node as the plan prints it, or the heading in brackets.
    pub(crate) owner: Cow<'a, str>,
    /// The rule that found the owner.
    pub(crate) rule: Rule,
}

impl<'a> Stack<'a> {
    /// The stack of a group.
    pub(crate) fn new<'p: 'a>(
        attributor: &mut Attributor<'p>,
        group: &'a Group,
        level: Level,
        nesting: Nesting<'a>,
    ) -> Self {
        let (profile, attribution) = (attributor.profile(), attributor.attribute(group));
        let nodes = attribution
            .execution
            .as_ref()
            .and_then(|key| profile.plans.get(key))
            .map_or(&[][..], |plan| plan.nodes.as_slice());
        let (node, owner) = match attribution.owner {
            Owner::Node(_, node) => (nodes.get(node), None),
            Owner::Heading(heading) => (None, Some(heading)),
        };
        let family = match (nesting, &attribution.execution) {
            (Nesting::Plan(families), Some(execution)) => families.get(execution),
            _ => None,
        };
        let mut frames = vec![family.map_or_else(|| scope(group), family_scope)];
        if let Some(heading) = owner.filter(|_| group.stage.is_some()) {
            frames.push(StackFrame::plain(FrameKind::Heading, heading.into()));
        }
        let code = profile.stacks.get(&group.stack).map_or(&[][..], |f| f);
        let operators = |path: Vec<usize>| {
            let nodes = path.into_iter().filter_map(|node| nodes.get(node));
            nodes.map(StackFrame::operator)
        };
        match (&attribution.owner, level) {
            (Owner::Node(execution, node), _) if family.is_some() => {
                let first = family.and_then(|family| profile.plans.get(&family.first));
                // Nodes that were re-planned away are only in the plan of this run.
                let first = first.filter(|plan| *node < plan.planned);
                if let Some(plan) = first.or(profile.plans.get(execution)) {
                    let path = plan.path(*node).into_iter();
                    let nodes = path.filter_map(|node| plan.nodes.get(node));
                    frames.extend(nodes.map(StackFrame::operator));
                }
                if level == Level::Full {
                    let begin = attribution.begins.last().map_or(0, |(index, _)| *index);
                    frames.extend(shown(&code[begin.min(code.len())..]));
                }
            }
            (_, Level::Operator) => frames.extend(operators(attribution.by_code())),
            (_, Level::Full) => {
                let mut begins = attribution.begins.iter().peekable();
                for (index, frame) in code.iter().enumerate() {
                    frames.extend(shown(std::slice::from_ref(frame)));
                    while let Some((_, node)) = begins.next_if(|(begin, _)| *begin <= index) {
                        frames.extend(nodes.get(*node).map(StackFrame::operator));
                    }
                }
            }
        }
        if group.kind == SampleKind::OffCpu {
            let name = format!("[waiting: {}]", profile.waiting(group).name());
            frames.push(StackFrame::plain(FrameKind::Waiting, name.into()));
        }
        Self {
            frames,
            node,
            rule: attribution.rule,
            owner: match owner {
                Some(heading) => format!("[{heading}]").into(),
                None => node.map_or("", |node| &node.detail).into(),
            },
        }
    }
}

impl<'a> StackFrame<'a> {
    fn plain(kind: FrameKind, name: Cow<'a, str>) -> Self {
        Self {
            kind,
            name,
            operator: "",
            file: "",
            line: 0,
        }
    }

    fn operator(node: &'a PlanNode) -> Self {
        Self {
            operator: &node.operator,
            ..Self::plain(FrameKind::Operator, node.detail.as_str().into())
        }
    }

    fn code(frame: &'a Frame) -> Self {
        let kind = match frame.kind {
            CodeKind::Java | CodeKind::Interpreted => FrameKind::Java,
            CodeKind::Python => FrameKind::Python,
            CodeKind::Kernel => FrameKind::Kernel,
            _ => FrameKind::Native,
        };
        Self {
            file: &frame.file,
            line: frame.line,
            ..Self::plain(kind, method_name(frame).into())
        }
    }
}

/// Frames of code, without a wait's reason at the leaf.
fn shown(code: &[Arc<Frame>]) -> impl Iterator<Item = StackFrame<'_>> {
    let code = code.iter().filter(|frame| frame.kind != CodeKind::Wait);
    code.map(|frame| StackFrame::code(frame))
}

/// The query with its number of runs: operators of several stages are on one path.
fn family_scope(family: &QueryFamily) -> StackFrame<'_> {
    let name = match family.runs {
        1 => family.name.as_str().into(),
        runs => format!("{} ({runs} runs)", family.name).into(),
    };
    StackFrame::plain(FrameKind::Scope, name)
}

fn scope(group: &Group) -> StackFrame<'_> {
    let name = match (group.query, group.stage) {
        (Some(query), Some(stage)) => format!("query {query} stage {stage}").into(),
        (None, Some(stage)) => format!("stage {stage}").into(),
        _ => (*group.thread).into(),
    };
    StackFrame::plain(FrameKind::Scope, name)
}

impl Attribution {
    /// The operators on the stack in the order of calls, each once. Generated methods that call each other are in one
    /// pipeline, so an operator that begins again replaces its earlier occurrence and everything after it.
    pub fn by_code(&self) -> Vec<usize> {
        let mut stack: Vec<usize> = Vec::new();
        for chain in self.begins.chunk_by(|(a, _), (b, _)| a == b) {
            let again = chain
                .iter()
                .filter_map(|(_, node)| stack.iter().position(|known| known == node));
            if let Some(position) = again.min() {
                stack.truncate(position);
            }
            stack.extend(chain.iter().map(|(_, node)| *node));
        }
        stack
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_is_on_a_path_once() {
        let by_code = |begins: &[(usize, usize)]| {
            let attribution = Attribution {
                owner: Owner::Heading("unattributed"),
                rule: Rule::Region,
                also: Vec::new(),
                begins: begins.to_vec(),
                execution: None,
            };
            attribution.by_code()
        };
        assert_eq!(
            by_code(&[(1, 8), (2, 5), (2, 4), (3, 5), (3, 4), (3, 2)]),
            [8, 5, 4, 2]
        );
        assert_eq!(by_code(&[(1, 8), (2, 5), (4, 9)]), [8, 5, 9]);
        // The aggregate drives the scan, whose rows it then consumes.
        assert_eq!(by_code(&[(1, 3), (2, 9), (3, 7), (3, 3)]), [7, 3]);
    }
}
