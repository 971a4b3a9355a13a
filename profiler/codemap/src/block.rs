//! One record: node, tower and payload in consecutive words.
//!
//! ```text
//! 0  start address
//! 1  load time          2  unload time (u64::MAX while loaded)
//! 3  size | kind << 32 | height << 40 | linked << 48 | words of a frame << 49 | sparse << 63
//! 4  words of the block | payload's first word << 32 (from the block's start)
//! 5… tower: word index of the next node on each level, MARK when being removed
//! payload: counts, pcs (1 word), frames (2), methods (2), strings (length, bytes)
//! ```
//!
//! What a look-up reads stands first and, in most records, in the block's first two cache lines.

use crate::arena::Words;
use crate::range::{CodeRange, Frame, FrameRec, Kind};
use crate::sync::{AtomicU64, Ordering, sized};

/// Levels of the list.
pub(crate) const LEVELS: usize = sized(16, 2);
/// Set in a tower's word when its node is being removed.
pub(crate) const MARK: u64 = 1 << 63;

const START: usize = 0;
const LOAD: usize = 1;
const UNLOAD: usize = 2;
const SHAPE: usize = 3;
const EXTENT: usize = 4;
pub(crate) const TOWER: usize = 5;

const LINKED: u64 = 1 << 48;
const FRAME_SHIFT: u32 = 49;
/// Larger frames count as unknown.
const LARGEST_FRAME: u32 = 0x3fff;
const SPARSE: u64 = 1 << 63;

/// Longest string kept.
const LONGEST: usize = 4096;
/// Deepest inline chain read back.
const DEEPEST: usize = 256;

fn pair(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

fn low(word: u64) -> u32 {
    word as u32
}

fn high(word: u64) -> u32 {
    (word >> 32) as u32
}

/// Words of a record, encoded and not yet in shared memory.
pub(crate) fn encode(range: &CodeRange<'_>, height: usize) -> Vec<u64> {
    let mut strings = Strings::default();
    let methods: Vec<[u32; 4]> = range
        .methods
        .iter()
        .map(|m| [m.class, m.name, m.signature, m.file].map(|text| strings.add(text)))
        .collect();
    let payload = TOWER + height;
    let mut words = vec![0; payload];
    words[START] = range.start;
    words[LOAD] = range.load_time;
    words[UNLOAD] = u64::MAX;
    let kind = match range.kind {
        Kind::Java => 0,
        Kind::Stub => 1,
    };
    words[SHAPE] = u64::from(range.size) | kind << 32 | (height as u64) << 40;
    if range.frame_words <= LARGEST_FRAME {
        words[SHAPE] |= u64::from(range.frame_words) << FRAME_SHIFT;
    }
    if range.sparse {
        words[SHAPE] |= SPARSE;
    }
    words.push(pair(methods.len() as u32, range.frames.len() as u32));
    words.push(pair(range.pcs.len() as u32, strings.words.len() as u32));
    words.extend(range.pcs.iter().map(|pc| pair(pc.offset, pc.frame)));
    for frame in range.frames {
        words.push(pair(frame.parent, frame.method));
        words.push(pair(frame.bci as u32, frame.line));
    }
    words.extend(
        methods
            .iter()
            .flat_map(|m| [pair(m[0], m[1]), pair(m[2], m[3])]),
    );
    words.extend(strings.words);
    words[EXTENT] = pair(words.len() as u32, payload as u32);
    words
}

/// Strings of one record, each kept once; a reference is the word where its length stands.
#[derive(Default)]
struct Strings<'a> {
    words: Vec<u64>,
    known: Vec<(&'a str, u32)>,
}

impl<'a> Strings<'a> {
    fn add(&mut self, text: &'a str) -> u32 {
        let text = &text[..text.floor_char_boundary(LONGEST)];
        if let Some((_, offset)) = self.known.iter().find(|(known, _)| *known == text) {
            return *offset;
        }
        let offset = self.words.len() as u32;
        self.words.push(text.len() as u64);
        self.words.extend(text.as_bytes().chunks(8).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_le_bytes(word)
        }));
        self.known.push((text, offset));
        offset
    }
}

/// A record in the arena. Reading one that is being recycled gives garbage, never a fault.
#[derive(Clone, Copy)]
pub(crate) struct Node<'a> {
    pub(crate) words: &'a [AtomicU64],
    pub(crate) offset: usize,
}

impl<'a> Node<'a> {
    pub(crate) fn start(self) -> u64 {
        self.words.load(self.offset + START)
    }

    pub(crate) fn load_time(self) -> u64 {
        self.words.load(self.offset + LOAD)
    }

    pub(crate) fn unload_time(self) -> u64 {
        self.words.load(self.offset + UNLOAD)
    }

    /// Sets the unload time if there is none; false if there was one.
    pub(crate) fn set_unloaded(self, time: u64) -> bool {
        let word = &self.words[self.offset + UNLOAD];
        word.compare_exchange(u64::MAX, time, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    pub(crate) fn size(self) -> u32 {
        low(self.words.load(self.offset + SHAPE))
    }

    pub(crate) fn end(self) -> u64 {
        self.start().saturating_add(u64::from(self.size()))
    }

    pub(crate) fn kind(self) -> Kind {
        if self.words.load(self.offset + SHAPE) >> 32 & 0xff == 0 {
            Kind::Java
        } else {
            Kind::Stub
        }
    }

    pub(crate) fn frame_words(self) -> u32 {
        (self.words.load(self.offset + SHAPE) >> FRAME_SHIFT) as u32 & LARGEST_FRAME
    }

    pub(crate) fn is_sparse(self) -> bool {
        self.words.load(self.offset + SHAPE) & SPARSE != 0
    }

    pub(crate) fn height(self) -> usize {
        (self.words.load(self.offset + SHAPE) >> 40 & 0xff) as usize
    }

    /// Whether it is linked on all its levels.
    pub(crate) fn is_linked(self) -> bool {
        self.words.acquire(self.offset + SHAPE) & LINKED != 0
    }

    pub(crate) fn set_linked(self) {
        self.words[self.offset + SHAPE].fetch_or(LINKED, Ordering::Release);
    }

    pub(crate) fn block_words(self) -> usize {
        low(self.words.load(self.offset + EXTENT)) as usize
    }

    pub(crate) fn next(self, level: usize) -> &'a AtomicU64 {
        &self.words[self.offset + TOWER + level]
    }

    fn payload(self) -> Payload<'a> {
        let offset = self.offset + high(self.words.load(self.offset + EXTENT)) as usize;
        let (counts, more) = (self.words.load(offset), self.words.load(offset + 1));
        Payload {
            words: self.words,
            pcs: offset + 2,
            method_count: low(counts),
            frame_count: high(counts),
            pc_count: low(more),
            string_words: high(more),
        }
    }

    /// The innermost frame for an address, and nothing decoded yet. `leaf` says whether the address is
    /// of the instruction being executed or a return address.
    pub(crate) fn frame_at(self, pc: u64, leaf: bool) -> Option<u32> {
        let payload = self.payload();
        let index = self.pc_at(&payload, pc, leaf);
        let index = index.min(payload.pc_count.checked_sub(1)?);
        Some(high(payload.pc(index)))
    }

    /// Place of the first description at or after an address, or the number of descriptions.
    fn pc_at(self, payload: &Payload<'_>, pc: u64, leaf: bool) -> u32 {
        let wanted = pc.wrapping_sub(self.start()) as u32;
        let wanted = if leaf {
            wanted.saturating_add(1)
        } else {
            wanted
        };
        let (mut low_index, mut high_index) = (0, payload.pc_count);
        while low_index < high_index {
            let middle = low_index.midpoint(high_index);
            if low(payload.pc(middle)) < wanted {
                low_index = middle + 1;
            } else {
                high_index = middle;
            }
        }
        low_index
    }

    /// Sets [`Frame::line_before`] in the frames of the instruction at `pc`, which [`Self::decode`] made of `innermost`.
    pub(crate) fn decode_line_before(self, pc: u64, innermost: u32, frames: &mut [Frame]) {
        let payload = self.payload();
        let Some(before) = self.pc_at(&payload, pc, true).checked_sub(1) else {
            return;
        };
        let before = self.outwards(&payload, high(payload.pc(before)));
        let chain = self.outwards(&payload, innermost);
        // Outermost first, the two agree up to the frame in which the code goes on with another line.
        let pairs = chain.iter().rev().zip(before.iter().rev()).zip(frames);
        for ((frame, before), decoded) in pairs {
            if frame.method != before.method {
                return;
            }
            if frame.bci != before.bci {
                if frame.line != before.line {
                    decoded.line_before = before.line;
                }
                return;
            }
        }
    }

    /// The chain of frames that ends in `innermost`, innermost first.
    fn outwards(self, payload: &Payload<'_>, innermost: u32) -> Vec<FrameRec> {
        let mut chain = Vec::new();
        let mut index = innermost;
        while index < payload.frame_count && chain.len() < DEEPEST {
            let frame = payload.frame(index);
            chain.push(frame);
            index = frame.parent;
        }
        chain
    }

    /// Decodes the chain of frames that ends in `innermost`, outermost first.
    pub(crate) fn decode(self, innermost: u32, into: &mut Vec<Frame>) {
        let payload = self.payload();
        into.clear();
        for frame in self.outwards(&payload, innermost).into_iter().rev() {
            let [class, method, signature, file] = payload.method(frame.method);
            into.push(Frame {
                class,
                method,
                signature,
                file,
                line: frame.line,
                bci: frame.bci,
                inlined: frame.parent != FrameRec::OUTERMOST,
                line_before: 0,
            });
        }
    }
}

struct Payload<'a> {
    words: &'a [AtomicU64],
    pcs: usize,
    method_count: u32,
    frame_count: u32,
    pc_count: u32,
    string_words: u32,
}

impl Payload<'_> {
    fn frames(&self) -> usize {
        self.pcs + self.pc_count as usize
    }

    fn methods(&self) -> usize {
        self.frames() + 2 * self.frame_count as usize
    }

    fn strings(&self) -> usize {
        self.methods() + 2 * self.method_count as usize
    }

    fn pc(&self, index: u32) -> u64 {
        self.words.load(self.pcs + index as usize)
    }

    fn frame(&self, index: u32) -> FrameRec {
        let offset = self.frames() + 2 * index as usize;
        let (tree, place) = (self.words.load(offset), self.words.load(offset + 1));
        FrameRec {
            parent: low(tree),
            method: high(tree),
            bci: low(place) as i32,
            line: high(place),
        }
    }

    fn method(&self, index: u32) -> [String; 4] {
        if index >= self.method_count {
            return Default::default();
        }
        let offset = self.methods() + 2 * index as usize;
        let (first, second) = (self.words.load(offset), self.words.load(offset + 1));
        [low(first), high(first), low(second), high(second)].map(|string| self.string(string))
    }

    fn string(&self, offset: u32) -> String {
        if offset >= self.string_words {
            return String::new();
        }
        let offset = self.strings() + offset as usize;
        let length = (self.words.load(offset) as usize).min(LONGEST);
        let mut bytes = Vec::with_capacity(length.next_multiple_of(8));
        for word in 0..length.div_ceil(8) {
            bytes.extend(self.words.load(offset + 1 + word).to_le_bytes());
        }
        bytes.truncate(length);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}
