//! The walk that everything with stacks in it shares: real frames with operators between them.
//!
//! A stack starts with its scope (the stage, or the thread outside tasks), then the heading where no
//! operator owns the samples, then frames from root to leaf. An operator follows the frame at which its
//! code begins. Operators nest the way rows pass them: from the one that produces to the one that
//! consumes. Where the thread waits, what it waits for is the leaf.

use std::borrow::Cow;

use unfuse_format::{Frame, FrameKind as CodeKind, SampleKind};

use crate::attribute::{Attributor, Owner};
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
    /// Native code, stubs of the JVM and what could not be told.
    Native,
    /// The kernel.
    Kernel,
    /// What is waited for.
    Waiting,
}

impl FrameKind {
    /// Its name in formats that have one for it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Scope => "scope",
            Self::Heading => "heading",
            Self::Operator => "operator",
            Self::Java => "java",
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
    /// Source file of a Java frame, library of a native one; empty where there is none.
    pub(crate) file: &'a str,
    /// Source line, 0 where unknown.
    pub(crate) line: u32,
}

/// The frames of a group's samples, with whom the samples belong to.
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
    pub(crate) fn of<'p: 'a>(
        attributor: &mut Attributor<'p>,
        group: &'a Group,
        level: Level,
    ) -> Self {
        let (profile, attribution) = (attributor.profile(), attributor.of(group));
        let nodes = attribution
            .execution
            .as_ref()
            .and_then(|key| profile.plans.get(key))
            .map_or(&[][..], |plan| plan.nodes.as_slice());
        let (node, owner) = match attribution.owner {
            Owner::Node(_, at) => (nodes.get(at), None),
            Owner::Heading(heading) => (None, Some(heading)),
        };
        let mut frames = vec![scope(group)];
        if let Some(heading) = owner.filter(|_| group.stage.is_some()) {
            frames.push(StackFrame::plain(FrameKind::Heading, heading.into()));
        }
        let mut begins = attribution.begins.iter().peekable();
        let code = profile.stacks.get(&group.stack).map_or(&[][..], |f| f);
        for (index, frame) in code.iter().enumerate() {
            if level == Level::Full && frame.kind != CodeKind::Wait {
                frames.push(StackFrame::code(frame));
            }
            while let Some((_, at)) = begins.next_if(|(at, _)| *at <= index) {
                frames.extend(nodes.get(*at).map(StackFrame::operator));
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

fn scope(group: &Group) -> StackFrame<'_> {
    let name = match (group.query, group.stage) {
        (Some(query), Some(stage)) => format!("query {query} stage {stage}").into(),
        (None, Some(stage)) => format!("stage {stage}").into(),
        _ => (*group.thread).into(),
    };
    StackFrame::plain(FrameKind::Scope, name)
}
