//! Memory of a worker, read in few system calls: what one sample needed, the next one reads in a single call.

use std::io::IoSliceMut;

use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;

use crate::memory::Memory;

/// Unit of memory that is mapped as a whole, bytes.
const PAGE: u64 = 4096;
/// Ranges that are no further apart than this are read as one, bytes. Another range costs about as much as a page.
const GAP: u64 = 512;
/// Longest range that is read as one, bytes.
const LONGEST_RANGE: u64 = 16 << 10;
/// Most ranges of one system call; the kernel allows 1,024.
const MOST_RANGES: usize = 256;
/// Number of samples for which a piece stays that no sample needed.
const KEPT_UNUSED: u8 = 4;
/// Most pieces that are read ahead.
const MOST_PIECES: usize = 1_024;
/// Memory that stays allocated between two samples, bytes.
const KEPT_BYTES: usize = 256 << 10;
/// Most pages that one sample reads beyond what is read ahead.
const MOST_PAGES: usize = 512;

/// A part of a process's memory at one time.
pub(super) struct Snapshot {
    pid: Pid,
    memory: Memory,
    /// What the last samples needed, by address.
    pieces: Vec<Piece>,
    /// What was read ahead, by address.
    ranges: Vec<Range>,
    /// Pages that were read since.
    pages: Vec<Range>,
    bytes: Vec<u8>,
    remote: Vec<RemoteIoVec>,
}

/// A structure that a sample needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    address: u64,
    length: u64,
    /// Number of samples since the last use.
    unused: u8,
}

impl Piece {
    fn end(self) -> u64 {
        self.address.saturating_add(self.length)
    }
}

/// Memory that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    address: u64,
    length: u64,
    /// Its place in `bytes`.
    at: usize,
}

impl Range {
    /// The place of a part of it in `bytes`.
    fn part(self, address: u64, length: u64) -> Option<usize> {
        let offset = address.checked_sub(self.address)?;
        let is_inside = offset.checked_add(length)? <= self.length;
        is_inside.then(|| self.at + offset as usize)
    }
}

impl Snapshot {
    /// Of a process, with its memory.
    pub(super) fn new(pid: i32, memory: Memory) -> Self {
        Self {
            pid: Pid::from_raw(pid),
            memory,
            pieces: Vec::new(),
            ranges: Vec::new(),
            pages: Vec::new(),
            bytes: Vec::new(),
            remote: Vec::new(),
        }
    }

    /// Forgets what was read, and reads what the last samples needed.
    pub(super) fn renew(&mut self) {
        self.pages.clear();
        self.pieces.retain_mut(|piece| {
            piece.unused += 1;
            piece.unused <= KEPT_UNUSED
        });
        let total = join(&self.pieces, &mut self.ranges);
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES);
        self.bytes.resize(total, 0);
        if self.ranges.is_empty() {
            return;
        }
        self.remote.clear();
        self.remote
            .extend(self.ranges.iter().map(|range| RemoteIoVec {
                base: range.address as usize,
                len: range.length as usize,
            }));
        let mut local = [IoSliceMut::new(&mut self.bytes)];
        let read = process_vm_readv(self.pid, &mut local, &self.remote).unwrap_or(0);
        if read < total {
            // The kernel stops at the first range that is not mapped any more.
            let is_read = |range: &Range| range.at + range.length as usize <= read;
            let done = self
                .ranges
                .iter()
                .take_while(|range| is_read(range))
                .count();
            if let Some(failed) = self.ranges.get(done) {
                let (from, to) = (failed.address, failed.address + failed.length);
                self.pieces
                    .retain(|piece| piece.address < from || piece.address >= to);
            }
            self.ranges.truncate(done);
        }
    }

    /// Memory at an address, as it was when it was first read. `None` if it is not mapped, or if one sample needs too
    /// much.
    pub(super) fn get(&mut self, address: u64, length: usize) -> Option<&[u8]> {
        let long = length as u64;
        let at = self.place(address, long)?;
        self.note(address, long);
        self.bytes.get(at..at + length)
    }

    /// A number of eight bytes.
    pub(super) fn word(&mut self, address: u64) -> Option<u64> {
        let bytes = self.get(address, 8)?;
        bytes.try_into().ok().map(u64::from_ne_bytes)
    }

    /// Memory that later samples do not need; not kept.
    pub(super) fn once(&self, address: u64, bytes: &mut [u8]) -> Option<()> {
        (self.memory.read(bytes, address) == bytes.len()).then_some(())
    }

    fn place(&mut self, address: u64, length: u64) -> Option<usize> {
        let after = self
            .ranges
            .partition_point(|range| range.address <= address);
        let ahead = self.ranges[..after].last();
        if let Some(at) = ahead.and_then(|range| range.part(address, length)) {
            return Some(at);
        }
        let pages = self.pages.iter();
        if let Some(at) = pages.filter_map(|range| range.part(address, length)).next() {
            return Some(at);
        }
        let first = address - address % PAGE;
        let end = address
            .checked_add(length)?
            .checked_next_multiple_of(PAGE)?;
        let whole = end - first;
        if whole > LONGEST_RANGE || self.pages.len() >= MOST_PAGES {
            return None;
        }
        let at = self.bytes.len();
        self.bytes.resize(at + whole as usize, 0);
        let read = self.memory.read(&mut self.bytes[at..], first) as u64;
        let range = Range {
            address: first,
            length: read,
            at,
        };
        let part = range.part(address, length);
        match part {
            Some(_) => self.pages.push(range),
            None => self.bytes.truncate(at),
        }
        part
    }

    /// Notes a piece to read ahead.
    fn note(&mut self, address: u64, length: u64) {
        let at = self.pieces.partition_point(|piece| piece.address < address);
        let has_room = self.pieces.len() < MOST_PIECES;
        match self.pieces.get_mut(at) {
            Some(piece) if piece.address == address => {
                piece.length = piece.length.max(length);
                piece.unused = 0;
            }
            _ if has_room => self.pieces.insert(
                at,
                Piece {
                    address,
                    length,
                    unused: 0,
                },
            ),
            _ => {}
        }
    }
}

/// Joins neighbouring pieces to ranges; returns the number of their bytes.
fn join(pieces: &[Piece], ranges: &mut Vec<Range>) -> usize {
    ranges.clear();
    let mut total = 0;
    for piece in pieces {
        if let Some(last) = ranges.last_mut() {
            let end = last.address + last.length;
            let longer = piece.end().max(end) - last.address;
            if piece.address <= end.saturating_add(GAP) && longer <= LONGEST_RANGE {
                total += (longer - last.length) as usize;
                last.length = longer;
                continue;
            }
        }
        if ranges.len() >= MOST_RANGES {
            break;
        }
        ranges.push(Range {
            address: piece.address,
            length: piece.length,
            at: total,
        });
        total += piece.length as usize;
    }
    total
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of_this_process() -> Snapshot {
        let pid = std::process::id();
        Snapshot::new(pid.cast_signed(), Memory::open(pid).unwrap())
    }

    #[test]
    fn memory_stays_as_it_was_until_it_is_read_anew() {
        let mut words: Vec<u64> = (0..10_000).collect();
        let mut snapshot = of_this_process();
        let at = |index: usize| words.as_ptr() as u64 + 8 * index as u64;
        let places = [3, 4, 700, 9_000].map(|index| (index as u64, at(index)));
        for _ in 0..3 {
            snapshot.renew();
            for (value, address) in places {
                assert_eq!(snapshot.word(address), Some(value));
            }
        }
        assert_eq!(snapshot.pieces.len(), 4);
        assert!(snapshot.pages.is_empty(), "all of it was read ahead");
        words[3] = 5_555;
        std::hint::black_box(&words);
        assert_eq!(snapshot.word(places[0].1), Some(3));
        snapshot.renew();
        assert_eq!(snapshot.word(places[0].1), Some(5_555));
        for _ in 0..=KEPT_UNUSED {
            snapshot.renew();
        }
        assert!(snapshot.pieces.is_empty(), "none was needed");
    }

    #[test]
    fn what_is_not_mapped_is_missing_and_does_not_hide_the_rest() {
        let word = 77_u64;
        let address = &raw const word as u64;
        let mut snapshot = of_this_process();
        for wrong in [0, 8, 4_090, u64::MAX, u64::MAX - 7] {
            assert_eq!(snapshot.word(wrong), None);
        }
        assert_eq!(snapshot.get(address, usize::MAX), None);
        assert!(snapshot.pieces.is_empty());
        // It was mapped before.
        snapshot.note(8, 8);
        assert_eq!(snapshot.word(address), Some(77));
        snapshot.renew();
        assert_eq!(snapshot.word(address), Some(77));
        assert_eq!(snapshot.pieces.len(), 1);
    }

    proptest! {
        #[test]
        fn ranges_have_all_pieces_and_do_not_overlap(
            places in prop::collection::btree_map(0..200_000_u64, 1..300_u64, 0..120)
        ) {
            let pieces: Vec<Piece> = places
                .into_iter()
                .map(|(address, length)| Piece { address, length, unused: 0 })
                .collect();
            let mut ranges = Vec::new();
            let total = join(&pieces, &mut ranges);
            prop_assert_eq!(total as u64, ranges.iter().map(|range| range.length).sum::<u64>());
            for range in &ranges {
                prop_assert!(range.length <= LONGEST_RANGE);
            }
            for two in ranges.windows(2) {
                prop_assert_eq!(two[0].at + two[0].length as usize, two[1].at);
            }
            for piece in &pieces {
                let found = ranges
                    .iter()
                    .any(|range| range.part(piece.address, piece.length).is_some());
                prop_assert!(found);
            }
        }
    }
}
