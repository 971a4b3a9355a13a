//! What a rule found in a query.

use crate::what_if::Remedy;

/// Something that a rule is about.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// What the rule is about, for `{subject}`.
    pub(super) subject: String,
    /// For `{detail}`.
    pub(super) detail: String,
    /// For `{value}`.
    pub(super) value: String,
    /// For `{stage}`.
    pub(super) stage: Option<i32>,
    /// The time that it is about, s of all tasks.
    pub(super) seconds: f64,
    /// What the change does to the recorded run. Of a saving, the shares come from the rule.
    pub(super) remedy: Remedy,
}
