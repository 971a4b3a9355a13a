//! Signals that this process leaves to the programs that it runs.

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

/// Makes this process ignore a signal until it is dropped.
/// Programs that the process starts meanwhile do not ignore it.
#[derive(Debug)]
pub struct IgnoredSignal {
    signal: Signal,
    before: Option<SigAction>,
}

impl IgnoredSignal {
    /// Ignores a signal from now on.
    pub fn new(signal: Signal) -> Self {
        // A handler, not SIG_IGN: exec resets a handler, but a program inherits an ignored signal.
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
            // SAFETY: restores the previous action.
            let _ = unsafe { sigaction(self.signal, before) };
        }
    }
}
