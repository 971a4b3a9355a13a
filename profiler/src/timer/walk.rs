//! Following frame pointers up the thread's own stack.

/// Longest chain, as the kernel's.
pub(super) const MAX_FRAMES: usize = 127;

/// Fills `chain` with the leaf address and the return addresses above it; returns how many.
/// Async-signal-safe: reads only between `rsp` and `stack_end`, which is mapped.
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
        let (saved, ret) = unsafe { (*(frame as *const u64), *((frame + 8) as *const u64)) };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_links_upward_and_stops_at_anything_else() {
        // Three frames in a made-up stack: [link][return address] pairs.
        let mut stack = Box::new([0u64; 16]);
        let base = stack.as_ptr() as u64;
        let at = |index: u64| base + 8 * index;
        stack[2] = at(6);
        stack[3] = 111;
        stack[6] = at(1); // points down: the end
        stack[7] = 222;
        // The walk reads through addresses, which the compiler does not see.
        std::hint::black_box(&mut stack);
        let mut chain = [0; 8];
        let n = frames(99, at(0), at(2), at(16), &mut chain);
        assert_eq!(chain[..n], [99, 111, 222]);
        assert_eq!(
            frames(99, at(0), at(15), at(16), &mut chain),
            1,
            "a frame must fit in the stack"
        );
        assert_eq!(frames(99, at(0), 12345, at(16), &mut chain), 1);
    }
}
