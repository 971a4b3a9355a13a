//! Follows frame pointers up the thread's own stack.

use crate::arch::{self, Registers};

/// Number of words that [`top`] returns.
pub(crate) const TOP_WORDS: usize = 8;

/// Longest chain, as in the kernel.
pub(super) const MAX_FRAMES: usize = 127;

/// Fills `chain` with the leaf address and the return addresses above it; returns their number. Async-signal-safe:
/// reads only between the stack pointer and `stack_end`, which is mapped.
pub(super) fn frames(registers: &Registers, stack_end: u64, chain: &mut [u64]) -> usize {
    let Some(leaf) = chain.first_mut() else {
        return 0;
    };
    *leaf = registers.pc;
    let mut frames = 1;
    let (mut frame, mut floor) = (registers.fp, registers.sp);
    while frames < chain.len()
        && frame >= floor
        && frame.is_multiple_of(8)
        && frame.checked_add(16).is_some_and(|end| end <= stack_end)
    {
        // SAFETY: [frame, frame + 16) lies between the thread's stack pointer and the end of its
        // stack, all of which is mapped while the thread (on which this runs) is in this frame.
        let (saved, mut ret) = unsafe { (*(frame as *const u64), *((frame + 8) as *const u64)) };
        if ret == u64::MAX && frame + 24 <= stack_end {
            // At a method's entry barrier, the return address is one word further up.
            // SAFETY: as above, [frame + 16, frame + 24).
            ret = unsafe { *((frame + 16) as *const u64) };
        }
        if ret == 0 {
            break;
        }
        chain[frames] = arch::code_address(ret);
        frames += 1;
        floor = frame + 16;
        frame = saved;
    }
    frames
}

/// The stack pointer, the frame pointer, the link register if there is one, and the words on top of the stack: enough to
/// find the caller of code without a frame. Async-signal-safe; words above `stack_end` are 0.
pub(super) fn top(registers: &Registers, stack_end: u64) -> [u64; TOP_WORDS] {
    let mut top = [0; TOP_WORDS];
    let (first, words) = top.split_at_mut(arch::TOP_REGISTERS);
    for (word, register) in first
        .iter_mut()
        .zip([registers.sp, registers.fp, registers.link])
    {
        *word = register;
    }
    let mut address = registers.sp;
    for word in words {
        if !address.is_multiple_of(8) || address.checked_add(8).is_none_or(|end| end > stack_end) {
            break;
        }
        // SAFETY: [at, at + 8) lies between the stack pointer of the thread on which this runs and the
        // end of its stack.
        *word = unsafe { *(address as *const u64) };
        address += 8;
    }
    top
}

/// The registers (without the address of the instruction) and the words on top of the stack, from [`top`].
pub(crate) fn split_top(top: &[u64; TOP_WORDS]) -> (Registers, &[u64]) {
    let (registers, words) = top.split_at(arch::TOP_REGISTERS);
    let register = |index: usize| registers.get(index).copied().unwrap_or_default();
    let registers = Registers {
        pc: 0,
        sp: register(0),
        fp: register(1),
        link: register(2),
    };
    (registers, words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registers(sp: u64, fp: u64) -> Registers {
        let (pc, link) = (99, if arch::HAS_LINK { 5 } else { 0 });
        Registers { pc, sp, fp, link }
    }

    #[test]
    fn the_top_ends_with_the_stack() {
        let mut stack = Box::new([7u64; 8]);
        let base = stack.as_ptr() as u64;
        std::hint::black_box(&mut stack);
        // The registers that `top` says, and how many words of the stack.
        let read = |sp| {
            let top = top(&registers(sp, 1), base + 64);
            let (found, words) = split_top(&top);
            assert_eq!(
                found,
                Registers {
                    pc: 0,
                    ..registers(sp, 1)
                }
            );
            let read = words.iter().take_while(|word| **word == 7).count();
            assert!(words[read..].iter().all(|word| *word == 0), "{words:?}");
            read
        };
        assert_eq!(read(base), TOP_WORDS - arch::TOP_REGISTERS);
        assert_eq!(read(base + 48), 2);
        assert_eq!(read(base + 1), 0);
    }

    #[test]
    fn follows_links_upward_and_stops_at_anything_else() {
        // Three frames in a made-up stack: pairs of link and return address.
        let mut stack = Box::new([0u64; 16]);
        let base = stack.as_ptr() as u64;
        let address = |index: u64| base + 8 * index;
        stack[2] = address(6);
        stack[3] = 111;
        stack[6] = address(1); // points down: the end
        stack[7] = 222;
        // The walk reads through addresses, which the compiler cannot see.
        std::hint::black_box(&mut stack);
        let mut chain = [0; 8];
        let n = frames(&registers(address(0), address(2)), address(16), &mut chain);
        assert_eq!(chain[..n], [99, 111, 222]);
        assert_eq!(
            frames(&registers(address(0), address(15)), address(16), &mut chain),
            1,
            "a frame must fit in the stack"
        );
        let unaligned = registers(address(0), 12345);
        assert_eq!(frames(&unaligned, address(16), &mut chain), 1);
    }
}
