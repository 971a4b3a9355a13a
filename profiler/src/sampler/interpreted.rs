//! Finds interpreted frames in a callchain, and their methods.
//!
//! In a chain, such a frame is one tagged word: the number of the method and the index of the bytecode. So equal chains
//! are equal words, without further data.

use unfuse_codemap::{CodeMap, Lookup, Resolution};

use super::leaf;
use super::native::FirstFrame;
use super::stack::{Stack, return_address};
use crate::arch::BYTECODE;
use crate::interpreter::{InterpretedMethod, Methods};
use crate::maps::Maps;
use crate::memory::{Memory, Pages};
use crate::perf_event::Sample;
use crate::timer::TOP_WORDS;

/// Set in a word of a chain that is not an address but a method (above bit 32) and a bytecode index.
pub(super) const INTERPRETED: u64 = 1 << 63;
/// The root word of a chain whose callers are unknown; no method has this number.
pub(super) const CALLERS_MISSING: u64 = u64::MAX - 1;
/// In place of an unknown bytecode index.
const NO_BCI: u64 = u32::MAX as u64;

/// Slot of an interpreter frame: the `Method*`, bytes below its frame pointer (JDK 11 to 25).
pub(super) const METHOD: u64 = 3 * 8;

/// Bytes above the copy of the stack that are searched for frames.
const FURTHER_UP: u64 = 64 << 10;
/// Largest frame, bytes.
const LARGEST_FRAME: u64 = 64 << 10;
/// Minimum and maximum number of links that must match.
const SURE: usize = 3;
const FOLLOWED: usize = 32;

/// The VM's name of the interpreter's code.
pub(super) const INTERPRETER: &str = "Interpreter";

/// Tagged words of chains for interpreted frames, and their methods.
pub(super) struct TaggedFrames {
    methods: Option<Methods>,
}

impl TaggedFrames {
    pub(super) fn new(methods: Option<Methods>) -> Self {
        Self { methods }
    }

    /// Called before each batch of samples; from then on, methods have their current names.
    pub(super) fn begin(&mut self, now: u64) {
        if let Some(methods) = &mut self.methods {
            methods.begin(now);
        }
    }

    /// The word for the `Method*` and the bytecode pointer of the innermost frame; `None` if there is no method. In its
    /// first and last instructions the frame has no bytecode pointer, or another method's.
    pub(super) fn leaf(&mut self, method: u64, bcp: u64) -> Option<u64> {
        let methods = self.methods.as_mut()?;
        let number = methods.number(method)?;
        let bci = methods.get(number)?.bci(bcp).map_or(NO_BCI, u64::from);
        Some(INTERPRETED | u64::from(number) << 32 | bci)
    }

    /// Whether an address has, or had, a method.
    fn is_method(&self, address: u64) -> bool {
        let methods = self.methods.as_ref();
        methods.is_some_and(|methods| methods.is_method(address))
    }

    /// The word for the `Method*` and the saved bytecode pointer of a caller's frame; `None` if there is no such
    /// method.
    pub(super) fn caller(&mut self, method: u64, bcp: u64) -> Option<u64> {
        let word = self.leaf(method, bcp)?;
        let (method, _) = self.get(word)?;
        method.can_save(bcp).then_some(word)
    }

    /// The method of a tagged word and, if known, its bytecode index.
    pub(super) fn get(&self, word: u64) -> Option<(&InterpretedMethod, Option<u16>)> {
        if word & INTERPRETED == 0 {
            return None;
        }
        let method = (word & !INTERPRETED) >> 32;
        let method = self.methods.as_ref()?.get(u32::try_from(method).ok()?)?;
        Some((method, u16::try_from(word & NO_BCI).ok()))
    }
}

/// Tags interpreted frames.
pub(super) struct InterpretedFrames<'a> {
    map: &'a CodeMap,
    /// The JVM's code, and frames above the sample's copy of the stack; read once a batch.
    pages: Option<Pages>,
    tagged: TaggedFrames,
    /// The range of the interpreter's code, once seen.
    code: Option<(u64, u64)>,
    resolved: Resolution,
    marked: Vec<u64>,
}

impl<'a> InterpretedFrames<'a> {
    pub(super) fn new(map: &'a CodeMap, memory: Option<Memory>, methods: Option<Methods>) -> Self {
        Self {
            map,
            pages: memory.map(Pages::new),
            tagged: TaggedFrames::new(methods),
            code: None,
            resolved: Resolution::default(),
            marked: Vec::new(),
        }
    }

    /// Called before each batch of samples.
    pub(super) fn begin(&mut self, now: u64) {
        self.tagged.begin(now);
        if let Some(pages) = &mut self.pages {
            pages.forget();
        }
    }

    /// The meaning of its tagged words.
    pub(super) fn tagged(&mut self) -> &mut TaggedFrames {
        &mut self.tagged
    }

    /// Whether the JVM has described the code at an address.
    pub(super) fn is_described(&self, ip: u64, time: u64) -> bool {
        self.map.reader().shape(ip, time).is_some()
    }

    /// Inserts the caller that the kernel skipped into `chain`; the interpreter's code is handled separately.
    pub(super) fn complete(&mut self, chain: &mut Vec<u64>, sample: &Sample<'_>, maps: &Maps) {
        leaf::complete_barriers(chain, sample);
        if self.leaf_is_compiled(chain, sample.time, maps) {
            let shape = |leaf| self.map.reader().shape(leaf, sample.time);
            leaf::complete(chain, sample, maps, self.pages.as_mut(), shape);
        }
    }

    /// The same for a sample with only the top of the stack.
    pub(super) fn complete_by_top(
        &mut self,
        chain: &mut Vec<u64>,
        time: u64,
        top: &[u64; TOP_WORDS],
        maps: &Maps,
    ) {
        if self.leaf_is_compiled(chain, time, maps) {
            let shape = |leaf| self.map.reader().shape(leaf, time);
            leaf::complete_by_top(chain, top, maps, self.pages.as_mut(), shape);
        }
    }

    /// Whether the leaf is generated code other than the interpreter's.
    fn leaf_is_compiled(&mut self, chain: &[u64], time: u64, maps: &Maps) -> bool {
        let Some(leaf) = chain.first().filter(|ip| maps.in_code_cache(**ip)) else {
            return false;
        };
        self.interpreter(chain, time, maps)
            .is_none_or(|(start, end)| !(start..end).contains(leaf))
    }

    /// Follows the frame pointers in the stack again, and tags every frame of `chain` (leaf first) that is in the
    /// interpreter. `first` is the first frame of the chain with a frame pointer, if it is known.
    pub(super) fn mark(
        &mut self,
        chain: &mut Vec<u64>,
        first: Option<FirstFrame>,
        sample: &Sample<'_>,
        maps: &Maps,
    ) {
        let Some((start, end)) = self.interpreter(chain, sample.time, maps) else {
            return;
        };
        let inside = |ip: u64| (start..end).contains(&ip);
        if !chain.iter().any(|ip| inside(*ip)) {
            return;
        }
        self.marked.clear();
        let (mut known_from, mut frame) = match first {
            Some(first) => (first.depth, Some(first.frame)),
            None => first_frame(chain, sample),
        };
        let mut lost = false;
        let mut stack = Stack::new(sample, self.pages.as_mut());
        for (depth, ip) in chain.iter().enumerate() {
            let described = frame
                .filter(|_| depth >= known_from && inside(*ip))
                .and_then(|frame| {
                    let slot = frame.checked_sub(METHOD)?;
                    if depth > 0 {
                        let saved = stack.word(frame.checked_sub(BYTECODE)?)?;
                        return Some((stack.word(slot)?, saved));
                    }
                    // The innermost frame keeps the pointer in a register, so its slot is out of date. A frame under
                    // construction does not even contain the method.
                    let method = if slot < sample.stack_pointer {
                        sample.method_register
                    } else {
                        stack.word(slot)?
                    };
                    Some((method, sample.bytecode_register))
                });
            let word = described.and_then(|(method, bcp)| {
                if depth > 0 {
                    return self.tagged.caller(method, bcp);
                }
                let tagged = &mut self.tagged;
                tagged.leaf(method, bcp).or_else(|| {
                    // Compiled callers have another kind of frame, and leave the method in the register.
                    let is_other = !tagged.is_method(method);
                    is_other.then(|| tagged.leaf(sample.method_register, bcp))?
                })
            });
            self.marked.push(word.unwrap_or(*ip));
            if depth < known_from {
                continue;
            }
            // This frame saved the next frame's pointer, if the kernel continued in this way.
            frame = frame.filter(|frame| {
                chain
                    .get(depth + 1)
                    .is_some_and(|next| stack.return_address(*frame) == Some(*next))
            });
            frame = frame.and_then(|frame| stack.word(frame));
            // Towards the thread's start there is nothing left to name.
            if frame.is_none() && !lost && chain[depth + 1..].iter().any(|ip| inside(*ip)) {
                // Only once: frames found further up are walked to the end, or do not exist.
                lost = true;
                if let Some((found_at, found)) = further_up(&chain[depth + 1..], &mut stack) {
                    known_from = depth + 1 + found_at;
                    frame = Some(found);
                }
            }
        }
        std::mem::swap(chain, &mut self.marked);
    }

    /// The interpreter's code, known from the first frame in it.
    fn interpreter(&mut self, chain: &[u64], time: u64, maps: &Maps) -> Option<(u64, u64)> {
        if self.code.is_none() {
            let generated = chain.iter().filter(|ip| maps.in_code_cache(**ip));
            for ip in generated {
                let found = self
                    .map
                    .reader()
                    .resolve(*ip, time, false, &mut self.resolved);
                let is_interpreter = found == Lookup::Found
                    && self
                        .resolved
                        .frames
                        .first()
                        .is_some_and(|f| f.method == INTERPRETER);
                if is_interpreter {
                    self.code = Some((self.resolved.code_start, self.resolved.code_end));
                    break;
                }
            }
        }
        self.code
    }
}

/// The innermost frame with a known frame pointer, by depth. In system calls the kernel of x86-64 does not provide it, and
/// native code may use it for something else: then the stack is searched for the place where two frames of the chain link.
fn first_frame(chain: &[u64], sample: &Sample<'_>) -> (usize, Option<u64>) {
    let links = |frame: u64, depth: usize| {
        chain.get(depth + 1).is_some_and(|ret| {
            return_address(frame, |address| sample.stack_word(address)) == Some(*ret)
        })
    };
    let own = sample.frame_pointer;
    // A leaf without a frame leaves the register to its caller.
    if own < u64::MAX - 16
        && let Some(depth) = (0..2).find(|depth| links(own, *depth))
    {
        return (depth, Some(own));
    }
    let found = (0..3).find_map(|depth| {
        let slots = (0..).map(|slot| sample.stack_pointer + 8 * slot);
        slots
            .map_while(|frame| Some((frame, sample.stack_word(frame)?)))
            .find_map(|(frame, saved)| {
                let upward = saved > frame && saved < u64::MAX - 16;
                (upward && links(frame, depth) && links(saved, depth + 1))
                    .then_some((depth, Some(frame)))
            })
    });
    found.unwrap_or((0, None))
}

/// Where the rest of a chain can be followed again: native code may have filled the copy of the stack, and the frames
/// right above it are gone by now. Returns the first frame, by depth, from which the links in memory match the chain to
/// its end.
fn further_up(chain: &[u64], stack: &mut Stack<'_>) -> Option<(usize, u64)> {
    let from = stack.copy_end();
    for frame in (0..FURTHER_UP / 8).map(|slot| from + 8 * slot) {
        let (saved, ret) = (stack.word(frame)?, stack.return_address(frame)?);
        if saved <= frame || saved - frame > LARGEST_FRAME {
            continue;
        }
        let depths = (0..chain.len().saturating_sub(SURE)).filter(|depth| chain[depth + 1] == ret);
        for depth in depths {
            if follows(&chain[depth + 1..], frame, stack) {
                return Some((depth, frame));
            }
        }
    }
    None
}

/// Whether the links from a frame on match the return addresses, with enough certainty.
fn follows(returns: &[u64], mut frame: u64, stack: &mut Stack<'_>) -> bool {
    returns.iter().take(FOLLOWED).all(|ret| {
        let here = stack.return_address(frame) == Some(*ret);
        frame = stack.word(frame).unwrap_or(0);
        here
    })
}
