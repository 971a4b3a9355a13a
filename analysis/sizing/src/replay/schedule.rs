//! List scheduling: tasks of stages whose parents have ended get free slots in order.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// A stage to schedule.
pub(super) struct Work<'a> {
    /// Indices of stages that must end before.
    pub after: &'a [usize],
    /// Durations of its tasks, s, in launch order.
    pub tasks: Vec<f64>,
}

/// Seconds, never NaN here, with an order.
#[derive(PartialEq)]
struct Seconds(f64);

impl Eq for Seconds {}

impl PartialOrd for Seconds {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Seconds {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// The time until all tasks of all stages have ended on `slots` slots (at least one), s. A stage is the stages that
/// must end before it, and its tasks' durations in launch order, s. Stages in a cycle never begin, and do not count.
pub fn makespan(stages: &[(Vec<usize>, Vec<f64>)], slots: usize) -> f64 {
    let works: Vec<Work> = stages
        .iter()
        .map(|(after, tasks)| Work {
            after,
            tasks: tasks.clone(),
        })
        .collect();
    list(&works, slots)
}

pub(super) fn list(works: &[Work], slots: usize) -> f64 {
    let mut waits_for: Vec<usize> = Vec::with_capacity(works.len());
    let mut then: Vec<Vec<usize>> = vec![Vec::new(); works.len()];
    for (stage, work) in works.iter().enumerate() {
        let before: BTreeSet<usize> = work
            .after
            .iter()
            .copied()
            .filter(|index| *index < works.len())
            .collect();
        waits_for.push(before.len());
        for index in before {
            then[index].push(stage);
        }
    }
    let mut running: BinaryHeap<Reverse<(Seconds, usize)>> = BinaryHeap::new();
    let mut left: Vec<usize> = works.iter().map(|work| work.tasks.len()).collect();
    let mut launched = vec![0; works.len()];
    // Spark offers slots to the oldest stage first.
    let mut ready: BTreeSet<usize> = BTreeSet::new();
    let mut ended: Vec<usize> = Vec::new();
    let mut now = 0.0;
    for (stage, parents) in waits_for.iter().enumerate() {
        if *parents == 0 {
            begin(stage, works, &mut ready, &mut ended);
        }
    }
    loop {
        while let Some(stage) = ended.pop() {
            for &child in &then[stage] {
                waits_for[child] -= 1;
                if waits_for[child] == 0 {
                    begin(child, works, &mut ready, &mut ended);
                }
            }
        }
        while running.len() < slots.max(1)
            && let Some(&stage) = ready.first()
        {
            let seconds = works[stage].tasks[launched[stage]];
            launched[stage] += 1;
            running.push(Reverse((Seconds(now + seconds), stage)));
            if launched[stage] == works[stage].tasks.len() {
                ready.remove(&stage);
            }
        }
        let Some(Reverse((Seconds(at), stage))) = running.pop() else {
            return now;
        };
        now = at;
        left[stage] -= 1;
        if left[stage] == 0 {
            ended.push(stage);
        }
    }
}

/// Begins a stage whose parents have ended; one without tasks ends at once.
fn begin(stage: usize, works: &[Work], ready: &mut BTreeSet<usize>, ended: &mut Vec<usize>) {
    if works[stage].tasks.is_empty() {
        ended.push(stage);
    } else {
        ready.insert(stage);
    }
}
