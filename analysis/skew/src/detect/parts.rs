//! Divides a task's time into what Spark measured.

use crate::Task;

/// Parts in ms; they add up to the task's time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Parts {
    /// Before and after its run: scheduling, deserialization, the result.
    pub(super) start: f64,
    pub(super) gc: f64,
    pub(super) fetch: f64,
    pub(super) write: f64,
    /// The rest: its own code, reading its source, spilling.
    pub(super) work: f64,
}

impl Parts {
    pub(super) fn from_task(task: &Task) -> Self {
        let total = task.duration_ms();
        let mut left = (task.run_ms as f64).min(total);
        // Each part is measured separately, so their sum may exceed the whole.
        let mut take = |ms: f64| {
            let taken = ms.min(left);
            left -= taken;
            taken
        };
        let start = total - (task.run_ms as f64).min(total);
        let gc = take(task.gc_ms as f64);
        let fetch = take(task.fetch_wait_ms as f64);
        let write = take(task.shuffle_write_ns as f64 / 1e6);
        Self {
            start,
            gc,
            fetch,
            write,
            work: left,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_even_if_they_overlap() {
        let task = Task {
            launched_ms: 100,
            finished_ms: 600,
            run_ms: 400,
            gc_ms: 300,
            fetch_wait_ms: 250,
            shuffle_write_ns: 5_000_000,
            ..Task::default()
        };
        let parts = Parts::from_task(&task);
        assert_eq!((parts.start, parts.gc, parts.fetch), (100.0, 300.0, 100.0));
        assert_eq!((parts.write, parts.work), (0.0, 0.0));
    }
}
