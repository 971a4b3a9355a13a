//! The tasks that run now, for whoever asks through the socket of `unfuse pause`.

use std::collections::HashMap;

use unfuse_codemap::{CodeMap, MarkCursor, MarkKind};

/// A task that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunningTask {
    /// Kernel thread id.
    pub tid: u32,
    /// Id of its SQL execution; -1 outside of one.
    pub execution: i64,
    /// Task attempt id.
    pub task: i64,
}

impl RunningTask {
    /// Bytes of one task in a message.
    const BYTES: usize = 20;
    /// The most tasks of a message.
    const MOST: usize = 10_000;
    /// The most bytes of a message.
    pub(crate) const MOST_BYTES: u64 = 4 + (Self::MOST * Self::BYTES) as u64;

    /// The message with these tasks: their number, then each.
    pub(crate) fn encode(tasks: &[Self]) -> Vec<u8> {
        let tasks = &tasks[..tasks.len().min(Self::MOST)];
        let mut message = (tasks.len() as u32).to_le_bytes().to_vec();
        for task in tasks {
            message.extend(task.tid.to_le_bytes());
            message.extend(task.execution.to_le_bytes());
            message.extend(task.task.to_le_bytes());
        }
        message
    }

    /// The tasks of a message; `None` if it is none.
    pub(crate) fn decode(message: &[u8]) -> Option<Vec<Self>> {
        let (count, tasks) = message.split_first_chunk()?;
        let whole = tasks.len() == u32::from_le_bytes(*count) as usize * Self::BYTES;
        let decoded = tasks.chunks_exact(Self::BYTES).map(|task| {
            let (tid, rest) = task.split_first_chunk()?;
            let (execution, rest) = rest.split_first_chunk()?;
            Some(Self {
                tid: u32::from_le_bytes(*tid),
                execution: i64::from_le_bytes(*execution),
                task: i64::from_le_bytes(*rest.first_chunk()?),
            })
        });
        decoded.collect::<Option<_>>().filter(|_| whole)
    }
}

/// The tasks that run, from the marks in shared memory.
pub(crate) struct RunningTasks<'a> {
    map: &'a CodeMap,
    cursor: MarkCursor,
    by_thread: HashMap<u32, RunningTask>,
}

impl<'a> RunningTasks<'a> {
    pub(crate) fn new(map: &'a CodeMap) -> Self {
        Self {
            map,
            cursor: map.marks().reader(),
            by_thread: HashMap::new(),
        }
    }

    /// Reads the marks since the last look.
    pub(crate) fn look(&mut self) -> Vec<RunningTask> {
        let mut lost = self.cursor.lost;
        while let Some(mark) = self.map.marks().next(&mut self.cursor) {
            if self.cursor.lost > lost {
                // Ends may be among the lost marks.
                self.by_thread.clear();
                lost = self.cursor.lost;
            }
            match mark.kind {
                MarkKind::Start => drop(self.by_thread.insert(
                    mark.tid,
                    RunningTask {
                        tid: mark.tid,
                        execution: mark.execution,
                        task: mark.task,
                    },
                )),
                MarkKind::End => drop(self.by_thread.remove(&mark.tid)),
            }
        }
        self.by_thread.values().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use unfuse_codemap::Mark;

    use super::*;

    fn mark(tid: u32, kind: MarkKind, execution: i64) -> Mark {
        Mark {
            time: 1,
            tid,
            kind,
            stage: 2,
            stage_attempt: 0,
            task: 5,
            execution,
        }
    }

    #[test]
    fn tasks_run_from_their_start_to_their_end() {
        let map = CodeMap::create(0).unwrap();
        let mut running = RunningTasks::new(&map);
        map.marks().push(&mark(7, MarkKind::Start, 3));
        map.marks().push(&mark(8, MarkKind::Start, -1));
        map.marks().push(&mark(7, MarkKind::End, -1));
        let task = RunningTask {
            tid: 8,
            execution: -1,
            task: 5,
        };
        assert_eq!(running.look(), [task]);
        assert_eq!(running.look(), [task], "it still runs");
        map.marks().push(&mark(8, MarkKind::End, -1));
        assert_eq!(running.look(), []);
    }

    #[test]
    fn a_message_that_is_cut_off_has_no_tasks() {
        let task = RunningTask {
            tid: 8,
            execution: -1,
            task: i64::MAX,
        };
        let message = RunningTask::encode(&[task, task]);
        assert_eq!(RunningTask::decode(&message), Some(vec![task, task]));
        assert_eq!(RunningTask::decode(&message[..message.len() - 1]), None);
        assert_eq!(RunningTask::decode(&message[..24]), None);
        assert_eq!(RunningTask::decode(&[]), None);
        assert_eq!(RunningTask::decode(&RunningTask::encode(&[])), Some(vec![]));
    }
}
