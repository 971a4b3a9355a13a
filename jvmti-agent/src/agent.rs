//! The one agent of this process.

use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use jvmti_bindings::env::Jvmti;
use unfuse_profiler::Session;

use crate::event_queue::EventQueue;
use crate::methods::Methods;
use crate::options::Options;

/// Everything the callbacks share; set once in Agent_OnLoad, never taken down.
pub(crate) struct Agent {
    pub(crate) options: Options,
    pub(crate) session: Session,
    pub(crate) jvmti: Jvmti,
    pub(crate) methods: Methods,
    pub(crate) events: EventQueue,
    /// Spark runs here: only task threads are profiled (unless all were asked for).
    pub(crate) tasks_only: AtomicBool,
    /// The -agentpath flag for executors, where they are to have one.
    pub(crate) executor_flag: Option<String>,
}

// SAFETY: the JVMTI environment and the VM are process-wide handles that any thread may use; the rest
// is shared through atomics and lock-free structures.
unsafe impl Send for Agent {}
// SAFETY: as above.
unsafe impl Sync for Agent {}

static AGENT: OnceLock<Agent> = OnceLock::new();

/// The agent, once it is loaded.
pub(crate) fn agent() -> Option<&'static Agent> {
    AGENT.get()
}

/// Makes `agent` the agent; false if there is one already (two -agentpath flags).
pub(crate) fn install(agent: Agent) -> bool {
    AGENT.set(agent).is_ok()
}

/// Runs the body of a callback: with the agent, and without letting a panic into the JVM.
pub(crate) fn with_agent(body: impl FnOnce(&'static Agent)) {
    if let Some(agent) = agent() {
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| body(agent)));
    }
}
