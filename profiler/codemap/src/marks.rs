//! Task marks: a ring that many threads write and samplers read at their leisure.

use crate::arena::header::{MARK_ENTRIES, MARK_WORDS, MARKS};
use crate::sync::{AtomicU64, Ordering, fence, sized};

/// Whether a task begins or ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkKind {
    /// A task begins on the thread.
    Start,
    /// The thread's task is over.
    End,
}

/// A task's start or end on a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// CLOCK_MONOTONIC ns.
    pub time: u64,
    /// Kernel thread id.
    pub tid: u32,
    /// Start or end.
    pub kind: MarkKind,
    /// Stage id.
    pub stage: i32,
    /// Stage attempt number.
    pub stage_attempt: i32,
    /// Task attempt id.
    pub task: i64,
    /// Id of the SQL execution that the task belongs to; -1 outside of one.
    pub execution: i64,
}

/// How far a reader has read.
#[derive(Debug, Clone, Copy)]
pub struct MarkCursor {
    next: u64,
    /// Marks overwritten before this reader came to them, or never finished by their writers.
    pub lost: u64,
}

/// In a stamp: its writer is not done.
const WRITING: u64 = 1;
/// Marks that may come after one that is still being written before it is given up.
const PATIENCE: u64 = sized(1024, 2) as u64;

/// A slot's stamp once the ticket's mark is in it; 0 is that of a slot never used.
fn published(ticket: u64) -> u64 {
    (ticket + 1) << 1
}

/// The ring.
#[derive(Clone, Copy)]
pub struct Marks<'a> {
    ticket: &'a AtomicU64,
    entries: &'a [AtomicU64],
}

impl<'a> Marks<'a> {
    pub(crate) fn new(words: &'a [AtomicU64]) -> Self {
        let entries = &words[MARKS + 8..MARKS + 8 + MARK_ENTRIES * MARK_WORDS];
        Self {
            ticket: &words[MARKS],
            entries,
        }
    }

    fn entry(&self, ticket: u64) -> &'a [AtomicU64] {
        let offset = ticket as usize % MARK_ENTRIES * MARK_WORDS;
        &self.entries[offset..offset + MARK_WORDS]
    }

    /// Adds a mark; the oldest is overwritten when the ring is full. Never waits: should its place be
    /// taken by a writer a whole round behind, the mark is lost, and readers count it.
    pub fn push(&self, mark: &Mark) {
        self.write(self.ticket.fetch_add(1, Ordering::AcqRel), mark);
    }

    /// Takes the ticket's slot, unless another writer is at it or has overtaken this one.
    fn claim(&self, ticket: u64) -> bool {
        let stamp = &self.entry(ticket)[0];
        let claimed = stamp.fetch_update(Ordering::AcqRel, Ordering::Acquire, |before| {
            (before & WRITING == 0 && before < published(ticket))
                .then_some(published(ticket) | WRITING)
        });
        // A reader that sees any word written from here on also sees that the old stamp is gone.
        fence(Ordering::Release);
        claimed.is_ok()
    }

    fn write(&self, ticket: u64, mark: &Mark) {
        if !self.claim(ticket) {
            return;
        }
        let entry = self.entry(ticket);
        let kind = u64::from(mark.kind == MarkKind::End);
        entry[1].store(mark.time, Ordering::Relaxed);
        entry[2].store(u64::from(mark.tid) | kind << 32, Ordering::Relaxed);
        entry[3].store(
            u64::from(mark.stage as u32) | u64::from(mark.stage_attempt as u32) << 32,
            Ordering::Relaxed,
        );
        entry[4].store(mark.task as u64, Ordering::Relaxed);
        entry[5].store(mark.execution as u64, Ordering::Relaxed);
        entry[0].store(published(ticket), Ordering::Release);
    }

    /// A cursor at the oldest mark that is still there.
    pub fn reader(&self) -> MarkCursor {
        let next = self
            .ticket
            .load(Ordering::Acquire)
            .saturating_sub(MARK_ENTRIES as u64);
        MarkCursor { next, lost: 0 }
    }

    /// The next mark. `None` when there is none yet, or when the next is just being written; one whose
    /// writer does not finish is given up when many have come after it.
    pub fn next(&self, cursor: &mut MarkCursor) -> Option<Mark> {
        loop {
            let written = self.ticket.load(Ordering::Acquire);
            let oldest = written.saturating_sub(MARK_ENTRIES as u64);
            if cursor.next < oldest {
                cursor.lost += oldest - cursor.next;
                cursor.next = oldest;
            }
            if cursor.next >= written {
                return None;
            }
            let entry = self.entry(cursor.next);
            let stamp = entry[0].load(Ordering::Acquire);
            if stamp != published(cursor.next) {
                if stamp & !WRITING > published(cursor.next) {
                    // Overwritten since `written` was read.
                    continue;
                }
                if written - cursor.next < PATIENCE {
                    return None;
                }
                cursor.lost += 1;
                cursor.next += 1;
                continue;
            }
            let words: [u64; 6] = std::array::from_fn(|word| entry[word].load(Ordering::Relaxed));
            fence(Ordering::Acquire);
            if entry[0].load(Ordering::Relaxed) != stamp {
                continue;
            }
            cursor.next += 1;
            let kind = if words[2] >> 32 == 0 {
                MarkKind::Start
            } else {
                MarkKind::End
            };
            return Some(Mark {
                time: words[1],
                tid: words[2] as u32,
                kind,
                stage: words[3] as i32,
                stage_attempt: (words[3] >> 32) as i32,
                task: words[4] as i64,
                execution: words[5] as i64,
            });
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::arena::header;

    fn ring() -> Vec<AtomicU64> {
        (0..header::BLOCKS).map(|_| AtomicU64::new(0)).collect()
    }

    fn mark(task: i64) -> Mark {
        Mark {
            time: task as u64,
            tid: 7,
            kind: MarkKind::End,
            stage: 3,
            stage_attempt: 0,
            task,
            execution: task + 1,
        }
    }

    #[test]
    fn a_mark_never_finished_is_given_up() {
        let words = ring();
        let marks = Marks::new(&words);
        let mut cursor = marks.reader();
        // Its writer got no further than this.
        marks.ticket.fetch_add(1, Ordering::AcqRel);
        marks.push(&mark(1));
        assert_eq!(marks.next(&mut cursor), None, "it may still come");
        for task in 2..1 + PATIENCE as i64 {
            marks.push(&mark(task));
        }
        assert_eq!(marks.next(&mut cursor), Some(mark(1)));
        assert_eq!(cursor.lost, 1);
    }

    #[test]
    fn a_writer_overtaken_by_a_whole_round_spoils_nothing() {
        let words = ring();
        let marks = Marks::new(&words);
        let slow = marks.ticket.fetch_add(1, Ordering::AcqRel);
        for task in 1..=MARK_ENTRIES as i64 {
            marks.push(&mark(task));
        }
        marks.write(slow, &mark(0));
        let mut cursor = marks.reader();
        for task in 1..=MARK_ENTRIES as i64 {
            assert_eq!(marks.next(&mut cursor), Some(mark(task)));
        }
    }

    #[test]
    fn a_slot_still_being_written_is_left_to_its_writer() {
        let words = ring();
        let marks = Marks::new(&words);
        let slow = marks.ticket.fetch_add(1, Ordering::AcqRel);
        assert!(marks.claim(slow));
        for task in 1..=MARK_ENTRIES as i64 + PATIENCE as i64 {
            marks.push(&mark(task));
        }
        let mut cursor = marks.reader();
        let got: Vec<i64> =
            std::iter::from_fn(|| marks.next(&mut cursor).map(|mark| mark.task)).collect();
        assert!(!got.contains(&(MARK_ENTRIES as i64)), "it had no slot");
        assert_eq!(got.last(), Some(&(MARK_ENTRIES as i64 + PATIENCE as i64)));
        assert_eq!(cursor.lost, 1);
    }
}
