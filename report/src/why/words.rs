//! What the parts are called.

use std::collections::BTreeMap;

use unfuse_postprocess::OperatorKind;

use super::CauseKind;
use super::parts::{Cause, OperatorFacts};
use crate::numbered::Key;
use crate::wait::WaitFacts;
use crate::words::name;

/// `BroadcastHashJoin became SortMergeJoin, 2 Exchange, 2 Sort`.
pub(crate) fn plan_text(gone: &BTreeMap<String, usize>, come: &BTreeMap<String, usize>) -> String {
    let list = |names: &BTreeMap<String, usize>, other: &BTreeMap<String, usize>| -> String {
        let more = names.iter().filter_map(|(operator, count)| {
            let more = count.saturating_sub(other.get(operator).copied().unwrap_or(0));
            (more > 0).then(|| match more {
                1 => name(operator),
                more => format!("{more} {}", name(operator)),
            })
        });
        more.collect::<Vec<_>>().join(", ")
    };
    let (gone_only, come_only) = (list(gone, come), list(come, gone));
    match (gone_only.is_empty(), come_only.is_empty()) {
        (true, true) => {
            let names: Vec<String> = come.keys().map(|operator| name(operator)).collect();
            format!("another plan: {} with other expressions", names.join(", "))
        }
        (true, false) => format!("another plan: {come_only} came"),
        (false, true) => format!("another plan: {gone_only} went"),
        (false, false) => format!("another plan: {gone_only} became {come_only}"),
    }
}

/// What a cause is about, and how it is called.
pub(super) fn describe<'a>(
    cause: &Cause,
    facts: impl Fn(&Key) -> Option<&'a OperatorFacts>,
) -> (CauseKind, String) {
    match cause {
        Cause::Planning => (
            CauseKind::Driver,
            "planning, before the first stage".to_owned(),
        ),
        Cause::BetweenStages => (CauseKind::Driver, "the driver, between stages".to_owned()),
        Cause::AfterStages => (
            CauseKind::Driver,
            "the driver, after the last stage".to_owned(),
        ),
        Cause::Operator(key) => {
            let facts = facts(key);
            let kind = match facts.map(|facts| facts.kind) {
                Some(OperatorKind::Python) => CauseKind::Python,
                _ => CauseKind::Operator,
            };
            let text = facts.map_or_else(
                || key.0.lines().next().unwrap_or_default().to_owned(),
                |facts| format!("{} ({})", facts.name, facts.id),
            );
            (kind, format!("operator {}", name(&text)))
        }
        Cause::Heading(heading) => (CauseKind::Task, (*heading).to_owned()),
        Cause::StageCpu(operators) if operators.is_empty() => {
            (CauseKind::Task, "CPU time of tasks".to_owned())
        }
        Cause::StageCpu(operators) => (CauseKind::Task, format!("CPU time of {operators}")),
        Cause::Wait(reason) => {
            let facts = WaitFacts::from_reason(*reason);
            (facts.cause, format!("waiting for {}", facts.words))
        }
        Cause::Spill => (
            CauseKind::Spill,
            "spilling to disk: memory was too small".to_owned(),
        ),
        Cause::TakenSlots => (
            CauseKind::Contention,
            "waiting for slots that other queries had".to_owned(),
        ),
        Cause::FewTasks => (
            CauseKind::FewTasks,
            "idle slots: stages with fewer tasks than slots".to_owned(),
        ),
        Cause::LastTasks => (
            CauseKind::Skew,
            "idle slots: waiting for the last tasks of a stage".to_owned(),
        ),
        Cause::Scheduling => (
            CauseKind::Scheduling,
            "scheduling: launching tasks and reporting their ends".to_owned(),
        ),
        Cause::FailedTasks => (CauseKind::FailedTasks, "tasks that failed".to_owned()),
        Cause::UnknownWait => (
            CauseKind::Unknown,
            "tasks that waited, without a metric that says for what".to_owned(),
        ),
        Cause::Unknown => (
            CauseKind::Unknown,
            "tasks that ran, with nothing recorded of what they did".to_owned(),
        ),
    }
}
