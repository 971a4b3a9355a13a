//! What samplers know about the processor: registers, frames, and the instructions at the start and end of a method.
//!
//! There is one module for each processor, with the same items. What they know is plain data and functions on it, so the
//! tests of both run on either.

#[cfg(any(test, target_arch = "aarch64"))]
#[cfg_attr(all(test, not(target_arch = "aarch64")), allow(dead_code))]
mod aarch64;
#[cfg(any(test, target_arch = "x86_64"))]
#[cfg_attr(all(test, not(target_arch = "x86_64")), allow(dead_code))]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64::*;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::*;

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("unfuse knows the frames of x86-64 and aarch64 only");

/// Registers of a thread where it was interrupted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Registers {
    /// Address of the current instruction.
    pub(crate) pc: u64,
    /// The stack pointer.
    pub(crate) sp: u64,
    /// The frame pointer, with any content.
    pub(crate) fp: u64,
    /// The link register, with any content; 0 where the processor has none.
    pub(crate) link: u64,
}

/// The use of a register that the kernel samples.
#[allow(dead_code, reason = "no processor has all of them")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The interpreter has the `Method*` there while it makes a frame.
    Method,
    /// The interpreter has its bytecode pointer there.
    Bytecode,
    /// The frame pointer.
    FramePointer,
    /// The stack pointer.
    StackPointer,
    /// The link register.
    Link,
}

/// The mask of perf_event_open(2) for registers.
const fn mask(registers: &[(u32, Role)]) -> u64 {
    let (mut mask, mut index) = (0, 0);
    while index < registers.len() {
        mask |= 1 << registers[index].0;
        index += 1;
    }
    mask
}

/// The place of a leaf's return address, where the frame is not as a walk by frame pointers assumes.
#[allow(dead_code, reason = "no processor has all of them")]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Return {
    /// In a slot of the stack; the frame pointer is the caller's.
    Slot(u64),
    /// In the leaf's own frame, which begins here; the frame pointer is not set to it yet.
    Frame(u64),
    /// In the link register, which has this address; the frame pointer is the caller's.
    Link(u64),
}

/// A way to leave compiled code by the size of its frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exit {
    /// The caller's stack pointer.
    pub(crate) sp: u64,
    /// The return address.
    pub(crate) pc: Saved,
    /// The caller's frame pointer.
    pub(crate) fp: Saved,
}

/// Ways to leave code, likeliest first.
pub(crate) type Exits = [Option<Exit>; 3];

/// Where a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Saved {
    /// At an address in the stack.
    At(u64),
    /// Known: from a register.
    Known(u64),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel writes sampled registers in the order of their numbers.
    #[test]
    fn sampled_registers_are_in_order_of_their_numbers() {
        for registers in [&x86_64::SAMPLED[..], &aarch64::SAMPLED[..]] {
            assert!(registers.is_sorted_by(|(one, _), (next, _)| one < next));
            assert_eq!(mask(registers).count_ones() as usize, registers.len());
        }
    }
}
