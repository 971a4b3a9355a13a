//! Corrects the kernel's callchains.

use unfuse_codemap::CodeMap;

use super::interpreted::{CALLERS_MISSING, InterpretedFrames, TaggedFrames};
use super::native::NativeUnwinder;
use super::repair::{self, Chain};
use super::unwind::Unwinder;
use crate::interpreter::Methods;
use crate::maps::Maps;
use crate::memory::Memory;
use crate::perf_event::Sample;
use crate::timer::TOP_WORDS;

/// The methods, by how the JVM was started.
pub(super) enum Chains<'a> {
    /// The JVM keeps frame pointers. Libraries are unwound by their tables, if the JVM's memory can be read.
    Pointers(InterpretedFrames<'a>, Option<NativeUnwinder>),
    /// The JVM was attached to, and need not keep them.
    Sizes(Unwinder<'a>),
}

impl<'a> Chains<'a> {
    /// For a JVM with frame pointers if `has_pointers`. `memory` is the JVM's, if it can be read.
    pub(super) fn new(
        map: &'a CodeMap,
        memory: Option<Memory>,
        methods: Option<Methods>,
        has_pointers: bool,
    ) -> Self {
        let for_tables = memory.as_ref().and_then(|memory| memory.try_clone().ok());
        let native = for_tables.map(NativeUnwinder::new);
        if has_pointers {
            Self::Pointers(InterpretedFrames::new(map, memory, methods), native)
        } else {
            Self::Sizes(Unwinder::new(map, memory, native, methods))
        }
    }

    /// Called before each batch of samples.
    pub(super) fn begin(&mut self, now: u64) {
        match self {
            Self::Pointers(interpreted, _) => interpreted.begin(now),
            Self::Sizes(unwinder) => unwinder.begin(now),
        }
    }

    /// The meaning of tagged words in chains.
    pub(super) fn tagged(&mut self) -> &mut TaggedFrames {
        match self {
            Self::Pointers(interpreted, _) => interpreted.tagged(),
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
            Self::Pointers(interpreted, native) => {
                interpreted.complete(chain, sample, maps);
                let native = native.as_mut();
                let unwound = native.and_then(|native| native.unwind(chain, sample, maps));
                let state = match unwound {
                    Some(_) => Chain::Whole,
                    None => repair::repair(chain, sample, maps, |ip| {
                        interpreted.is_described(ip, sample.time)
                    }),
                };
                interpreted.mark(chain, unwound, sample, maps);
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
        if let Self::Pointers(interpreted, _) = self {
            interpreted.complete_by_top(chain, time, top, maps);
        }
    }
}
