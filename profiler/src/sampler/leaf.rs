//! Generated code without a frame of its own: not yet, no longer, or never.
//!
//! Until a method has saved rbp, and after it has restored it, rbp is its caller's: the kernel then mistakes the
//! caller's caller for the caller. Small methods spend much of their time there, and vtable and itable stubs all of it.
//! The return address is then on top of the stack, or where the prologue implies.

use super::stack::{Stack, return_address};
use crate::maps::Maps;
use crate::memory::{Memory, Pages};
use crate::perf_event::{NO_ADDRESS, Sample};
use crate::timer::TOP_WORDS;

/// Longest chain, as in the kernel.
const MAX_FRAMES: usize = 127;
/// Bytes of code that are examined before and after the leaf's address.
const BEFORE: usize = 8;
const AFTER: usize = 8;
const PUSH_RBP: u8 = 0x55;

/// The place of a leaf's return address.
#[derive(Debug, PartialEq, Eq)]
enum Return {
    /// In a slot of the stack; rbp is the caller's.
    Slot(u64),
    /// In the leaf's own frame, which begins here; rbp is not set to it yet.
    Frame(u64),
}

/// Inserts the caller that the kernel skipped into `chain` (leaf first). The leaf must be in generated code, but not in
/// the interpreter's.
pub(super) fn complete(
    chain: &mut Vec<u64>,
    sample: &Sample<'_>,
    maps: &Maps,
    memory: Option<&Memory>,
    code: Option<&mut Pages>,
) {
    let Some(leaf) = chain.first().copied() else {
        return;
    };
    let code = || code_around(leaf, code);
    let word = |address| sample.stack_word(address);
    let registers = (sample.stack_pointer, sample.frame_pointer);
    let in_code = |address: u64| maps.in_code_cache(address);
    match find(code, registers, word, in_code) {
        Some(Return::Slot(slot)) => {
            if let Some(caller) = word(slot).filter(|caller| in_code(*caller)) {
                chain.insert(1, caller);
            }
        }
        Some(Return::Frame(frame)) => {
            let callers = walk(frame, &mut Stack::new(sample, memory));
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
) {
    let Some(leaf) = chain.first().copied() else {
        return;
    };
    let [rsp, rbp, words @ ..] = top;
    let word = |address: u64| {
        let offset = usize::try_from(address.checked_sub(*rsp)?).ok()?;
        words.get(offset / 8).filter(|_| offset % 8 == 0).copied()
    };
    let in_code = |address: u64| maps.in_code_cache(address);
    let code = || code_around(leaf, code);
    let found = find(code, (*rsp, *rbp), word, in_code);
    let (slot, kept) = match found {
        Some(Return::Slot(slot)) => (Some(slot), chain.len()),
        // The chain read through rbp is wrong, and the frames further up are unknown.
        Some(Return::Frame(frame)) => (frame.checked_add(8), 1),
        None => return,
    };
    if let Some(caller) = slot.and_then(word).filter(|caller| in_code(*caller)) {
        chain.truncate(kept);
        chain.insert(1, caller);
    }
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

/// The place of the return address, if the frame is not as the kernel assumes. `code` reads the code around the leaf.
fn find(
    code: impl FnOnce() -> [u8; BEFORE + AFTER],
    (rsp, rbp): (u64, u64),
    word: impl Fn(u64) -> Option<u64>,
    in_code: impl Fn(u64) -> bool,
) -> Option<Return> {
    // Compiled code keeps rsp a multiple of 16; a call pushes eight bytes.
    if rsp % 16 == 8 && in_code(word(rsp)?) {
        return Some(Return::Slot(rsp));
    }
    let code = code();
    let (before, after) = code.split_at(BEFORE);
    // push rbp; here; mov rbp, rsp. The two words alone are no proof: an earlier callee of the same caller leaves them
    // on the stack, and this one may not have overwritten them yet.
    let is_pushed = code == [0; BEFORE + AFTER] || before.ends_with(&[PUSH_RBP]);
    if is_pushed && word(rsp) == Some(rbp) && rbp > rsp && in_code(word(rsp + 8)?) {
        return Some(Return::Slot(rsp + 8));
    }
    // Methods that call nothing begin: sub rsp, n+8; mov [rsp+n], rbp; mov rbp, rsp; add rbp, n
    let saves = |bytes: &[u8]| match bytes {
        [0x48, 0x89, 0x6c, 0x24, n] => Some(u64::from(*n)),
        _ => None,
    };
    let saved_at = match (saves(&before[3..]), saves(&after[..5])) {
        (Some(n), _) if after.starts_with(&[0x48, 0x8b, 0xec]) => Some(n),
        (_, Some(n)) if before[1..].starts_with(&[0x48, 0x81, 0xec]) => Some(n),
        _ => None,
    };
    if let Some(n) = saved_at {
        return Some(Return::Slot(rsp + n + 8));
    }
    match after {
        [0x48, 0x83, 0xc5, n, ..] if before.ends_with(&[0x48, 0x8b, 0xec]) && rbp == rsp => {
            Some(Return::Frame(rbp + u64::from(*n)))
        }
        _ => None,
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// `sub rsp, 0x18; mov [rsp+0x10], rbp; mov rbp, rsp; add rbp, 0x10; imul …`, with the code before it.
    const LEAF: [u8; 41] = [
        0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, // 8
        0x48, 0x81, 0xec, 0x18, 0, 0, 0, // 15
        0x48, 0x89, 0x6c, 0x24, 0x10, // 20
        0x48, 0x8b, 0xec, // 23
        0x48, 0x83, 0xc5, 0x10, // 27
        0x48, 0x8b, 0xc2, 0x48, 0x6b, 0xc0, 0x0b, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90,
    ];

    /// The state before the instruction at `offset`, the return address in `CALLER`'s slot at 0x1028.
    fn before(offset: usize, rsp: u64, rbp: u64) -> Option<Return> {
        let code = LEAF[offset - BEFORE..offset + AFTER].try_into().unwrap();
        let word = |address| match address {
            0x1028 => Some(7),
            0x1020 => Some(0x1100),
            0x1000..0x1200 => Some(0),
            _ => None,
        };
        find(|| code, (rsp, rbp), word, |address| address == 7)
    }

    #[test]
    fn each_instruction_of_a_leaf_method_has_its_return_address() {
        assert_eq!(before(8, 0x1028, 0x1100), Some(Return::Slot(0x1028)));
        assert_eq!(before(15, 0x1010, 0x1100), Some(Return::Slot(0x1028)));
        assert_eq!(before(20, 0x1010, 0x1100), Some(Return::Slot(0x1028)));
        assert_eq!(before(23, 0x1010, 0x1010), Some(Return::Frame(0x1020)));
        assert_eq!(before(27, 0x1010, 0x1020), None);
    }

    #[test]
    fn a_saved_frame_pointer_on_top_is_the_callers_where_it_has_just_been_pushed() {
        let word = |address| match address {
            0x1028 => Some(7),
            0x1020 => Some(0x1100),
            _ => None,
        };
        let found = |code: &[u8; BEFORE + AFTER]| {
            find(|| *code, (0x1020, 0x1100), word, |address| address == 7)
        };
        let pushed = [
            0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, PUSH_RBP, 0x48, 0x8b, 0xec, 0, 0, 0, 0, 0,
        ];
        assert_eq!(found(&pushed), Some(Return::Slot(0x1028)));
        // Unreadable code may be that.
        assert_eq!(found(&[0; BEFORE + AFTER]), Some(Return::Slot(0x1028)));
        // An earlier callee left the two words.
        assert_eq!(found(&[0x90; BEFORE + AFTER]), None);
        assert_eq!(before(27, 0x1020, 0x1100), None);
    }
}
