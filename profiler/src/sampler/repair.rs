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

/// Links tried; the true one is among the first.
const MAX_CANDIDATES: usize = 64;
/// No frame is larger.
const LARGEST_FRAME: u64 = 1 << 20;

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
    let in_code = |word: u64| maps.in_code_cache(word);
    let Some(first) = stack.iter().position(|word| in_code(*word)) else {
        return Chain::Broken;
    };
    let view = View {
        base: sample.stack_pointer,
        words: &stack,
    };
    // Buffers of native frames hold what earlier calls left there, old links among it. The true link
    // leads furthest up; an old one breaks off, or joins the true chain further up.
    let mut best: Option<(u64, Vec<u64>)> = None;
    let candidates =
        (first + 1..stack.len().saturating_sub(1)).filter(|at| view.is_link(*at, &in_code));
    for at in candidates.take(MAX_CANDIDATES) {
        let found = view.follow(at, &in_code);
        if best.as_ref().is_none_or(|(reach, _)| found.0 > *reach) {
            best = Some(found);
        }
    }
    // The leaf is true; what followed it was read through a register that was no frame pointer.
    chain.truncate(1);
    match best {
        Some((_, callers)) => chain.extend(callers),
        None => chain.push(stack[first]),
    }
    Chain::Repaired
}

/// The copy of the stack by address.
struct View<'a> {
    base: u64,
    words: &'a [u64],
}

impl View<'_> {
    fn address(&self, index: usize) -> u64 {
        self.base + 8 * index as u64
    }

    fn index(&self, address: u64) -> Option<usize> {
        let offset = address.checked_sub(self.base)?;
        let index = usize::try_from(offset / 8).ok()?;
        (offset.is_multiple_of(8) && index + 1 < self.words.len()).then_some(index)
    }

    /// Whether a frame pointer that leads up and a return address into generated code stand there.
    fn is_link(&self, at: usize, in_code: &impl Fn(u64) -> bool) -> bool {
        let (saved, own) = (self.words[at], self.address(at));
        saved > own && saved - own < LARGEST_FRAME && in_code(self.words[at + 1])
    }

    /// Return addresses from a link on, and the highest address they lead to.
    fn follow(&self, from: usize, in_code: &impl Fn(u64) -> bool) -> (u64, Vec<u64>) {
        let (mut at, mut callers) = (from, Vec::new());
        loop {
            callers.push(self.words[at + 1]);
            let saved = self.words[at];
            match self.index(saved) {
                Some(next) if callers.len() < MAX_FRAMES && self.is_link(next, in_code) => {
                    at = next
                }
                // Out of the copy: as far as can be seen.
                None => return (saved, callers),
                Some(_) => return (self.address(at), callers),
            }
        }
    }
}
