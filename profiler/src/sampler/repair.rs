//! Callchains that native code broke.
//!
//! The kernel follows frame pointers. Java code, stubs and libjvm keep them; a native library built
//! without them (a codec called through JNI) uses rbp for something else, and the chain ends before
//! the first Java frame. The copy of the stack that came with the sample still holds the link that
//! the first Java frame saved: a pair of a frame pointer that points further up the stack and a
//! return address into generated code. From there the frame pointers lead on. Worse, such code may
//! have the address of a frame further up in rbp: then the kernel's chain looks whole and is not. A few of
//! HotSpot's own routines (SHA-512) use rbp for a table, too: there the chain ends after its leaf.

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

/// Mends `chain` (leaf first) where it contains no generated code, left some out, or ends at a leaf of it.
pub(super) fn repair(chain: &mut Vec<u64>, sample: &Sample<'_>, maps: &Maps) -> Chain {
    let in_code = |word: u64| maps.in_code_cache(word);
    let generated = chain.iter().position(|ip| in_code(*ip));
    // Generated code is called by generated code, or by the JVM.
    let is_lost = generated == Some(0)
        && !chain
            .get(1)
            .is_some_and(|caller| in_code(*caller) || maps.in_jvm(*caller));
    if let Some(first) = generated
        && !is_lost
        && chain[..first].iter().all(|ip| maps.in_jvm(*ip))
    {
        return Chain::Whole;
    }
    let stack: Vec<u64> = sample.stack().collect();
    let Some(first) = stack.iter().position(|word| in_code(*word)) else {
        return match generated {
            Some(_) => Chain::Whole,
            None => Chain::Broken,
        };
    };
    let view = View {
        base: sample.stack_pointer,
        words: &stack,
    };
    let best = view.best_chain(first, &in_code);
    if is_lost {
        let Some(callers) = best else {
            return Chain::Whole;
        };
        chain.truncate(1);
        chain.extend(callers);
        return Chain::Repaired;
    }
    if let Some(generated) = generated {
        return match best.and_then(|callers| left_out(callers, &chain[generated..], &stack)) {
            Some(callers) => {
                chain.splice(1..generated, callers);
                Chain::Repaired
            }
            None => Chain::Whole,
        };
    }
    // The leaf is true; what followed it was read through a register that was no frame pointer.
    chain.truncate(1);
    match best {
        Some(callers) => chain.extend(callers),
        None => chain.push(stack[first]),
    }
    Chain::Repaired
}

/// Callers (leaf first) that the kernel's walk skipped before it came to `walked`: native code had a
/// frame's address in rbp, but not that of its own frame.
fn left_out(mut callers: Vec<u64>, walked: &[u64], stack: &[u64]) -> Option<Vec<u64>> {
    let first = *walked.first()?;
    match callers.iter().position(|ip| *ip == first) {
        Some(joins) => callers.truncate(joins),
        // Further up than the copy goes.
        None if !stack.contains(&first) => {}
        None => return None,
    }
    (!callers.is_empty()).then_some(callers)
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

    /// Return addresses of the innermost link that leads furthest up, from word `first` on. Buffers of
    /// native frames hold what earlier calls left there, old links among it: such a one breaks off, or
    /// joins the true chain further up.
    fn best_chain(&self, first: usize, in_code: &impl Fn(u64) -> bool) -> Option<Vec<u64>> {
        let mut best: Option<(u64, Vec<u64>)> = None;
        let candidates = (first.saturating_sub(1)..self.words.len().saturating_sub(1))
            .filter(|at| self.is_link(*at, in_code));
        for at in candidates.take(MAX_CANDIDATES) {
            let found = self.follow(at, in_code);
            if best.as_ref().is_none_or(|(reach, _)| found.0 > *reach) {
                best = Some(found);
            }
        }
        best.map(|(_, callers)| callers)
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
