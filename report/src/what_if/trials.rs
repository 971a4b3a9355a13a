//! Changes that are tried without a question, and floors.

use unfuse_sizing::what_if::{Change, Floor, Model, PartKind, Recorded};

use super::{Asked, Bound, TIMES, Trial, sum, text};

/// Changes by themselves, the one that saves most first.
pub(super) fn each(model: &Model<'_>, recorded: &Recorded, asked: &Asked<'_>) -> Vec<Trial> {
    let mut changes = vec![
        Change::NoSkew,
        Change::Slots(recorded.slots.saturating_mul(2)),
    ];
    if recorded.slots > 1 {
        changes.push(Change::Slots(recorded.slots / 2));
    }
    changes.extend(changes_of_waits(recorded));
    changes.extend(asked.tried);
    let mut each: Vec<Trial> = changes
        .into_iter()
        .map(|change| Trial {
            change: change.to_string(),
            what: text::meaning(&change, &asked.operators),
            estimate: model.estimate(&model.scenario(&[change])),
        })
        .collect();
    each.sort_by(|a, b| b.estimate.saves_s.total_cmp(&a.estimate.saves_s));
    each
}

/// The changes that concern the waits of the tasks that are asked about.
pub(super) fn changes_of_waits(recorded: &Recorded) -> impl Iterator<Item = Change> {
    let parts = recorded.parts.iter().enumerate();
    parts.filter_map(|(at, part)| {
        let change = match part.kind {
            PartKind::Gc => Change::NoGc,
            PartKind::Disk => Change::EndlessDisk,
            PartKind::Network => Change::EndlessNetwork,
            PartKind::CpuWait => Change::NoCpuWait,
            PartKind::Python => Change::Python(TIMES),
            PartKind::Operator(_)
            | PartKind::OperatorCpuWait(_)
            | PartKind::ScanWait(_)
            | PartKind::Query(_)
            | PartKind::Jobs
            | PartKind::Cpu
            | PartKind::Other => return None,
        };
        (sum(recorded, at) > 0.0).then_some(change)
    })
}

/// Floors of the time, the highest first.
pub(super) fn floors(model: &Model<'_>) -> Vec<Bound> {
    let bound = |floor| Bound {
        floor,
        what: text::floor(floor),
        seconds: model.seconds(&model.floor(floor)),
    };
    let mut floors: Vec<Bound> = Floor::ALL.into_iter().map(bound).collect();
    floors.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    floors
}
