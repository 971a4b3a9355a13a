//! Sampling without perf_event: a CPU timer for each thread, in the JVM.
//!
//! The timer's signal runs on the thread itself. Its handler walks the frame pointers and writes the addresses to a
//! ring in shared memory; the sampler does the rest as usual. The handler does not allocate, takes no lock and reads
//! only the thread's own stack.

mod rings;
mod thread;
mod walk;

pub(crate) use walk::{TOP_WORDS, split_top};

pub use rings::{Slot, TimerRings, TimerSample};
pub use thread::ThreadTimer;
