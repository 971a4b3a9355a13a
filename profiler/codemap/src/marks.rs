//! Task marks: a ring that many threads write and samplers read at their leisure.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use crate::arena::header::{MARK_ENTRIES, MARK_WORDS, MARKS};

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
}

/// How far a reader has read.
#[derive(Debug, Clone, Copy)]
pub struct MarkCursor {
    next: u64,
    /// Marks overwritten before this reader came to them.
    pub lost: u64,
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
        let at = ticket as usize % MARK_ENTRIES * MARK_WORDS;
        &self.entries[at..at + MARK_WORDS]
    }

    /// Adds a mark; the oldest is overwritten when the ring is full. Never waits.
    pub fn push(&self, mark: &Mark) {
        let ticket = self.ticket.fetch_add(1, Ordering::AcqRel);
        let entry = self.entry(ticket);
        entry[0].store(0, Ordering::Relaxed);
        // A reader that sees any word below also sees that the stamp is gone.
        fence(Ordering::Release);
        let kind = u64::from(mark.kind == MarkKind::End);
        entry[1].store(mark.time, Ordering::Relaxed);
        entry[2].store(u64::from(mark.tid) | kind << 32, Ordering::Relaxed);
        entry[3].store(
            u64::from(mark.stage as u32) | u64::from(mark.stage_attempt as u32) << 32,
            Ordering::Relaxed,
        );
        entry[4].store(mark.task as u64, Ordering::Relaxed);
        entry[0].store(ticket + 1, Ordering::Release);
    }

    /// A cursor at the oldest mark that is still there.
    pub fn reader(&self) -> MarkCursor {
        let next = self
            .ticket
            .load(Ordering::Acquire)
            .saturating_sub(MARK_ENTRIES as u64);
        MarkCursor { next, lost: 0 }
    }

    /// The next mark. `None` when there is none yet, or when the next is just being written.
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
            if stamp != cursor.next + 1 {
                if stamp < cursor.next + 1 {
                    return None;
                }
                continue;
            }
            let words: [u64; 5] = std::array::from_fn(|word| entry[word].load(Ordering::Relaxed));
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
            });
        }
    }
}
