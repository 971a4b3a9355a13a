//! The one agent of this process.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use jvmti_bindings::env::Jvmti;
use unfuse_profiler::Session;
use unfuse_profiler::options::Options;

use crate::code_blobs::CodeBlobs;
use crate::event_queue::EventQueue;
use crate::evictions::Evictions;
use crate::methods::Methods;

/// The state that callbacks share. Installed by Agent_OnLoad it stays; an agent that was attached to a running JVM is
/// removed again.
pub(crate) struct Agent {
    pub(crate) options: Options,
    pub(crate) session: Session,
    pub(crate) jvmti: Jvmti,
    pub(crate) methods: Methods,
    pub(crate) events: EventQueue,
    /// Spark runs in this JVM: only task threads are profiled (unless all were requested).
    pub(crate) tasks_only: AtomicBool,
    /// The -agentpath flag for executors, if they are to be profiled.
    pub(crate) executor_flag: Option<String>,
    /// Whether generated classes call [`crate::spark_jar::BOUNDARY`].
    pub(crate) has_boundaries: bool,
    /// The number of this recording of the JVM.
    pub(crate) number: u32,
    /// Finds the sizes of frames, if they are unwound by size.
    pub(crate) code_blobs: Option<CodeBlobs>,
    /// Finds when reported code was evicted.
    pub(crate) evictions: Evictions,
}

// SAFETY: the JVMTI environment and the VM are process-wide handles that any thread may use; the rest
// is shared through atomics and lock-free structures.
unsafe impl Send for Agent {}
// SAFETY: as above.
unsafe impl Sync for Agent {}

static AGENT: AtomicPtr<Agent> = AtomicPtr::new(ptr::null_mut());
/// Callbacks that may hold a reference to the agent.
static INSIDE: AtomicUsize = AtomicUsize::new(0);

/// Counts a callback as long as it lives.
struct CallbackGuard;

impl CallbackGuard {
    fn enter() -> Self {
        INSIDE.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

impl Drop for CallbackGuard {
    fn drop(&mut self) {
        INSIDE.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Whether this JVM is being profiled.
pub(crate) fn is_installed() -> bool {
    !AGENT.load(Ordering::SeqCst).is_null()
}

/// Installs `agent`; false if there is one already (two -agentpath flags).
pub(crate) fn install(agent: Agent) -> bool {
    let agent = Box::into_raw(Box::new(agent));
    let first = AGENT.compare_exchange(ptr::null_mut(), agent, Ordering::SeqCst, Ordering::SeqCst);
    if first.is_err() {
        // SAFETY: made above, and nobody else has seen it.
        drop(unsafe { Box::from_raw(agent) });
    }
    first.is_ok()
}

/// Removes the agent and waits until no callback uses it, at most `patience`. After that it is leaked, and `None` is
/// returned.
pub(crate) fn remove(patience: Duration) -> Option<Box<Agent>> {
    let agent = AGENT.swap(ptr::null_mut(), Ordering::SeqCst);
    if agent.is_null() {
        return None;
    }
    let until = Instant::now() + patience;
    while INSIDE.load(Ordering::SeqCst) > 0 {
        if Instant::now() >= until {
            return None;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    // SAFETY: made by `install` and removed by this call only. Callbacks that began before the swap have ended; those
    // that began after it found no agent.
    Some(unsafe { Box::from_raw(agent) })
}

/// Runs the body of a callback with the agent, and keeps panics out of the JVM.
pub(crate) fn with_agent<T>(body: impl FnOnce(&Agent) -> T) -> Option<T> {
    let _inside = CallbackGuard::enter();
    // SAFETY: `remove` frees the agent only when nobody is inside.
    let agent = unsafe { AGENT.load(Ordering::SeqCst).as_ref() }?;
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| body(agent))).ok()
}
