//! Callchains that native code broke.
//!
//! The kernel follows frame pointers. Java code, stubs and libjvm keep them; a native library built
//! without them (a codec called through JNI) uses rbp for something else, and the chain ends before
//! the first Java frame. The copy of the stack that came with the sample still holds the link that
//! the first Java frame saved: a pair of a frame pointer that points further up the stack and a
//! return address into generated code. From there the frame pointers lead on.

use crate::maps::Maps;
use crate::perf_event::Sample;

/// Longest chain, as the kernel's.
const MAX_FRAMES: usize = 127;

/// What became of a chain.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Chain {
    /// It was whole.
    Whole,
    /// It has been mended in place.
    Repaired,
    /// It ends before Java code, and the stack does not tell how it goes on.
    Broken,
}

/// Mends `chain` (leaf first) where it contains no generated code.
pub(super) fn repair(chain: &mut Vec<u64>, sample: &Sample<'_>, maps: &Maps) -> Chain {
    if chain.iter().any(|ip| maps.in_code_cache(*ip)) {
        return Chain::Whole;
    }
    let stack: Vec<u64> = sample.stack().collect();
    let base = sample.stack_pointer;
    let in_code = |word: u64| maps.in_code_cache(word);
    let Some(first) = stack.iter().position(|word| in_code(*word)) else {
        return Chain::Broken;
    };
    // The leaf is true; what followed it was read through a register that was no frame pointer.
    chain.truncate(1);
    chain.push(stack[first]);
    let end = base + 8 * stack.len() as u64;
    let index_of = |address: u64| {
        (address >= base && address < end && address.is_multiple_of(8))
            .then(|| ((address - base) / 8) as usize)
    };
    let link = (first + 1..stack.len().saturating_sub(1)).find(|at| {
        let own = base + 8 * *at as u64;
        stack[*at] > own && stack[*at] - own < (8 << 20) && in_code(stack[at + 1])
    });
    let mut at = link;
    while let Some(index) = at {
        let (Some(saved), Some(ret)) = (stack.get(index), stack.get(index + 1)) else {
            break;
        };
        chain.push(*ret);
        let own = base + 8 * index as u64;
        if chain.len() >= MAX_FRAMES || *saved <= own {
            break;
        }
        at = index_of(*saved);
    }
    Chain::Repaired
}
