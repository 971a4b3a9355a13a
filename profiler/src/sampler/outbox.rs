//! Sums of samples for the writer.

use std::os::fd::OwnedFd;

use super::raw::RawSample;
use super::waits::WaitGroup;
use ahash::HashMap;
use unfuse_format::StackId;

use crate::recent::RecentSet;
use crate::wire::{
    Tally, TaskAttempt, ToWriter, WINDOW_NS, WireFrame, WirePiece, WireSamples, WireStack,
    WireStacks, send_blocking,
};

/// Rows in one message; keeps a message far below the packet limit.
const ROWS_A_MESSAGE: usize = 1000;
/// Larger sums are sent early.
const LARGE: usize = 4 * ROWS_A_MESSAGE;
/// Approximate size of the stacks in one message, bytes; keeps it below the packet limit, too.
const STACK_BYTES: usize = 64 << 10;
/// Number of stack ids remembered as sent; a forgotten one is sent again, not lost.
const REMEMBERED: usize = 8_192;

/// Task, stack, and whether the thread waits.
type Key = (Option<TaskAttempt>, StackId, bool);

/// Data of one sampler that is not sent yet.
pub(super) struct Outbox<'a> {
    tid: u32,
    thread: String,
    to: &'a OwnedFd,
    sums: HashMap<Key, WireSamples>,
    sent_stacks: RecentSet<StackId>,
    stacks: WireStacks,
    /// Indices of pieces in `stacks` by their hashes, and the size of all.
    places: HashMap<u64, u32>,
    stack_bytes: usize,
    generation: u64,
    tally: Tally,
    open: bool,
}

impl<'a> Outbox<'a> {
    pub(super) fn new(tid: u32, thread: String, to: &'a OwnedFd, generation: u64) -> Self {
        Self {
            tid,
            thread,
            to,
            sums: HashMap::default(),
            sent_stacks: RecentSet::new(REMEMBERED),
            stacks: WireStacks::default(),
            places: HashMap::default(),
            stack_bytes: 0,
            generation,
            tally: Tally::default(),
            open: true,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sums.is_empty()
    }

    pub(super) fn is_large(&self) -> bool {
        self.sums.len() >= LARGE
    }

    /// Enters the writer's generation. In a new one stacks must be sent again; the current data is sent first, because
    /// its stacks are in the last generation. Returns whether it is new.
    pub(super) fn enter(&mut self, generation: u64) -> bool {
        let is_new = generation != self.generation;
        if is_new {
            self.send();
            self.sent_stacks.clear();
            self.generation = generation;
        }
        is_new
    }

    /// Queues a stack to be sent before its samples, if it was not sent recently. Its pieces (innermost first) come
    /// with their hashes.
    pub(super) fn stack<'p>(
        &mut self,
        id: StackId,
        pieces: impl Iterator<Item = (u64, &'p WirePiece)>,
    ) {
        if !self.sent_stacks.insert(id) {
            return;
        }
        let pieces = pieces
            .map(|(hash, piece)| {
                *self.places.entry(hash).or_insert_with(|| {
                    self.stacks.pieces.push(WirePiece::clone(piece));
                    self.stack_bytes += piece.iter().map(bytes).sum::<usize>();
                    (self.stacks.pieces.len() - 1) as u32
                })
            })
            .collect::<Vec<u32>>();
        self.stack_bytes += 16 + 3 * pieces.len();
        self.stacks.stacks.push(WireStack { id, pieces });
        if self.stack_bytes >= STACK_BYTES {
            self.send_stacks();
        }
    }

    fn send_stacks(&mut self) {
        let stacks = self.take_stacks();
        if !stacks.stacks.is_empty() {
            self.post(&ToWriter::Stacks(stacks));
        }
    }

    fn take_stacks(&mut self) -> WireStacks {
        self.places.clear();
        self.stack_bytes = 0;
        std::mem::take(&mut self.stacks)
    }

    /// Counts one sample with its CPU time.
    pub(super) fn count(
        &mut self,
        task: Option<TaskAttempt>,
        stack: StackId,
        sample: &RawSample,
        weight_ns: u64,
    ) {
        self.tally.samples += sample.count;
        self.tally.broken_chains += u64::from(sample.broken);
        let times = (sample.time, sample.time);
        self.add((task, stack, false), times, sample.count, weight_ns);
    }

    /// Counts waits between two times, with their time.
    pub(super) fn count_waits(
        &mut self,
        task: Option<TaskAttempt>,
        stack: StackId,
        times: (u64, u64),
        waits: u64,
        weight_ns: u64,
    ) {
        self.add((task, stack, true), times, waits, weight_ns);
    }

    /// Counts waits by the quality of their stacks.
    pub(super) fn tally_waits<K>(&mut self, waits: &WaitGroup<'_, K>) {
        let ns = waits.sum.waited_ns.saturating_add(waits.sum.queued_ns);
        self.tally.waiting_ns += ns;
        match waits.stack {
            None => self.tally.stackless_ns += ns,
            Some(_) if waits.guessed => self.tally.guessed_ns += ns,
            Some(stack) => self.tally.broken_chains += u64::from(stack.broken),
        }
    }

    fn add(&mut self, key: Key, (first, last): (u64, u64), count: u64, weight_ns: u64) {
        let (task, stack, waiting) = key;
        let sum = self.sums.entry(key).or_insert(WireSamples {
            task,
            stack,
            waiting,
            first,
            last,
            count: 0,
            weight_ns: 0,
        });
        sum.last = sum.last.max(last);
        sum.count += count;
        sum.weight_ns = sum.weight_ns.saturating_add(weight_ns);
    }

    /// Counts samples of an attached JVM by whether their frames and callers are known.
    pub(super) fn tally_window(&mut self, time: u64, count: u64, is_complete: bool) {
        let window = self.tally.windows.entry(time / WINDOW_NS).or_default();
        window.0 += count;
        window.1 += if is_complete { 0 } else { count };
    }

    /// Adds lost samples and marks.
    pub(super) fn tally(&mut self, lost_samples: u64, lost_marks: u64) {
        self.tally.lost_samples += lost_samples;
        self.tally.lost_marks += lost_marks;
    }

    /// Sends everything; false if the writer is gone.
    pub(super) fn send(&mut self) -> bool {
        // Few stacks go with their samples.
        if self.stack_bytes > STACK_BYTES / 2 {
            self.send_stacks();
        }
        let mut sums = self.sums.drain().map(|(_, sum)| sum).collect::<Vec<_>>();
        let mut tally = std::mem::take(&mut self.tally);
        while !sums.is_empty() || !self.stacks.stacks.is_empty() || tally != Tally::default() {
            let rows = sums.split_off(sums.len().saturating_sub(ROWS_A_MESSAGE));
            let message = ToWriter::Samples {
                tid: self.tid,
                thread: self.thread.clone(),
                generation: self.generation,
                stacks: self.take_stacks(),
                rows,
                tally: std::mem::take(&mut tally),
            };
            self.post(&message);
        }
        self.open
    }

    fn post(&mut self, message: &ToWriter) {
        self.open &= send_blocking(self.to, message).is_ok();
    }
}

/// Approximate size of a frame in a message, bytes.
fn bytes(wire: &WireFrame) -> usize {
    let frame = &wire.frame;
    let texts = [&frame.class, &frame.method, &frame.signature, &frame.file];
    24 + texts.iter().map(|text| text.len()).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use unfuse_format::Frame;

    use super::*;
    use crate::wire::{Incoming, SentPiece, packet_pair, receive};

    fn piece(name: &str) -> WirePiece {
        let frame = Frame {
            class: "a.b.C".repeat(20),
            method: name.to_owned(),
            ..Frame::default()
        };
        WirePiece::from([WireFrame { frame, address: 0 }])
    }

    /// The ids of stacks, whose names must be those of the test.
    fn ids(WireStacks { pieces, stacks }: &WireStacks<SentPiece<'_>>) -> Vec<StackId> {
        let checked = stacks.iter().map(|WireStack { id, pieces: places }| {
            let names = places.iter().map(|index| {
                let sent = pieces[*index as usize][0].clone();
                sent.into_frame().unwrap().frame.method
            });
            let names: Vec<String> = names.collect();
            assert_eq!(names, [&*format!("leaf{}", id.0), "caller", "root"]);
            *id
        });
        checked.collect()
    }

    #[test]
    fn stacks_come_before_their_samples_and_share_what_calls_them() {
        const STACKS: i64 = 3000;
        let (to, from) = packet_pair().unwrap();
        let sender = std::thread::spawn(move || {
            let callers = [piece("caller"), piece("root")];
            let mut outbox = Outbox::new(1, "t".to_owned(), &to, 0);
            for id in 0..STACKS {
                let leaf = piece(&format!("leaf{id}"));
                let pieces = [&leaf, &callers[0], &callers[1]];
                let hashes = [1000 + id.cast_unsigned(), 1, 2];
                outbox.stack(StackId(id), hashes.into_iter().zip(pieces));
                outbox.count_waits(None, StackId(id), (1, 2), 1, 1);
            }
            assert!(outbox.send());
        });
        let (mut buffer, mut frames, mut known, mut counted) = (Vec::new(), 0, HashSet::new(), 0);
        loop {
            match receive::<ToWriter<SentPiece<'_>>>(&from, &mut buffer) {
                Incoming::Message(ToWriter::Stacks(sent)) => {
                    frames += sent.pieces.len();
                    known.extend(ids(&sent));
                }
                Incoming::Message(ToWriter::Samples { stacks, rows, .. }) => {
                    frames += stacks.pieces.len();
                    known.extend(ids(&stacks));
                    assert!(rows.iter().all(|row| known.contains(&row.stack)));
                    counted += rows.len();
                }
                Incoming::Message(ToWriter::Python(_)) => panic!("it is no sampler of Python"),
                Incoming::Empty => {}
                Incoming::Closed => break,
            }
        }
        sender.join().unwrap();
        assert_eq!((known.len(), counted), (STACKS as usize, STACKS as usize));
        assert!(frames < STACKS as usize + 40, "{frames} frames were sent");
    }
}
