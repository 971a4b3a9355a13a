//! Generated code without a frame of its own: not yet, no longer, or never.
//!
//! Until a method has saved the frame pointer, and after it has restored it, the frame pointer is its caller's: the kernel
//! then mistakes the caller's caller for the caller. Small methods spend much of their time there, and vtable and itable
//! stubs all of it. `arch` knows where the return address is then.

use unfuse_codemap::Shape;

use super::stack::{Stack, return_address};
use crate::arch::{self, AFTER, BEFORE, Return};
use crate::maps::Maps;
use crate::memory::Pages;
use crate::perf_event::{NO_ADDRESS, Sample};
use crate::timer::{TOP_WORDS, split_top};

/// Longest chain, as in the kernel.
const MAX_FRAMES: usize = 127;
/// Inserts the caller that the kernel skipped into `chain` (leaf first). The leaf must be in generated code, but not in
/// the interpreter's; `shape` finds its code's.
pub(super) fn complete(
    chain: &mut Vec<u64>,
    sample: &Sample<'_>,
    maps: &Maps,
    mut pages: Option<&mut Pages>,
    shape: impl FnOnce(u64) -> Option<Shape>,
) {
    let Some(leaf) = chain.first().copied() else {
        return;
    };
    let code = || code_around(leaf, pages.as_deref_mut());
    let word = |address| sample.stack_word(address);
    let in_code = |address: u64| maps.in_code_cache(address);
    let is_own = |address| is_in(shape(leaf), address);
    let walked = chain.get(1).copied();
    match arch::leaf_return(sample.registers(leaf), walked, code, word, in_code, is_own) {
        Some(Return::Link(caller)) => chain.insert(1, caller),
        Some(Return::Slot(slot)) => {
            if let Some(caller) = word(slot).filter(|caller| in_code(*caller)) {
                chain.insert(1, caller);
            }
        }
        Some(Return::Frame(frame)) => {
            let callers = walk(frame, &mut Stack::new(sample, pages));
            if callers.first().is_some_and(|caller| in_code(*caller)) {
                chain.truncate(1);
                chain.extend(callers);
            }
        }
        None => {}
    }
}

/// The same if only the stack and frame pointers and the words on top of the stack are known.
pub(super) fn complete_by_top(
    chain: &mut Vec<u64>,
    top: &[u64; TOP_WORDS],
    maps: &Maps,
    code: Option<&mut Pages>,
    shape: impl FnOnce(u64) -> Option<Shape>,
) {
    let Some(leaf) = chain.first().copied() else {
        return;
    };
    let (registers, words) = split_top(top);
    let word = |address: u64| {
        let offset = usize::try_from(address.checked_sub(registers.sp)?).ok()?;
        words.get(offset / 8).filter(|_| offset % 8 == 0).copied()
    };
    let in_code = |address: u64| maps.in_code_cache(address);
    let is_own = |address| is_in(shape(leaf), address);
    let walked = chain.get(1).copied();
    let code = || code_around(leaf, code);
    let found = arch::leaf_return(registers, walked, code, word, in_code, is_own);
    let (slot, kept) = match found {
        Some(Return::Link(caller)) => {
            chain.insert(1, caller);
            return;
        }
        Some(Return::Slot(slot)) => (Some(slot), chain.len()),
        // The chain read through the frame pointer is wrong, and the frames further up are unknown.
        Some(Return::Frame(frame)) => (frame.checked_add(8), 1),
        None => return,
    };
    if let Some(caller) = slot.and_then(word).filter(|caller| in_code(*caller)) {
        chain.truncate(kept);
        chain.insert(1, caller);
    }
}

/// Whether an address is in the code of a shape.
fn is_in(shape: Option<Shape>, address: u64) -> bool {
    shape.is_some_and(|shape| (shape.code_start..shape.code_end).contains(&address))
}

/// The code around a leaf's address; zeros if it cannot be read.
fn code_around(leaf: u64, code: Option<&mut Pages>) -> [u8; BEFORE + AFTER] {
    let mut bytes = [0; BEFORE + AFTER];
    let read = code
        .zip(leaf.checked_sub(BEFORE as u64))
        .map(|(code, from)| code.read(&mut bytes, from));
    if read == Some(bytes.len()) {
        bytes
    } else {
        [0; BEFORE + AFTER]
    }
}

/// Inserts the methods whose entry barriers run, for which the kernel found no address.
pub(super) fn complete_barriers(chain: &mut Vec<u64>, sample: &Sample<'_>) {
    if !chain.contains(&NO_ADDRESS) {
        return;
    }
    let word = |address| sample.stack_word(address);
    let mut frame = sample.frame_pointer;
    for ret in &mut chain[1..] {
        if frame.checked_add(8).and_then(word) != Some(*ret) {
            break;
        }
        if let Some(address) = return_address(frame, word) {
            *ret = address;
        }
        let Some(saved) = word(frame) else { break };
        frame = saved;
    }
    chain.retain(|address| *address != NO_ADDRESS);
}

/// Return addresses from a frame on.
fn walk(mut frame: u64, stack: &mut Stack<'_>) -> Vec<u64> {
    let mut callers = Vec::new();
    while callers.len() < MAX_FRAMES
        && let Some(saved) = stack.word(frame)
        && let Some(ret) = stack.return_address(frame)
        && ret != 0
    {
        callers.push(ret);
        if saved <= frame {
            break;
        }
        frame = saved;
    }
    callers
}
