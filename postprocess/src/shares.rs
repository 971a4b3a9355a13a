//! The part of each stage's CPU time that each operator took.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::attribute::{Attributor, Owner};
use crate::profile::{Group, Profile};

/// The part of a stage's CPU time that an operator took.
#[derive(Debug, Clone, PartialEq)]
pub struct OperatorShare {
    /// Spark application id.
    pub app: Arc<str>,
    /// Stage id.
    pub stage: i32,
    /// Operator name, or heading in brackets.
    pub operator: Arc<str>,
    /// 0 to 1; those of a stage sum to 1.
    pub share: f64,
}

/// What an owner used in a stage.
#[derive(Default)]
struct Used {
    /// Samples, or time where samples stand for different times.
    value: u64,
    ns: u64,
}

/// What the owners in a stage used, by query.
type OfStage = BTreeMap<(Option<i64>, Owner), Used>;

/// The shares of operators in the stages that `is_wanted` takes by application and stage id.
pub fn operator_shares(
    profile: &Profile,
    is_wanted: impl Fn(&str, i32) -> bool,
) -> Vec<OperatorShare> {
    let by_time = profile.is_by_time();
    let mut attributor = Attributor::new(profile);
    let mut stages: BTreeMap<(Arc<str>, i32), OfStage> = BTreeMap::new();
    // Groups of a stage follow each other.
    for groups in profile.groups.chunk_by(|(a, _), (b, _)| is_same(a, b)) {
        let Some((first, _)) = groups.first() else {
            continue;
        };
        let Some(stage) = first.stage.filter(|stage| is_wanted(&first.app, *stage)) else {
            continue;
        };
        let of_stage = stages.entry((Arc::clone(&first.app), stage)).or_default();
        for (group, weight) in groups {
            let owner = attributor.attribute(group).owner;
            let used = of_stage.entry((group.query, owner)).or_default();
            let value = if by_time {
                weight.ns / 1000
            } else {
                weight.samples
            };
            used.value = used.value.saturating_add(value);
            used.ns = used.ns.saturating_add(weight.ns);
        }
    }
    let shares = stages.into_iter();
    let shares = shares.flat_map(|((app, stage), used)| shares_of(profile, &app, stage, used));
    shares.collect()
}

fn is_same(a: &Group, b: &Group) -> bool {
    a.stage == b.stage && a.app == b.app
}

fn shares_of(profile: &Profile, app: &Arc<str>, stage: i32, used: OfStage) -> Vec<OperatorShare> {
    let mut owners: Vec<((Option<i64>, Owner), Used)> = used.into_iter().collect();
    owners.sort_by_key(|(_, used)| Reverse(used.value));
    let mut whole = 0.0;
    let mut parts: BTreeMap<String, f64> = BTreeMap::new();
    for ((_, owner), used) in owners {
        let seconds = used.ns as f64 / 1e9;
        whole += seconds;
        let operator = match &owner {
            Owner::Node(execution, at) => profile.plans[execution].nodes[*at].operator.clone(),
            Owner::Heading(heading) => format!("[{heading}]"),
        };
        *parts.entry(operator).or_default() += seconds;
    }
    let parts = parts.into_iter().filter(|(_, seconds)| *seconds > 0.0);
    let share = |(operator, seconds): (String, f64)| OperatorShare {
        app: Arc::clone(app),
        stage,
        operator: operator.into(),
        share: (seconds / whole).min(1.0),
    };
    parts.map(share).collect()
}
