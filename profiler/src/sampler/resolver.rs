//! Resolves addresses to frames.

use std::cell::Cell;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use ahash::HashMap;
use unfuse_codemap::{CodeMap, Finding, Kind, Lookup, Resolution};
use unfuse_format::{Frame, FrameKind, INSTRUCTION, NO_CALLERS, StackId, UNDESCRIBED};

use super::interpreted::{CALLERS_MISSING, INTERPRETER, TaggedFrames};
use super::outbox::Outbox;
use crate::interpreter::InterpretedMethod;
use crate::maps::Maps;
use crate::memory::Memory;
use crate::wire::{WireFrame, WirePiece};

/// Number of cached callchains.
const CACHE_ENTRIES: usize = 8192;
/// Number of cached addresses, each with about a hundred bytes of frames.
const PIECES: usize = 2048;

/// The stub through which the VM enters Java; rootward of it is the VM's own thread code.
const ENTRY_STUB: &str = "call_stub";

/// What the thread does at the leaf of its callchain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Leaf {
    /// It runs the innermost frame.
    Frame,
    /// It runs in the kernel.
    Kernel,
    /// It waits.
    Wait,
    /// It waits for a CPU.
    Queue,
    /// It waits; its innermost frame is that of an earlier sample.
    Guess,
}

impl Leaf {
    fn frame(self) -> Option<WireFrame> {
        match self {
            Self::Frame | Self::Wait => None,
            Self::Kernel => Some(frame(FrameKind::Kernel, "[kernel]")),
            Self::Queue => Some(frame(FrameKind::Wait, "[run queue]")),
            Self::Guess => Some(frame(FrameKind::Wait, "[waiting]")),
        }
    }
}

/// When an answer is valid.
#[derive(Clone, Copy)]
struct Window {
    /// Version of the code map for the answer.
    version: u64,
    /// Times of samples.
    from: u64,
    to: u64,
}

impl Window {
    fn holds(&self, version: u64, time: u64) -> bool {
        self.version == version && (self.from..self.to).contains(&time)
    }
}

/// A resolved chain and its validity.
struct ChainEntry {
    named: NamedChain,
    window: Window,
}

/// A resolved callchain.
#[derive(Clone, Copy)]
pub(super) struct NamedChain {
    /// The id of its stack.
    pub(super) stack: StackId,
    /// Whether the JVM has described all of its code.
    pub(super) is_described: bool,
}

/// The frames of one word of a callchain: a method with its inlined callees.
struct Piece {
    frames: WirePiece,
    hash: u64,
    /// Whether it is the stub through which the VM enters Java.
    enters: bool,
    /// Whether any frame is a method of a class.
    has_class: bool,
    /// Whether the JVM has described the code.
    is_described: bool,
    origin: Origin,
    window: Cell<Window>,
}

/// The origin of a piece.
#[derive(Clone, Copy)]
enum Origin {
    /// A record of the code map.
    Code(Finding),
    /// A tagged word: an interpreted method, or missing callers.
    Interpreted,
    /// A mapped file, as of this read of the maps.
    File(u64),
    /// None of them.
    Unknown,
}

impl Piece {
    fn new(frames: impl Into<WirePiece>, origin: Origin, window: Window) -> Self {
        let frames: WirePiece = frames.into();
        let mut hasher = DefaultHasher::new();
        frames.hash(&mut hasher);
        let stub = |frame: &Frame| frame.kind == FrameKind::Stub && frame.method == ENTRY_STUB;
        Self {
            hash: hasher.finish(),
            enters: frames.iter().any(|wire| stub(&wire.frame)),
            is_described: !frames.iter().any(|wire| wire.frame.is_undescribed()),
            has_class: frames.iter().any(|wire| !wire.frame.class.is_empty()),
            frames,
            origin,
            window: Cell::new(window),
        }
    }
}

/// Resolves callchains of one JVM.
///
/// Chains rarely repeat, because their leaves differ. Their callers repeat: frames are named and hashed once for each
/// address, and looked up once until the code map changes, which it does often while code is compiled.
pub(super) struct Resolver<'a> {
    map: &'a CodeMap,
    maps: Maps,
    /// The JVM's memory, to identify code that the JVM does not describe.
    memory: Option<Memory>,
    known: HashMap<u64, ChainEntry>,
    /// By address, or word of an interpreted frame, and whether it is a leaf's.
    pieces: HashMap<(u64, bool), Rc<Piece>>,
    /// The pieces of the current chain, innermost first.
    chain: Vec<Rc<Piece>>,
    resolved: Resolution,
    /// Whether the machine code at a sample's address is a frame of its own.
    instructions: bool,
}

impl<'a> Resolver<'a> {
    pub(super) fn new(
        map: &'a CodeMap,
        maps: Maps,
        memory: Option<Memory>,
        instructions: bool,
    ) -> Self {
        Self {
            map,
            maps,
            memory,
            known: HashMap::default(),
            pieces: HashMap::default(),
            chain: Vec::new(),
            resolved: Resolution::default(),
            instructions,
        }
    }

    pub(super) fn maps(&mut self) -> &mut Maps {
        &mut self.maps
    }

    /// Makes all stacks go to the outbox again.
    pub(super) fn forget(&mut self) {
        self.known.clear();
    }

    /// Resolves a callchain; a new stack goes to the outbox.
    pub(super) fn resolve(
        &mut self,
        time: u64,
        leaf: Leaf,
        chain: &[u64],
        tagged: &TaggedFrames,
        outbox: &mut Outbox<'_>,
    ) -> NamedChain {
        let version = self.map.version();
        let key = self.known.hasher().hash_one((chain, leaf));
        if let Some(known) = self.known.get(&key)
            && known.window.holds(version, time)
        {
            return known.named;
        }
        let window = self.find(version, time, leaf, chain, tagged);
        let named = NamedChain {
            stack: self.stack(leaf, chain.first().copied(), outbox),
            is_described: self.chain.iter().all(|piece| piece.is_described),
        };
        if self.known.len() >= CACHE_ENTRIES {
            self.known.clear();
        }
        self.known.insert(key, ChainEntry { named, window });
        named
    }

    /// Finds the pieces of a chain; returns when they are valid together.
    fn find(
        &mut self,
        version: u64,
        time: u64,
        leaf: Leaf,
        chain: &[u64],
        tagged: &TaggedFrames,
    ) -> Window {
        self.chain.clear();
        let mut whole = Window {
            version,
            from: 0,
            to: u64::MAX,
        };
        for (depth, word) in chain.iter().enumerate() {
            // In the kernel, the user's address is the one after the system call.
            let exact = depth == 0 && leaf != Leaf::Kernel;
            let piece = self.known_piece(version, time, *word, exact, tagged);
            let window = piece.window.get();
            whole.from = whole.from.max(window.from);
            whole.to = whole.to.min(window.to);
            self.chain.push(piece);
        }
        self.leave_out_thread_code();
        whole
    }

    /// The piece of a word, from the cache if it is still valid.
    fn known_piece(
        &mut self,
        version: u64,
        time: u64,
        word: u64,
        exact: bool,
        tagged: &TaggedFrames,
    ) -> Rc<Piece> {
        if let Some(known) = self.pieces.get(&(word, exact))
            && self.still_holds(known, version, time, word, exact)
        {
            return Rc::clone(known);
        }
        let piece = Rc::new(self.piece(version, time, word, exact, tagged));
        // Code without a description gets one without a change of its address.
        if !matches!(piece.origin, Origin::Unknown) {
            if self.pieces.len() >= PIECES {
                self.pieces.clear();
            }
            self.pieces.insert((word, exact), Rc::clone(&piece));
        }
        piece
    }

    /// Whether a piece is still valid; looks it up, but resolves no names.
    fn still_holds(&self, piece: &Piece, version: u64, time: u64, word: u64, exact: bool) -> bool {
        let before = match piece.origin {
            Origin::Interpreted => return true,
            Origin::File(read) => return read == self.maps.reads(),
            Origin::Unknown => return false,
            Origin::Code(_) if piece.window.get().holds(version, time) => return true,
            Origin::Code(found) => found,
        };
        let now = self.map.reader().find(word, time, exact);
        let Some(now) = now.filter(|now| now.is_same(&before)) else {
            return false;
        };
        let (from, to) = now.times();
        piece.window.set(Window { version, from, to });
        true
    }

    /// Drops frames rootward of the VM's entry to Java: the thread's start, or class loading in the middle.
    fn leave_out_thread_code(&mut self) {
        let entered = self.chain.iter().rposition(|piece| piece.enters);
        if let Some(root) = entered
            && !self.chain[root..].iter().any(|piece| piece.has_class)
        {
            self.chain.truncate(root);
        }
    }

    /// The id of the stack of the current pieces; a new stack goes to the outbox.
    fn stack(&self, leaf: Leaf, address: Option<u64>, outbox: &mut Outbox<'_>) -> StackId {
        let innermost = match leaf {
            Leaf::Frame if self.instructions => self.instruction(address),
            leaf => leaf.frame(),
        };
        let leaf = innermost.map(|frame| WirePiece::from([frame]));
        let mut hasher = DefaultHasher::new();
        leaf.hash(&mut hasher);
        let leaf_hash = hasher.finish();
        for piece in &self.chain {
            hasher.write_u64(piece.hash);
        }
        let id = StackId(hasher.finish().cast_signed());
        let leaf = leaf.iter().map(|leaf| (leaf_hash, leaf));
        let pieces = self.chain.iter().map(|piece| (piece.hash, &piece.frames));
        outbox.stack(id, leaf.chain(pieces));
        id
    }

    /// The machine code from an address on, if it is compiled Java code.
    fn instruction(&self, address: Option<u64>) -> Option<WireFrame> {
        let piece = self.chain.first()?;
        if !matches!(piece.origin, Origin::Code(_)) {
            return None;
        }
        let code = self.memory.as_ref()?.array(address?)?;
        let mut innermost = frame(FrameKind::Stub, INSTRUCTION);
        innermost.frame.signature = format!("{:032x}", u128::from_be_bytes(code));
        Some(innermost)
    }

    /// Resolves a word of a chain.
    fn piece(
        &mut self,
        version: u64,
        time: u64,
        word: u64,
        exact: bool,
        tagged: &TaggedFrames,
    ) -> Piece {
        let mut window = Window {
            version,
            from: 0,
            to: u64::MAX,
        };
        if let Some((method, bci)) = tagged.get(word) {
            let frames = [interpreted_frame(method, bci)];
            return Piece::new(frames, Origin::Interpreted, window);
        }
        if word == CALLERS_MISSING {
            let frames = [frame(FrameKind::Unknown, NO_CALLERS)];
            return Piece::new(frames, Origin::Interpreted, window);
        }
        let reader = self.map.reader();
        let frames = match reader.resolve(word, time, exact, &mut self.resolved) {
            Lookup::Found => {
                (window.from, window.to) = (self.resolved.valid_from, self.resolved.valid_to);
                if self.resolved.kind == Kind::Stub {
                    let name = self.resolved.frames.first();
                    let name = name.map_or("", |frame| frame.method.as_str());
                    let kind = if name == INTERPRETER {
                        FrameKind::Interpreted
                    } else {
                        FrameKind::Stub
                    };
                    vec![frame(kind, name)]
                } else {
                    let frames = self.resolved.frames.drain(..).rev();
                    frames.map(java_frame).collect()
                }
            }
            Lookup::NotFound | Lookup::Torn => {
                let is_file = self.maps.in_file(word);
                let origin = if is_file && !self.maps.in_code_cache(word) {
                    Origin::File(self.maps.reads())
                } else {
                    Origin::Unknown
                };
                return Piece::new([self.native(word)], origin, window);
            }
        };
        Piece::new(frames, Origin::Code(self.resolved.found), window)
    }

    fn is_inline_cache_stub(&self, ip: u64) -> bool {
        const MOV_LENGTH: usize = 10;
        let mut code = [0; 2 * MOV_LENGTH + 1];
        let begin = ip.saturating_sub(MOV_LENGTH as u64);
        let memory = self.memory.as_ref();
        let read = memory.map_or(0, |memory| memory.read(&mut code, begin));
        let (before, from) = code.split_at(MOV_LENGTH);
        read == code.len() && leads_elsewhere(before, from)
    }

    fn native(&self, ip: u64) -> WireFrame {
        match self.maps.find(ip) {
            Some(mapping) if !mapping.path.is_empty() => WireFrame {
                frame: Frame {
                    file: mapping.path.clone(),
                    ..frame(FrameKind::Native, "").frame
                },
                address: ip - mapping.start + mapping.offset,
            },
            Some(_) if self.is_inline_cache_stub(ip) => frame(FrameKind::Stub, "inline cache stub"),
            Some(_) => frame(FrameKind::Unknown, UNDESCRIBED),
            None => frame(FrameKind::Unknown, "[unknown]"),
        }
    }
}

/// Whether an address is in the code with which JDKs up to 22 continue from a call whose inline cache has changed,
/// until the next safepoint: `mov rax, VALUE; jmp METHOD`. `before` and `from` are the code before the address and from
/// it on.
fn leads_elsewhere(before: &[u8], from: &[u8]) -> bool {
    const MOV_RAX: [u8; 2] = [0x48, 0xb8];
    const JMP: u8 = 0xe9;
    let at_mov = from.starts_with(&MOV_RAX) && from.get(10) == Some(&JMP);
    let at_jmp = before.starts_with(&MOV_RAX) && from.first() == Some(&JMP);
    at_mov || at_jmp
}

fn frame(kind: FrameKind, method: &str) -> WireFrame {
    let frame = Frame {
        kind,
        method: method.to_owned(),
        bci: -1,
        ..Frame::default()
    };
    WireFrame { frame, address: 0 }
}

fn interpreted_frame(method: &InterpretedMethod, bci: Option<u16>) -> WireFrame {
    let names = method.names.clone();
    let frame = Frame {
        kind: FrameKind::Interpreted,
        class: names.class,
        method: names.name,
        signature: names.signature,
        file: names.file,
        line: bci.map_or(0, |bci| method.line(bci)),
        bci: bci.map_or(-1, i32::from),
        inlined: false,
        line_before: 0,
    };
    WireFrame { frame, address: 0 }
}

fn java_frame(frame: unfuse_codemap::Frame) -> WireFrame {
    let frame = Frame {
        kind: FrameKind::Java,
        class: frame.class,
        method: frame.method,
        signature: frame.signature,
        file: frame.file,
        line: frame.line,
        bci: frame.bci,
        inlined: frame.inlined,
        line_before: frame.line_before,
    };
    WireFrame { frame, address: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inline_cache_stubs_are_told_by_their_code() {
        let stub = [0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8, 0xe9, 9, 10, 11, 12];
        let mut code = [0x90; 40];
        code[12..27].copy_from_slice(&stub);
        let told: Vec<usize> = (10..30)
            .filter(|offset| leads_elsewhere(&code[offset - 10..*offset], &code[*offset..]))
            .collect();
        assert_eq!(told, [12, 22]);
    }
}
