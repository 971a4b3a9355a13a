//! Turns a profile directory into answers: which operator, which line.
//!
//! Data goes through stages, each with its own type. The same directory always gives the same answer.
//!
//! * [`Profile`]: the tables, read and joined: samples by stack, plans, generated sources.
//! * [`RegionMap`]: the operator regions of one generated source, line by line.
//! * [`Attributor`]: for each stack of a stage the plan node that each part of it belongs to.
//! * [`Totals`]: sums by operator, line, method, …; [`folded`]: folded stacks; [`flame_graph`]: SVG;
//!   [`annotated`]: generated source with its hot lines; [`export`]: the formats of other tools.
//! * [`Fingerprint`]: which executions are runs of the same query; [`histories`]: those runs, over profiles.
//!
//! Texts in a profile are untrusted: [`plain`] makes them safe for a terminal.

mod annotate;
mod attribute;
mod boundary;
mod collect;
pub mod export;
mod family;
mod fingerprint;
mod flame;
mod fold;
mod generated;
mod heading;
mod helpers;
mod history;
mod landmarks;
mod line_work;
mod notes;
mod operator;
pub mod plain;
mod plan;
mod profile;
mod python;
mod query_name;
mod regions;
mod rule;
mod rules;
mod shares;
mod stacks;
mod statements;
mod task_interval;
mod totals;
mod uncertainty;
mod wait_reason;

pub use annotate::{AnnotatedLine, AnnotatedSource, annotated};
pub use attribute::{Attribution, Attributor, Owner, execution_of};
pub use collect::{is_exchange, is_subquery};
pub use family::{QueryFamily, families};
pub use fingerprint::{Fingerprint, normalised};
pub use flame::flame_graph;
pub use fold::{FoldedStacks, folded};
pub use generated::generated_hash;
pub use history::{History, Part, Run, histories, median, middle};
pub use line_work::line_work;
pub use notes::{completeness, notes};
pub use operator::{Operator, OperatorKind};
pub use plan::{Plan, PlanNode};
pub use profile::{
    Execution, Group, Period, Profile, Selection, StackMap, Stage, Time, Weight, query_names,
};
pub use python::{is_python, python_file, python_line};
pub use query_name::{LONGEST_NAME, is_origin, query_name, table_name};
pub use regions::{Region, RegionKind, RegionMap};
pub use rule::{BoundaryKind, Rule, Standing};
pub use shares::{OperatorShare, operator_shares};
pub use stacks::{Level, Order};
pub use task_interval::{PYTHON_THREAD, StackMeanings, TaskInterval};
pub use totals::{By, Total, Totals, line_name, method_name};
pub use uncertainty::{Evidence, wilson};
pub use wait_reason::WaitReason;
