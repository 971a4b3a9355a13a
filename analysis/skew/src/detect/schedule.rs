//! Computes how long a stage takes from the times of its tasks.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::Task;

/// A stage's tasks in the order of launch, on the number of slots that it had.
pub(super) struct Schedule {
    durations: Vec<f64>,
    /// The maximum number of tasks that ran at once.
    pub(super) slots: usize,
    /// The time of the tasks on these slots, ms.
    pub(super) length_ms: f64,
}

impl Schedule {
    pub(super) fn new(tasks: &[&Task]) -> Self {
        let durations: Vec<f64> = tasks.iter().map(|task| task.duration_ms()).collect();
        let slots = slots(tasks);
        Self {
            length_ms: makespan(durations.iter().copied(), slots),
            durations,
            slots,
        }
    }

    /// How much earlier it ends if each task takes `saved_ms` less, ms.
    pub(super) fn sooner(&self, saved_ms: impl Fn(usize) -> f64) -> f64 {
        let shorter = self.durations.iter().enumerate();
        let shorter = shorter.map(|(index, ms)| (ms - saved_ms(index).max(0.0)).max(0.0));
        (self.length_ms - makespan(shorter, self.slots)).max(0.0)
    }
}

/// The maximum number of tasks that ran at once.
fn slots(tasks: &[&Task]) -> usize {
    let mut moments: Vec<(i64, i32)> = tasks
        .iter()
        .flat_map(|task| [(task.launched_ms, 1), (task.ran_until_ms(), -1)])
        .collect();
    // At the same moment, ends come first.
    moments.sort_unstable();
    let (mut now, mut most) = (0, 1);
    for (_, change) in moments {
        now += change;
        most = most.max(now);
    }
    most as usize
}

/// The end of the last task, ms, if each takes the next free slot in this order.
fn makespan(durations: impl Iterator<Item = f64>, slots: usize) -> f64 {
    let mut free: BinaryHeap<Reverse<Moment>> =
        (0..slots.max(1)).map(|_| Reverse(Moment(0.0))).collect();
    let mut last = 0.0;
    for duration in durations {
        let Some(Reverse(Moment(start))) = free.pop() else {
            break;
        };
        let end = start + duration;
        last = f64::max(last, end);
        free.push(Reverse(Moment(end)));
    }
    last
}

struct Moment(f64);

impl Ord for Moment {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Moment {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Moment {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Moment {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_take_turns() {
        assert_eq!(makespan([3.0, 1.0, 1.0, 1.0].into_iter(), 2), 3.0);
        assert_eq!(makespan([1.0, 1.0, 1.0, 9.0].into_iter(), 2), 10.0);
        assert_eq!(makespan([].into_iter(), 0), 0.0);
    }

    #[test]
    fn slots_are_those_that_were_used_at_once() {
        let slots = |spans: &[(i64, i64)]| {
            let task = |(launched_ms, finished_ms): &(i64, i64)| Task {
                launched_ms: *launched_ms,
                finished_ms: *finished_ms,
                run_ms: 95 * (finished_ms - launched_ms) as u64 / 100,
                ..Task::default()
            };
            let tasks: Vec<Task> = spans.iter().map(task).collect();
            super::slots(&tasks.iter().collect::<Vec<_>>())
        };
        assert_eq!(slots(&[(0, 100), (0, 50), (50, 90), (100, 120)]), 2);
        // Handed over some ms too early.
        assert_eq!(
            slots(&[(0, 100), (0, 101), (98, 200), (99, 202), (197, 300)]),
            2
        );
        assert_eq!(slots(&[]), 1);
    }
}
