//! Records of one task after the other, from segments that need not fit into memory.

use std::collections::HashMap;
use std::path::PathBuf;

use unfuse_format::{FormatError, ProfileDir, RecordInRow, RecordOutRow, Table};

/// Rows of a table that belong to one task attempt.
pub(crate) trait OfTap: Table {
    fn tap(&self) -> i64;
}

impl OfTap for RecordInRow {
    fn tap(&self) -> i64 {
        self.tap
    }
}

impl OfTap for RecordOutRow {
    fn tap(&self) -> i64 {
        self.tap
    }
}

/// Goes through a table, a task attempt at a time; segments that are damaged are left out and counted.
pub(crate) struct Groups<'a, T> {
    dir: &'a ProfileDir,
    /// Of task attempts, as in [`Taps`](crate::Taps).
    order: &'a HashMap<i64, usize>,
    segments: std::vec::IntoIter<PathBuf>,
    rows: std::iter::Peekable<std::vec::IntoIter<T>>,
    pub(crate) damaged: usize,
}

impl<'a, T: OfTap> Groups<'a, T> {
    pub(crate) fn of(
        dir: &'a ProfileDir,
        order: &'a HashMap<i64, usize>,
    ) -> Result<Self, FormatError> {
        Ok(Self {
            dir,
            order,
            segments: dir.segments::<T>()?.into_iter(),
            rows: Vec::new().into_iter().peekable(),
            damaged: 0,
        })
    }

    fn peek(&mut self) -> Option<i64> {
        loop {
            if let Some(row) = self.rows.peek() {
                return Some(row.tap());
            }
            let path = self.segments.next()?;
            match self.dir.read_segment::<T>(&path) {
                Ok(rows) => self.rows = rows.into_iter().peekable(),
                Err(_) => self.damaged += 1,
            }
        }
    }

    /// The rows of a task attempt, if they come now; what comes before it is passed over.
    pub(crate) fn take(&mut self, tap: i64) -> Vec<T> {
        let Some(wanted) = self.order.get(&tap) else {
            return Vec::new();
        };
        let mut taken = Vec::new();
        while let Some(next) = self.peek() {
            match self.order.get(&next) {
                Some(at) if at > wanted => break,
                Some(at) if at == wanted => taken.extend(self.rows.next()),
                _ => drop(self.rows.next()),
            }
        }
        taken
    }
}
