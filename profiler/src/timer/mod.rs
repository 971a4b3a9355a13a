//! The way to sample where perf_event is not allowed: a CPU timer for each thread, in the JVM.
//!
//! The timer's signal runs on the thread itself. Its handler walks the frame pointers and puts the
//! addresses into a ring in shared memory; everything after that is the sampler's as usual. The
//! handler allocates nothing, takes no lock and reads only the thread's own stack.

mod rings;
mod thread;
mod walk;

pub(crate) use walk::TOP_WORDS;

pub use rings::{Slot, TimerRings, TimerSample};
pub use thread::ThreadTimer;
