//! The rule that attributed a sample, and what it proves.

use std::fmt;

/// The rule that attributed a sample to a plan node or a heading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// The innermost line of generated code is in the operator's region.
    Region,
    /// The innermost line of generated code is in a helper outside all regions, and all calls of the helper are in
    /// regions of the operator.
    CallSite,
    /// Generated code without regions of its own (shared helpers, hash maps, projections), called by the operator.
    Caller,
    /// A class of the operator is on the stack, and no other node of the plan fits at that place.
    Boundary(BoundaryKind),
    /// A class of the operator is on the stack. Several nodes fit, and the stage's tasks updated the metrics of only
    /// this one.
    Metrics(BoundaryKind),
    /// A guess: several nodes fit a class on the stack, and nothing distinguishes them.
    OneOfSeveral(BoundaryKind),
    /// A guess: an operator that is not in the plan is on the stack; the sample is attributed to its caller.
    UnknownOperator,
    /// A guess: the compiler described the lines before and after the code, but not the code itself. The
    /// operator of the line after it has no arithmetic between the two, and this one has the most.
    BetweenLines,
    /// A guess: generated code outside all regions that no operator calls; the sample is attributed to the first
    /// operator of its codegen stage.
    CodegenStage,
    /// No operator's work: a class on the stack identifies the heading.
    Heading,
    /// Apparently no operator's work: the stack has only Spark's task or RDD code.
    CatchAll,
    /// The stack does not identify an owner.
    Unattributed,
    /// The thread did not run a task.
    OutsideTasks,
}

/// The kind of code at which another plan node takes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BoundaryKind {
    /// Reading a source.
    Scan,
    /// Reading the blocks of a shuffle.
    ShuffleRead,
    /// Writing the blocks of a shuffle.
    ShuffleWrite,
    /// Packing rows for the driver.
    Collect,
    /// Classes of any other operator.
    Operator,
}

/// What a rule proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Standing {
    /// The sample is of the plan node to which it is attributed.
    Proved,
    /// The sample is of a plan node, possibly another one.
    Guessed,
    /// No operator's work.
    Heading,
    /// The owner is unknown.
    Unattributed,
    /// Not a task's work.
    OutsideTasks,
}

impl Rule {
    /// What the rule proves.
    pub fn standing(self) -> Standing {
        match self {
            Self::Region | Self::CallSite | Self::Caller | Self::Boundary(_) | Self::Metrics(_) => {
                Standing::Proved
            }
            Self::OneOfSeveral(_)
            | Self::UnknownOperator
            | Self::BetweenLines
            | Self::CodegenStage => Standing::Guessed,
            Self::Heading | Self::CatchAll => Standing::Heading,
            Self::Unattributed => Standing::Unattributed,
            Self::OutsideTasks => Standing::OutsideTasks,
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Region => f.write_str("region"),
            Self::CallSite => f.write_str("call site"),
            Self::Caller => f.write_str("caller"),
            Self::Boundary(kind) => write!(f, "boundary: {}", kind.name()),
            Self::Metrics(kind) => write!(f, "boundary and metrics: {}", kind.name()),
            Self::OneOfSeveral(kind) => write!(f, "guess: one of several, {}", kind.name()),
            Self::UnknownOperator => f.write_str("guess: caller of an unknown operator"),
            Self::BetweenLines => f.write_str("guess: arithmetic between two lines"),
            Self::CodegenStage => f.write_str("guess: first of the codegen stage"),
            Self::Heading => f.write_str("heading"),
            Self::CatchAll => f.write_str("catch-all heading"),
            Self::Unattributed => f.write_str("unattributed"),
            Self::OutsideTasks => f.write_str("outside tasks"),
        }
    }
}

impl BoundaryKind {
    fn name(self) -> &'static str {
        match self {
            Self::Scan => "scan",
            Self::ShuffleRead => "shuffle read",
            Self::ShuffleWrite => "shuffle write",
            Self::Collect => "collect",
            Self::Operator => "operator",
        }
    }
}

impl Standing {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Proved => "proved",
            Self::Guessed => "guessed",
            Self::Heading => "heading",
            Self::Unattributed => "unattributed",
            Self::OutsideTasks => "outside tasks",
        }
    }
}
