//! Signals that are left to the programs that run.

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

/// A signal that this process ignores for as long as this lives. Programs that it starts meanwhile do not ignore it.
#[derive(Debug)]
pub struct IgnoredSignal {
    signal: Signal,
    before: Option<SigAction>,
}

impl IgnoredSignal {
    /// Ignores a signal from now on.
    pub fn new(signal: Signal) -> Self {
        // A handler, not SIG_IGN: an ignored signal would stay ignored in the command.
        let action = SigAction::new(
            SigHandler::Handler(nothing),
            SaFlags::SA_RESTART,
            SigSet::empty(),
        );
        // SAFETY: the handler does nothing.
        let before = unsafe { sigaction(signal, &action) }.ok();
        Self { signal, before }
    }
}

extern "C" fn nothing(_: i32) {}

impl Drop for IgnoredSignal {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // SAFETY: restores what was there.
            let _ = unsafe { sigaction(self.signal, before) };
        }
    }
}
