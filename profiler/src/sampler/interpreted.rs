//! Which frames of a callchain are interpreted, and what they interpret.
//!
//! In a chain, such a frame is three words: its address with [`INTERPRETED`] set, the `Method*` and the
//! bytecode pointer. So equal chains are equal words, and nothing needs to be carried beside them.

use unfuse_codemap::{CodeMap, Lookup, Resolved};

use super::stack::Stack;
use crate::maps::Maps;
use crate::memory::Memory;
use crate::perf_event::Sample;

/// Set in a chain's word whose next two words are a `Method*` and a bytecode pointer.
pub(super) const INTERPRETED: u64 = 1 << 63;

/// Slots of an interpreter frame, bytes below its frame pointer (x86-64, JDK 17 to 25).
pub(super) const METHOD: u64 = 3 * 8;
pub(super) const BYTECODE: u64 = 8 * 8;

/// Bytes above the copy of the stack that are searched for frames.
const FURTHER_UP: u64 = 64 << 10;
/// No frame is larger.
const LARGEST_FRAME: u64 = 64 << 10;
/// Links that must fit, at least and at most.
const SURE: usize = 3;
const FOLLOWED: usize = 32;

/// The name under which the VM reports the interpreter's code.
pub(super) const INTERPRETER: &str = "Interpreter";

/// Marks interpreted frames.
pub(super) struct Interpreted<'a> {
    map: &'a CodeMap,
    /// The thread's memory, for frames above the sample's copy of the stack.
    memory: Option<Memory>,
    /// Where the interpreter's code is, once seen.
    code: Option<(u64, u64)>,
    resolved: Resolved,
    marked: Vec<u64>,
}

impl<'a> Interpreted<'a> {
    pub(super) fn new(map: &'a CodeMap, memory: Option<Memory>) -> Self {
        Self {
            map,
            memory,
            code: None,
            resolved: Resolved::default(),
            marked: Vec::new(),
        }
    }

    /// Follows the frame pointers again, in the stack, and marks every frame of
    /// `chain` (leaf first, as the kernel walked it) that is in the interpreter.
    pub(super) fn mark(&mut self, chain: &mut Vec<u64>, sample: &Sample<'_>, maps: &Maps) {
        let Some((start, end)) = self.interpreter(chain, sample.time, maps) else {
            return;
        };
        let inside = |ip: u64| (start..end).contains(&ip);
        if !chain.iter().any(|ip| inside(*ip)) {
            return;
        }
        self.marked.clear();
        let (mut known_from, mut frame) = first_frame(chain, sample);
        let mut lost = false;
        let mut stack = Stack::new(sample, self.memory.as_ref());
        for (depth, ip) in chain.iter().enumerate() {
            let described = frame
                .filter(|_| depth >= known_from && inside(*ip))
                .and_then(|frame| {
                    let method = stack.word(frame.checked_sub(METHOD)?)?;
                    let saved = stack.word(frame.checked_sub(BYTECODE)?)?;
                    // The innermost frame keeps the pointer in a register, the slot is out of date.
                    let bcp = if depth == 0 {
                        sample.bytecode_register
                    } else {
                        saved
                    };
                    Some((method, bcp))
                });
            match described {
                Some((method, bcp)) => self.marked.extend([ip | INTERPRETED, method, bcp]),
                None => self.marked.push(*ip),
            }
            if depth < known_from {
                continue;
            }
            // The next frame's pointer was saved by this one, if this is how the kernel went on.
            frame = frame.filter(|frame| {
                chain
                    .get(depth + 1)
                    .is_some_and(|next| stack.word(frame + 8) == Some(*next))
            });
            frame = frame.and_then(|frame| stack.word(frame));
            if frame.is_none() && !lost {
                // Only once: what is found further up is walked to the end, or is not there.
                lost = true;
                if let Some((found_at, found)) = further_up(&chain[depth + 1..], &mut stack) {
                    known_from = depth + 1 + found_at;
                    frame = Some(found);
                }
            }
        }
        std::mem::swap(chain, &mut self.marked);
    }

    /// The interpreter's code: known from the first frame that is in it.
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

/// The innermost frame whose pointer is known, by depth. In system calls the kernel does not tell rbp,
/// and native code may use it for something else: then the place where two frames of the chain link
/// is looked for in the stack.
fn first_frame(chain: &[u64], sample: &Sample<'_>) -> (usize, Option<u64>) {
    let links = |frame: u64, depth: usize| {
        chain
            .get(depth + 1)
            .is_some_and(|ret| sample.stack_word(frame + 8) == Some(*ret))
    };
    let own = sample.frame_pointer;
    if own < u64::MAX - 16 && links(own, 0) {
        return (0, Some(own));
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

/// Where the rest of a chain can be followed again: native code may have filled the copy of the stack,
/// and the frames right above it are gone by now. The first frame, by depth, from which the links in
/// memory are those of the chain to its end.
fn further_up(chain: &[u64], stack: &mut Stack<'_>) -> Option<(usize, u64)> {
    let from = stack.copy_end();
    for frame in (0..FURTHER_UP / 8).map(|slot| from + 8 * slot) {
        let (saved, ret) = (stack.word(frame)?, stack.word(frame + 8)?);
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

/// Whether the links from a frame on are the return addresses given, as far as is sure.
fn follows(returns: &[u64], mut frame: u64, stack: &mut Stack<'_>) -> bool {
    returns.iter().take(FOLLOWED).all(|ret| {
        let here = stack.word(frame + 8) == Some(*ret);
        frame = stack.word(frame).unwrap_or(0);
        here
    })
}
