//! The timer of one thread and its signal.

use std::mem;
use std::ptr;
use std::sync::{Once, OnceLock};

use super::rings::TimerRings;
use super::walk;
use crate::arch;
use crate::clock;

/// A running timer on the thread that started it; dropping it stops it.
#[derive(Debug)]
pub struct ThreadTimer {
    timer: libc::timer_t,
    rings: TimerRings,
    slot: u32,
}

// SAFETY: a POSIX timer id is valid in the whole process.
unsafe impl Send for ThreadTimer {}

impl ThreadTimer {
    /// Starts a CPU timer on the calling thread that samples into `slot`.
    pub(super) fn start(rings: TimerRings, slot: u32, tid: u32, period_ns: u64) -> Option<Self> {
        install_handler(rings);
        // SAFETY: sigevent is plain data for which zero is a valid start.
        let mut event: libc::sigevent = unsafe { mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = libc::SIGPROF;
        event.sigev_notify_thread_id = tid as i32;
        event.sigev_value = libc::sigval {
            sival_ptr: slot as usize as *mut libc::c_void,
        };
        let mut timer: libc::timer_t = ptr::null_mut();
        // SAFETY: `event` and `timer` are valid for the call.
        if unsafe { libc::timer_create(libc::CLOCK_THREAD_CPUTIME_ID, &mut event, &mut timer) } != 0
        {
            return None;
        }
        let period = libc::timespec {
            tv_sec: (period_ns / 1_000_000_000) as i64,
            tv_nsec: (period_ns % 1_000_000_000) as i64,
        };
        let spec = libc::itimerspec {
            it_interval: period,
            it_value: period,
        };
        // SAFETY: the timer was just made.
        unsafe { libc::timer_settime(timer, 0, &spec, ptr::null_mut()) };
        Some(Self { timer, rings, slot })
    }

    /// The ring it samples into.
    pub fn slot(&self) -> u32 {
        self.slot
    }
}

impl Drop for ThreadTimer {
    fn drop(&mut self) {
        // SAFETY: the timer is ours and is deleted once.
        unsafe { libc::timer_delete(self.timer) };
        self.rings.slot(self.slot).release();
    }
}

/// The rings, for the handler. Set once before the first timer exists.
static RINGS: OnceLock<TimerRings> = OnceLock::new();

fn install_handler(rings: TimerRings) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let _ = RINGS.set(rings);
        // SAFETY: sigaction is plain data for which zero is a valid start.
        let mut action: libc::sigaction = unsafe { mem::zeroed() };
        action.sa_sigaction = on_tick as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
        // SAFETY: HotSpot does not use SIGPROF; the handler is async-signal-safe.
        unsafe { libc::sigaction(libc::SIGPROF, &action, ptr::null_mut()) };
    });
}

/// Runs on the sampled thread. No allocation, no lock, errno unchanged.
extern "C" fn on_tick(_: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: errno's location is this thread's own.
    let errno = unsafe { *libc::__errno_location() };
    // SAFETY: the kernel passes a valid siginfo and ucontext.
    let (code, slot, rings, registers) = unsafe {
        let value = (*info).si_value().sival_ptr as usize as u32;
        let context = &*context.cast::<libc::ucontext_t>();
        (
            (*info).si_code,
            value,
            RINGS.get(),
            arch::interrupted(context),
        )
    };
    // Another program's SIGPROF (kill, setitimer) has no slot.
    if code == libc::SI_TIMER
        && let Some(slot) = rings.map(|rings| rings.slot(slot))
        && !slot.is_paused()
    {
        let mut words = [0u64; walk::TOP_WORDS + walk::MAX_FRAMES];
        let end = slot.stack_end();
        let (top, chain) = words.split_at_mut(walk::TOP_WORDS);
        top.copy_from_slice(&walk::top(&registers, end));
        let frames = walk::frames(&registers, end, chain);
        slot.push(
            clock::monotonic_ns(),
            clock::thread_cpu_ns(),
            &words[..walk::TOP_WORDS + frames],
        );
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// Lowest and end address of the calling thread's stack.
pub(super) fn stack_bounds() -> Option<(u64, u64)> {
    // SAFETY: the attribute object is initialised by pthread_getattr_np and destroyed after use.
    unsafe {
        let mut attributes: libc::pthread_attr_t = mem::zeroed();
        if libc::pthread_getattr_np(libc::pthread_self(), &mut attributes) != 0 {
            return None;
        }
        let (mut base, mut size) = (ptr::null_mut(), 0);
        let got = libc::pthread_attr_getstack(&attributes, &mut base, &mut size);
        libc::pthread_attr_destroy(&mut attributes);
        (got == 0).then_some((base as u64, base as u64 + size as u64))
    }
}
