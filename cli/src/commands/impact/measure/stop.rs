//! Requests to stop: Ctrl-C, SIGTERM and SIGHUP end the run, and then settings are restored.

use std::sync::atomic::{AtomicI32, Ordering};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

static ASKED: AtomicI32 = AtomicI32::new(0);

extern "C" fn note(signal: i32) {
    ASKED.store(signal, Ordering::Relaxed);
}

/// From now on, this process only records such signals.
pub(super) fn watch() {
    let action = SigAction::new(SigHandler::Handler(note), SaFlags::empty(), SigSet::empty());
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        // SAFETY: the handler only stores to an atomic.
        let _ = unsafe { sigaction(signal, &action) };
    }
}

/// The signal that asked to stop, if there was one.
pub(super) fn asked() -> Option<u8> {
    u8::try_from(ASKED.load(Ordering::Relaxed))
        .ok()
        .filter(|signal| *signal > 0)
}
