//! Corrects the kernel's callchains.

use super::interpreted::{CALLERS_MISSING, InterpretedFrames, TaggedFrames};
use super::repair::{self, Chain};
use super::unwind::Unwinder;
use crate::maps::Maps;
use crate::perf_event::Sample;
use crate::timer::TOP_WORDS;

/// The methods, by how the JVM was started.
pub(super) enum Chains<'a> {
    /// The JVM keeps frame pointers.
    Pointers(InterpretedFrames<'a>),
    /// The JVM was attached to, and need not keep them.
    Sizes(Unwinder<'a>),
}

impl Chains<'_> {
    /// Called before each batch of samples.
    pub(super) fn begin(&mut self, now: u64) {
        self.tagged().begin(now);
    }

    /// The meaning of tagged words in chains.
    pub(super) fn tagged(&mut self) -> &mut TaggedFrames {
        match self {
            Self::Pointers(interpreted) => interpreted.tagged(),
            Self::Sizes(unwinder) => unwinder.tagged(),
        }
    }

    /// Completes, repairs and tags a chain (leaf first) from the kernel's walk.
    pub(super) fn complete(
        &mut self,
        chain: &mut Vec<u64>,
        sample: &Sample<'_>,
        maps: &Maps,
    ) -> Chain {
        let state = match self {
            Self::Pointers(interpreted) => {
                interpreted.complete(chain, sample, maps);
                let state = repair::repair(chain, sample, maps, |ip| {
                    interpreted.is_described(ip, sample.time)
                });
                interpreted.mark(chain, sample, maps);
                state
            }
            Self::Sizes(unwinder) => unwinder.unwind(chain, sample, maps),
        };
        let dropped = repair::drop_non_code_frames(chain, self.tagged(), maps);
        match state {
            Chain::Whole if dropped => Chain::Repaired,
            Chain::Broken if matches!(self, Self::Sizes(_)) => {
                chain.push(CALLERS_MISSING);
                state
            }
            state => state,
        }
    }

    /// Completes a chain from a CPU timer, which needs frame pointers.
    pub(super) fn complete_by_top(
        &mut self,
        chain: &mut Vec<u64>,
        time: u64,
        top: &[u64; TOP_WORDS],
        maps: &Maps,
    ) {
        if let Self::Pointers(interpreted) = self {
            interpreted.complete_by_top(chain, time, top, maps);
        }
    }
}
