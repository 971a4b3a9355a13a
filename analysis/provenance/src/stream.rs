//! Streams the records of one task after the other, from segments that need not fit into memory.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::path::PathBuf;

use unfuse_format::{FormatError, ProfileDir, RecordInRow, RecordOutRow, Table, TaskKey};

/// Rows of a table that belong to one task attempt.
pub(crate) trait TaskRows: Table {
    fn task_key(&self) -> TaskKey;
}

impl TaskRows for RecordInRow {
    fn task_key(&self) -> TaskKey {
        self.task_key
    }
}

impl TaskRows for RecordOutRow {
    fn task_key(&self) -> TaskKey {
        self.task_key
    }
}

/// The segments of a table with the task attempts in each; a segment is only read again for these.
pub(crate) struct Segments<'a, T> {
    dir: &'a ProfileDir,
    /// Order of task attempts, as in [`TaskTraces`](crate::TaskTraces).
    order: &'a HashMap<TaskKey, usize>,
    paths: Vec<PathBuf>,
    /// First and last task attempt of each segment that was read, by their order.
    spans: RefCell<Vec<Option<(usize, usize)>>>,
    damaged: Cell<usize>,
    of: std::marker::PhantomData<T>,
}

impl<'a, T: TaskRows> Segments<'a, T> {
    pub(crate) fn new(
        dir: &'a ProfileDir,
        order: &'a HashMap<TaskKey, usize>,
    ) -> Result<Self, FormatError> {
        let paths = dir.segments::<T>()?;
        Ok(Self {
            dir,
            order,
            spans: RefCell::new(vec![None; paths.len()]),
            paths,
            damaged: Cell::new(0),
            of: std::marker::PhantomData,
        })
    }

    /// Number of segments that could not be read.
    pub(crate) fn damaged(&self) -> usize {
        self.damaged.get()
    }

    /// Iterates over the table, one task attempt at a time.
    pub(crate) fn groups(&self) -> Groups<'_, T> {
        Groups {
            of: self,
            next: 0,
            rows: Vec::new().into_iter().peekable(),
        }
    }

    /// The rows of a segment; none if it is damaged.
    fn read(&self, segment: usize) -> Vec<T> {
        let rows = self.dir.read_segment::<T>(&self.paths[segment]);
        let rows = rows.unwrap_or_else(|_| {
            self.damaged.set(self.damaged.get() + 1);
            Vec::new()
        });
        // A segment without known attempts is skipped from now on.
        let nobody = (usize::MAX, 0);
        let orders = rows
            .iter()
            .filter_map(|row| self.order.get(&row.task_key()));
        let span = orders.fold(nobody, |(first, last), order| {
            (first.min(*order), last.max(*order))
        });
        self.spans.borrow_mut()[segment] = Some(span);
        rows
    }
}

/// A walk through a table; damaged segments are left out and counted.
pub(crate) struct Groups<'a, T> {
    of: &'a Segments<'a, T>,
    next: usize,
    rows: std::iter::Peekable<std::vec::IntoIter<T>>,
}

impl<T: TaskRows> Groups<'_, T> {
    /// The task attempt of the next row, unless all remaining rows are of later ones than the wanted.
    fn peek(&mut self, wanted: usize) -> Option<TaskKey> {
        loop {
            if let Some(row) = self.rows.peek() {
                return Some(row.task_key());
            }
            let span = *self.of.spans.borrow().get(self.next)?;
            match span {
                Some((first, last)) if last < wanted || last < first => self.next += 1,
                Some((first, _)) if first > wanted => return None,
                _ => {
                    self.rows = self.of.read(self.next).into_iter().peekable();
                    self.next += 1;
                }
            }
        }
    }

    /// The rows of a task attempt, if they are next; rows before are skipped.
    pub(crate) fn take(&mut self, key: TaskKey) -> Vec<T> {
        let Some(wanted) = self.of.order.get(&key).copied() else {
            return Vec::new();
        };
        let mut taken = Vec::new();
        while let Some(next) = self.peek(wanted) {
            match self.of.order.get(&next) {
                Some(order) if *order > wanted => break,
                Some(order) if *order == wanted => taken.extend(self.rows.next()),
                _ => drop(self.rows.next()),
            }
        }
        taken
    }
}
