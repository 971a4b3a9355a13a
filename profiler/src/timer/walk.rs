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
        let (saved, mut ret) = unsafe { (*(frame as *const u64), *((frame + 8) as *const u64)) };
        if ret == u64::MAX && frame + 24 <= stack_end {
            // The barrier at a method's entry has the return address one further up.
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

/// The return address of code that has no frame, if what is interrupted is generated code: in a frame,
/// the stack pointer is a multiple of 16. 0 where there is none. Async-signal-safe.
pub(super) fn frameless_return(rsp: u64, rbp: u64, stack_end: u64) -> u64 {
    if !rsp.is_multiple_of(8) || rsp.checked_add(16).is_none_or(|end| end > stack_end) {
        return 0;
    }
    // SAFETY: [rsp, rsp + 16) is the top of the stack of the thread on which this runs.
    let (top, second) = unsafe { (*(rsp as *const u64), *((rsp + 8) as *const u64)) };
    if rsp % 16 == 8 {
        top
    } else if top == rbp && rbp > rsp {
        // rbp has been saved, and nothing else yet.
        second
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_frame_the_return_address_is_on_top() {
        #[repr(align(16))]
        struct Words([u64; 8]);
        let mut stack = Box::new(Words([0, 111, 0, 222, 0, 0, 0, 0]));
        let base = stack.0.as_ptr() as u64;
        stack.0[2] = base + 48;
        std::hint::black_box(&mut stack);
        let end = base + 64;
        assert_eq!(frameless_return(base + 8, base + 48, end), 111);
        assert_eq!(frameless_return(base + 16, base + 48, end), 222);
        assert_eq!(frameless_return(base, base + 48, end), 0);
        assert_eq!(frameless_return(base + 56, base + 56, end), 0);
    }

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
