//! Looking addresses up, in any process, while writers write.

use crate::arena::{Words, header};
use crate::block::Node;
use crate::key::Key;
use crate::list::List;
use crate::range::{Frame, Kind};
use crate::sync::{AtomicU64, Ordering, fence};

/// JVMTI may deliver a load this late, ns.
const LATEST: u64 = 10_000_000_000;
/// Records looked at for one that came late, once it is clear that none was loaded in time.
const LATE_STEPS: usize = 256;
/// Blocks are reused a few times a second at most; so many interruptions do not happen.
const TRIES: usize = 16;

/// How a look-up ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookup {
    /// The answer is filled in.
    Found,
    /// No code is known there at that time.
    NotFound,
    /// Writers recycled memory during every try.
    Torn,
}

/// What is at an address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resolution {
    /// Kind of the code.
    pub kind: Kind,
    /// First address of its range.
    pub code_start: u64,
    /// Address after its last.
    pub code_end: u64,
    /// First sample time for which this answer holds, CLOCK_MONOTONIC ns.
    pub valid_from: u64,
    /// First sample time for which it holds no more.
    pub valid_to: u64,
    /// Outermost first; the following ones were inlined.
    pub frames: Vec<Frame>,
    /// The record it was read from.
    pub found: Finding,
}

/// How to get past a piece of code on the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Kind of the code.
    pub kind: Kind,
    /// First address of its range.
    pub code_start: u64,
    /// Address after its last.
    pub code_end: u64,
    /// Words of its frame, return address included; 0 where unknown.
    pub frame_words: u32,
}

/// A record found, not yet decoded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Finding {
    offset: usize,
    frame: u32,
    valid_from: u64,
    valid_to: u64,
}

impl Finding {
    /// Whether decoding both gives the same frames. A block that was reused has another load time.
    pub fn is_same(&self, other: &Self) -> bool {
        (self.offset, self.frame, self.valid_from) == (other.offset, other.frame, other.valid_from)
    }

    /// Sample times for which it holds: from the first up to, and without, the second; CLOCK_MONOTONIC ns.
    pub fn times(&self) -> (u64, u64) {
        (self.valid_from, self.valid_to)
    }
}

/// The reading side.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    words: &'a [AtomicU64],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(words: &'a [AtomicU64]) -> Self {
        Self { words }
    }

    /// What was at `pc` at `time`. `leaf`: `pc` is of the instruction being executed, else it is a
    /// return address.
    pub fn resolve(&self, pc: u64, time: u64, leaf: bool, out: &mut Resolution) -> Lookup {
        let answer = self.validated(|reader| {
            let found = reader.find_unvalidated(pc, time, leaf)?;
            let node = Node {
                words: reader.words,
                offset: found.offset,
            };
            node.decode(found.frame, &mut out.frames);
            if leaf && !node.is_sparse() {
                node.decode_line_before(pc, found.frame, &mut out.frames);
            } else if leaf && let Some(innermost) = out.frames.last_mut() {
                (innermost.line, innermost.bci) = (0, -1);
            }
            out.kind = node.kind();
            out.code_start = node.start();
            out.code_end = node.end();
            out.valid_from = found.valid_from;
            out.valid_to = found.valid_to;
            out.found = found;
            Some(())
        });
        match answer {
            Some(Some(())) => Lookup::Found,
            Some(None) => Lookup::NotFound,
            None => Lookup::Torn,
        }
    }

    /// What a walk up the stack needs to know of the code a return address is in.
    pub fn shape(&self, pc: u64, time: u64) -> Option<Shape> {
        self.validated(|reader| {
            let found = reader.find_unvalidated(pc, time, false)?;
            let node = Node {
                words: reader.words,
                offset: found.offset,
            };
            Some(Shape {
                kind: node.kind(),
                code_start: node.start(),
                code_end: node.end(),
                frame_words: node.frame_words(),
            })
        })
        .flatten()
    }

    /// The look-up alone, without decoding names.
    pub fn find(&self, pc: u64, time: u64, leaf: bool) -> Option<Finding> {
        self.validated(|reader| reader.find_unvalidated(pc, time, leaf))
            .flatten()
    }

    /// Runs `read` until no block was released for reuse meanwhile.
    pub(crate) fn validated<T>(&self, mut read: impl FnMut(&Self) -> T) -> Option<T> {
        for _ in 0..TRIES {
            let before = self.words.acquire(header::RECLAIM_SEQ);
            let result = read(self);
            // Pairs with the fence in `Writer::insert`: whoever read a word of a reused block sees
            // that the sequence has moved.
            fence(Ordering::Acquire);
            if self.words.load(header::RECLAIM_SEQ) == before {
                return Some(result);
            }
        }
        None
    }

    fn find_unvalidated(&self, pc: u64, time: u64, leaf: bool) -> Option<Finding> {
        let reach = self.words.load(header::MAX_SIZE);
        // With its times: every word is read once, it may change at any moment.
        let mut late: Option<(u64, u64, Node<'_>)> = None;
        let mut free_since = 0;
        let mut more = usize::MAX;
        for node in List::new(self.words).from(Key::at_address(pc)) {
            if node.start().saturating_add(reach) <= pc {
                break;
            }
            if more == 0 {
                break;
            }
            more -= 1;
            let contains = pc < node.end() && pc >= node.start();
            let (load, unload) = (node.load_time(), node.unload_time());
            if load <= time && time < unload {
                if contains {
                    let frame = node.frame_at(pc, leaf)?;
                    return Some(Finding {
                        offset: node.offset,
                        frame,
                        valid_from: load,
                        valid_to: unload,
                    });
                }
                // Ranges alive at one time do not overlap: nothing lower was alive up to here. One
                // that came later may still reach.
                more = more.min(LATE_STEPS);
            }
            if !contains {
                continue;
            }
            if unload <= time {
                free_since = free_since.max(unload);
            } else if late.is_none_or(|(earliest, ..)| load < earliest) {
                late = Some((load, unload, node));
            }
        }
        let (load, unload, node) = late.filter(|(load, ..)| load.saturating_sub(time) <= LATEST)?;
        let frame = node.frame_at(pc, leaf)?;
        Some(Finding {
            offset: node.offset,
            frame,
            valid_from: free_since.max(load.saturating_sub(LATEST)),
            valid_to: unload,
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::block::LEVELS;
    use crate::range::FrameRec;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 48 }))]

        /// Whatever is in the memory, a look-up ends and does not panic.
        #[test]
        fn garbage_is_survived(
            garbage in proptest::collection::vec(any::<u64>(), 64..512),
            links in proptest::collection::vec((0usize..512, 0u64..600), 0..300),
            pages in proptest::collection::vec((any::<u64>(), any::<u32>(), 0u64..600, any::<bool>()), 0..6),
            unindexed in any::<bool>(),
            pcs in proptest::collection::vec((any::<u64>(), any::<u64>()), 1..4),
        ) {
            let words: Vec<AtomicU64> = (0..header::BLOCKS)
                .map(|_| 0)
                .chain(garbage)
                .map(AtomicU64::new)
                .collect();
            let blocks = words.len() - header::BLOCKS;
            // Links that lead to words of the garbage, so that it is looked at.
            for (offset, to) in &links {
                let to = header::BLOCKS as u64 + to;
                words[header::BLOCKS + offset % blocks].store(to, Ordering::Relaxed);
                words[header::HEAD + offset % LEVELS].store(to, Ordering::Relaxed);
            }
            // Index pages, of which some have their slots in the garbage.
            for (page, anywhere, within, near) in &pages {
                let slots = if *near { header::BLOCKS as u64 + within } else { u64::from(*anywhere) };
                let entry = header::DIRECTORY + *page as usize % header::DIRECTORY_ENTRIES;
                words[entry].store(page << 32 | slots, Ordering::Relaxed);
            }
            words[header::UNINDEXED].store(u64::from(unindexed), Ordering::Relaxed);
            words[header::MAX_SIZE].store(u64::from(u32::MAX), Ordering::Relaxed);
            let reader = Reader::new(&words);
            let mut found = Resolution::default();
            let pages = pages.iter().map(|(page, _, within, _)| (page << 21 | within << 9, *page));
            for (pc, time) in pcs.into_iter().chain(pages) {
                for pc in [pc, words[header::BLOCKS + pc as usize % blocks].load(Ordering::Relaxed)] {
                    for time in [0, time] {
                        reader.resolve(pc, time, true, &mut found);
                        reader.find(pc, time, false);
                    }
                }
            }
        }
    }

    /// A line with 10 at its root calls an inlined method; 20 does not, and 10 comes once more.
    #[test]
    fn code_between_two_lines_of_a_method_has_the_first_one_as_well() {
        let map = crate::CodeMap::create(0).unwrap();
        let method = |name| crate::Method {
            class: "a.B",
            name,
            signature: "()V",
            file: "B.java",
        };
        let frame = |parent, method, line: u32| FrameRec {
            parent,
            method,
            bci: line as i32,
            line,
        };
        let outermost = FrameRec::OUTERMOST;
        let frames = [
            frame(outermost, 0, 10),
            frame(0, 1, 5),
            frame(0, 1, 6),
            frame(outermost, 0, 20),
        ];
        let pcs = [(8, 1), (16, 2), (24, 3), (32, 0)];
        let insert = |start, sparse| {
            let range = crate::CodeRange {
                start,
                size: 40,
                load_time: 1,
                kind: Kind::Java,
                frame_words: 0,
                sparse,
                methods: &[method("loop"), method("inlined")],
                frames: &frames,
                pcs: &pcs.map(|(offset, frame)| crate::PcRec { offset, frame }),
            };
            map.writer().insert(&range).unwrap();
        };
        insert(1000, false);
        insert(2000, true);
        let lines = |pc, leaf| {
            let mut found = Resolution::default();
            let looked_up = map.reader().resolve(pc, 2, leaf, &mut found);
            assert_eq!(looked_up, Lookup::Found);
            let frames = found.frames.iter();
            let lines = frames.map(|frame| (frame.line, frame.line_before));
            lines.collect::<Vec<_>>()
        };
        assert_eq!(lines(1000, true), [(10, 0), (5, 0)]);
        assert_eq!(lines(1008, true), [(10, 0), (6, 5)]);
        assert_eq!(lines(1016, true), [(20, 10)]);
        assert_eq!(lines(1024, true), [(10, 20)]);
        // A return address is described itself, and of sparsely described code nothing between is known.
        assert_eq!(lines(1024, false), [(20, 0)]);
        assert_eq!(lines(2016, true), [(0, 0)]);
    }

    /// A load time that changes between two looks must not be looked at twice.
    #[test]
    fn a_record_rewritten_meanwhile_is_survived() {
        let map = crate::CodeMap::create(0).unwrap();
        let stop = std::sync::atomic::AtomicBool::new(false);
        let range = crate::CodeRange {
            start: 0x1000,
            size: 0x100,
            load_time: 1_000,
            kind: Kind::Java,
            frame_words: 0,
            sparse: false,
            methods: &[],
            frames: &[],
            pcs: &[crate::PcRec {
                offset: 1,
                frame: 0,
            }],
        };
        map.writer().insert(&range).unwrap();
        let words = map.words();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    for time in [1_000, 1] {
                        words[header::BLOCKS + 1].store(time, Ordering::Relaxed);
                    }
                }
            });
            let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                for _ in 0..if cfg!(miri) { 200 } else { 200_000 } {
                    map.reader().find(0x1000, 500, true);
                }
            }));
            stop.store(true, Ordering::Relaxed);
            assert!(read.is_ok());
        });
    }
}
