//! Who used a resource in a cell, by source.

use std::collections::BTreeMap;

use crate::{Cell, Options, Source, StageId, TaskUse, Workload};

/// Use of a cell by source.
pub(crate) struct Users {
    /// In order.
    sources: Vec<User>,
    seconds: f64,
}

/// Known processes and unknown users have weight 1.
struct User {
    source: Source,
    units: f64,
    weight: f64,
}

impl Users {
    pub(crate) fn new(workload: &Workload, cell: &Cell, options: &Options) -> Users {
        let mut stages: BTreeMap<StageId, f64> = BTreeMap::new();
        for task in &cell.tasks {
            *stages.entry(task.stage).or_default() += task.units + task.kept;
        }
        let mut sources: Vec<User> = stages
            .into_iter()
            .map(|(stage, units)| User {
                source: Source::Stage(stage),
                units,
                weight: options.weight(workload, stage.query),
            })
            .collect();
        let known = cell.known.iter();
        let others = known.map(|(process, units)| (Source::Known(*process), *units));
        sources.extend(
            others
                .chain([(Source::Unknown, cell.unknown)])
                .map(|(source, units)| User {
                    source,
                    units,
                    weight: 1.0,
                }),
        );
        Users {
            sources,
            seconds: cell.span.seconds(),
        }
    }

    /// Rates (units a second) at which others used the resource, weighted as in [`Cell::blame`], in the order of their sources.
    pub(crate) fn against(
        &self,
        victim: &TaskUse,
        own_tasks: bool,
        rates: &mut Vec<(Source, f64)>,
    ) {
        rates.clear();
        let (mut total, mut weighed) = (0.0, 0.0);
        for user in &self.sources {
            let mut units = user.units;
            if user.source == Source::Stage(victim.stage) {
                units -= victim.units + victim.kept;
                // The remainder of a difference of sums is rounding, not a tiny culprit.
                if units <= user.units * 1e-12 {
                    units = 0.0;
                }
            }
            if user.source == Source::Unknown {
                // Nobody has what was free for the victim itself.
                units += victim.kept;
            }
            let share = units / user.weight;
            total += units;
            weighed += share;
            let own_query =
                matches!(user.source.stage(), Some(stage) if stage.query == victim.stage.query);
            if share > 0.0 && (own_tasks || !own_query) {
                rates.push((user.source, share));
            }
        }
        let scale = total / weighed / self.seconds;
        rates.iter_mut().for_each(|(_, rate)| *rate *= scale);
    }
}
