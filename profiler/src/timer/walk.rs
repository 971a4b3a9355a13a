//! Follows frame pointers up the thread's own stack.

/// Number of words that [`top`] returns.
pub(crate) const TOP_WORDS: usize = 8;

/// Longest chain, as in the kernel.
pub(super) const MAX_FRAMES: usize = 127;

/// Fills `chain` with the leaf address and the return addresses above it; returns their number. Async-signal-safe:
/// reads only between `rsp` and `stack_end`, which is mapped.
pub(super) fn frames(rip: u64, rsp: u64, rbp: u64, stack_end: u64, chain: &mut [u64]) -> usize {
    let Some(leaf) = chain.first_mut() else {
        return 0;
    };
    *leaf = rip;
    let mut frames = 1;
    let (mut frame, mut floor) = (rbp, rsp);
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
        chain[frames] = ret;
        frames += 1;
        floor = frame + 16;
        frame = saved;
    }
    frames
}

/// The stack pointer, the frame pointer, and the words on top of the stack: enough to find the caller of code without a
/// frame. Async-signal-safe; words above `stack_end` are 0.
pub(super) fn top(rsp: u64, rbp: u64, stack_end: u64) -> [u64; TOP_WORDS] {
    let mut top = [0; TOP_WORDS];
    top[0] = rsp;
    top[1] = rbp;
    let mut address = rsp;
    for word in &mut top[2..] {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_top_ends_with_the_stack() {
        let mut stack = Box::new([7u64; 8]);
        let base = stack.as_ptr() as u64;
        std::hint::black_box(&mut stack);
        assert_eq!(top(base, 1, base + 64), [base, 1, 7, 7, 7, 7, 7, 7]);
        assert_eq!(
            top(base + 48, 1, base + 64),
            [base + 48, 1, 7, 7, 0, 0, 0, 0]
        );
        assert_eq!(top(base + 1, 1, base + 64)[2..], [0; 6]);
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
        let n = frames(99, address(0), address(2), address(16), &mut chain);
        assert_eq!(chain[..n], [99, 111, 222]);
        assert_eq!(
            frames(99, address(0), address(15), address(16), &mut chain),
            1,
            "a frame must fit in the stack"
        );
        assert_eq!(frames(99, address(0), 12345, address(16), &mut chain), 1);
    }
}
