//! When the JVM evicted the code whose unloading it reports.

use std::sync::atomic::{AtomicU64, Ordering};

use jvmti_bindings::sys::jvmti::jvmtiEnv;
use unfuse_profiler::clock::monotonic_ns;

use crate::agent::with_agent;

/// The first release that evicts code in garbage collections only. Earlier ones do it there if the code's class is unloaded,
/// and have a thread for the rest.
const COLLECTIONS_ONLY: i32 = 20;

/// The begin of the last garbage collection that evicted code may belong to.
///
/// The JVM reports an eviction later, from a thread that may wait for a CPU. Until then, other code can already run at the
/// address; its samples would have the name of the evicted code.
pub(crate) struct Evictions {
    in_collections: bool,
    /// On the monotonic clock, ns; 0 before the first collection.
    last_collection: AtomicU64,
}

impl Evictions {
    /// For a JVM of a feature release; 0 if that is unknown.
    pub(crate) fn new(release: i32) -> Self {
        Self {
            in_collections: release >= COLLECTIONS_ONLY,
            last_collection: AtomicU64::new(0),
        }
    }

    /// When code was evicted that is reported at `now`, both on the monotonic clock, ns. No thread has run it since.
    pub(crate) fn time(&self, now: u64, class_is_loaded: impl FnOnce() -> bool) -> u64 {
        let begin = self.last_collection.load(Ordering::Relaxed);
        if begin > 0 && (self.in_collections || !class_is_loaded()) {
            begin.min(now)
        } else {
            now
        }
    }

    fn collection_begins(&self, now: u64) {
        self.last_collection.store(now, Ordering::Relaxed);
    }
}

/// Called while all threads of the JVM are stopped.
pub(crate) unsafe extern "system" fn garbage_collection_start(_: *mut jvmtiEnv) {
    with_agent(|agent| agent.evictions.collection_begins(monotonic_ns()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_evicted_when_the_last_collection_begins() {
        let evictions = Evictions::new(25);
        assert_eq!(evictions.time(5, || true), 5);
        evictions.collection_begins(10);
        assert_eq!(evictions.time(30, || true), 10);
        evictions.collection_begins(40);
        let times = [50, 30].map(|now| evictions.time(now, || true));
        assert_eq!(times, [40, 30]);
    }

    #[test]
    fn an_earlier_jvm_evicts_only_unloaded_classes_then() {
        for release in [0, 17] {
            let evictions = Evictions::new(release);
            evictions.collection_begins(10);
            let times = [true, false].map(|is_loaded| evictions.time(30, || is_loaded));
            assert_eq!(times, [30, 10]);
        }
    }
}
