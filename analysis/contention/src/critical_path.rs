//! The stages that determine the duration of a query (section 4.1, challenge 1).

use std::collections::{BTreeMap, BTreeSet};

use crate::{InputError, QueryId, StageId, Workload};

/// The chain of stages, each reading from the previous one, with the largest sum of run times; first to last.
///
/// Attempts of a stage count together, since the next stage waits for all of them; all are returned. Of chains with
/// equal sums, the one whose last stages have smaller numbers is taken. The time is linear in stages and edges.
pub fn critical_path(workload: &Workload, query: QueryId) -> Vec<StageId> {
    let Ok(order) = topological(workload, query) else {
        return Vec::new();
    };
    let dag = dag(workload, query);
    let mut best: BTreeMap<u32, (i128, Option<u32>)> = BTreeMap::new();
    for stage in order {
        let (run, parents) = &dag[&stage];
        let before = parents
            .iter()
            .map(|parent| (best[parent].0, *parent))
            .fold(None, longer);
        let sum = run + before.map_or(0, |(sum, _)| sum);
        best.insert(stage, (sum, before.map(|(_, parent)| parent)));
    }
    let mut next = best
        .iter()
        .map(|(stage, (sum, _))| (*sum, *stage))
        .fold(None, longer)
        .map(|(_, stage)| stage);
    let mut path = Vec::new();
    while let Some(stage) = next {
        path.push(stage);
        next = best[&stage].1;
    }
    path.reverse();
    path.into_iter()
        .flat_map(|number| {
            workload
                .stages_of(query)
                .filter(move |stage| stage.id.stage == number)
        })
        .map(|stage| stage.id)
        .collect()
}

pub(crate) fn check(workload: &Workload, query: QueryId) -> Result<(), InputError> {
    topological(workload, query).map(|_| ())
}

fn longer(best: Option<(i128, u32)>, next: (i128, u32)) -> Option<(i128, u32)> {
    match best {
        Some(best) if best.0 >= next.0 => Some(best),
        _ => Some(next),
    }
}

/// By stage number: run time (ns, of all attempts), and parents that ran. Sums of 64-bit times do not overflow 128
/// bits.
fn dag(workload: &Workload, query: QueryId) -> BTreeMap<u32, (i128, BTreeSet<u32>)> {
    let mut dag: BTreeMap<u32, (i128, BTreeSet<u32>)> = BTreeMap::new();
    for stage in workload.stages_of(query) {
        let entry = dag.entry(stage.id.stage).or_default();
        entry.0 += i128::from(stage.span.end) - i128::from(stage.span.start);
        entry.1.extend(&stage.parents);
    }
    let ran: BTreeSet<u32> = dag.keys().copied().collect();
    for (_, parents) in dag.values_mut() {
        parents.retain(|parent| ran.contains(parent));
    }
    dag
}

/// Stages, parents first.
fn topological(workload: &Workload, query: QueryId) -> Result<Vec<u32>, InputError> {
    let dag = dag(workload, query);
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let mut waiting: BTreeMap<u32, usize> = BTreeMap::new();
    for (stage, (_, parents)) in &dag {
        waiting.insert(*stage, parents.len());
        for parent in parents {
            children.entry(*parent).or_default().push(*stage);
        }
    }
    let mut order: Vec<u32> = waiting
        .iter()
        .filter(|(_, left)| **left == 0)
        .map(|(stage, _)| *stage)
        .collect();
    let mut next = 0;
    while next < order.len() {
        for child in children.get(&order[next]).into_iter().flatten() {
            let left = waiting.get_mut(child).expect("every child is a stage");
            *left -= 1;
            if *left == 0 {
                order.push(*child);
            }
        }
        next += 1;
    }
    if order.len() == dag.len() {
        Ok(order)
    } else {
        Err(InputError::Cycle(query))
    }
}
