//! The JVM's handle to the running profiler.

use std::cell::Cell;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use unfuse_codemap::CodeMap;
use unfuse_format::{FormatError, ProfileDir};

use crate::clock::thread_cpu_ns;
use crate::config::Config;
use crate::names::LONGEST_THREAD_NAME;
use crate::pause::RecordingState;
use crate::status::{Counter, Failure, StatusWords};
use crate::timer::TimerRings;
use crate::wire::{ToManager, send_at_once};

/// How long samplers may take to send their data.
const ANSWER: Duration = Duration::from_millis(500);

thread_local! {
    /// CPU time of this thread when it asked for a sampler, ns. One that Java used before under another name has had some.
    static CPU_AT_START: Cell<u64> = const { Cell::new(0) };
}

/// A profile that is copied from a local directory to a URI.
#[derive(Debug, Clone)]
pub struct Shipment {
    /// The URI.
    pub uri: String,
    /// The local directory of this JVM.
    pub spool: PathBuf,
}

impl Shipment {
    /// Its folders, in the order in which they are to be copied.
    pub fn folders(&self) -> Vec<&'static str> {
        ProfileDir::folders_to_copy()
    }
}

/// The running profiler from the JVM's side. It never waits without a limit.
pub struct Session {
    map: CodeMap,
    to_manager: UnixStream,
    events: UnixStream,
    timers: Option<TimerRings>,
    perf_denied: Option<io::Error>,
    shipped: Option<Shipment>,
}

impl Session {
    pub(crate) fn new(
        map: CodeMap,
        to_manager: UnixStream,
        events: UnixStream,
        timers: Option<TimerRings>,
        perf_denied: Option<io::Error>,
    ) -> Self {
        Self {
            map,
            to_manager,
            events,
            timers,
            perf_denied,
            shipped: None,
        }
    }

    /// Sets the shipment of a profile to a URI.
    #[must_use]
    pub fn with_shipping(self, shipped: Option<Shipment>) -> Self {
        Self { shipped, ..self }
    }

    pub(crate) fn status(&self) -> StatusWords<'_> {
        StatusWords::new(&self.map)
    }

    /// The session of an attached JVM: another process made the map and started the manager.
    pub(crate) fn attached(
        map: CodeMap,
        to_manager: UnixStream,
        events: UnixStream,
        timers: Option<TimerRings>,
    ) -> Self {
        Self {
            map,
            to_manager,
            events,
            timers,
            perf_denied: None,
            shipped: None,
        }
    }

    /// Lets samplers read interpreted frames where ptrace is restricted to children.
    pub fn let_samplers_read(&self) {
        self.set_tracer(self.status().manager());
    }

    /// Revokes this.
    pub fn let_nobody_read(&self) {
        self.set_tracer(0);
    }

    fn set_tracer(&self, pid: u64) {
        // SAFETY: a plain system call on integers.
        unsafe { libc::prctl(libc::PR_SET_PTRACER, pid, 0, 0, 0) };
    }

    /// The code map, which the agent writes.
    pub fn map(&self) -> &CodeMap {
        &self.map
    }

    /// Why perf_event was refused, if timers are used instead.
    pub fn perf_denied(&self) -> Option<&io::Error> {
        self.perf_denied.as_ref()
    }

    /// Requests a sampler for the calling thread; `task` if it runs Spark tasks. Returns its running timer, if timers
    /// are used.
    pub fn profile_this_thread(
        &self,
        name: &str,
        task: bool,
        period_ns: u64,
    ) -> Option<crate::timer::ThreadTimer> {
        CPU_AT_START.set(thread_cpu_ns());
        let tid = nix::unistd::gettid().as_raw() as u32;
        let timer = match &self.timers {
            Some(rings) if period_ns > 0 => Some(rings.start(tid, period_ns)?),
            _ => None,
        };
        let slot = timer.as_ref().map(|t| t.slot());
        let told = self.profile(tid, name, task, slot);
        if !told && let (Some(rings), Some(slot)) = (&self.timers, slot) {
            // No sampler will ever read it.
            drop(timer);
            rings.slot(slot).free();
            return None;
        }
        timer
    }

    /// Requests a sampler for another thread (one that started before the agent).
    pub fn profile_thread(&self, tid: u32, name: &str) {
        if self.timers.is_none() {
            self.profile(tid, name, false, None);
        }
    }

    fn profile(&self, tid: u32, name: &str, task: bool, slot: Option<u32>) -> bool {
        let told = self.tell(&ToManager::Profile {
            tid,
            name: name[..name.floor_char_boundary(LONGEST_THREAD_NAME)].to_owned(),
            task,
            slot,
        });
        if !told {
            self.status().add(Counter::LostThreads, 1);
        }
        told
    }

    /// Announces the end of the calling thread, whose id may then be reused.
    pub fn this_thread_ended(&self) {
        self.tell(&ToManager::Ended {
            tid: nix::unistd::gettid().as_raw() as u32,
            cpu_ns: thread_cpu_ns().saturating_sub(CPU_AT_START.get()),
        });
    }

    /// Restricts sampling to threads that run Spark tasks.
    pub fn tasks_only(&self) {
        self.tell(&ToManager::TasksOnly);
    }

    /// The target of the profile, if it is copied.
    pub fn shipped(&self) -> Option<&Shipment> {
        self.shipped.as_ref()
    }

    /// Makes the folder in which files with records wait for the writer.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn make_records_waiting(&self, config: &Config) -> Result<PathBuf, FormatError> {
        let dir = self.shipped().map_or(&config.dir, |shipped| &shipped.spool);
        ProfileDir::create(dir)?.make_records_waiting()
    }

    /// Makes the samplers send their data, and waits for it.
    pub fn collect_samples(&self, until: Instant) {
        let status = self.status();
        let before = status.sends_asked();
        if !self.tell(&ToManager::Collect) {
            return;
        }
        // A sampler that ends meanwhile does not answer; it has sent everything.
        let until = until.min(Instant::now() + ANSWER);
        let done = || {
            let asked = status.sends_asked();
            asked > before && status.sends_done() >= asked
        };
        wait_for(done, until);
    }

    /// A number, and the event that makes the writer flush; `last` if the JVM ends now.
    pub fn order_flush(&self, last: bool) -> (u64, String) {
        let number = self.status().order_flush();
        let event = format!(r#"{{"type":"flush","number":{number},"last":{last}}}"#);
        (number, event)
    }

    /// Waits until the writer has flushed; returns whether it has.
    pub fn await_flush(&self, number: u64, until: Instant) -> bool {
        wait_for(|| self.status().flushed() >= number, until)
    }

    /// What is recorded now. Who asks the manager changes it ([`crate::set_recording`]).
    pub fn recording(&self) -> RecordingState {
        self.status().recording()
    }

    fn tell(&self, message: &ToManager) -> bool {
        send_at_once(&self.to_manager, message).is_ok()
    }

    /// The socket to the writer; one thread of the agent writes to it.
    pub fn events(&self) -> &UnixStream {
        &self.events
    }

    /// Sets the range in which the JVM places generated code, for samplers.
    pub fn set_code_cache(&self, low: u64, high: u64) {
        self.status().set_code_cache(low..high);
    }

    /// Counts events that were dropped for lack of space.
    pub fn count_lost_events(&self, events: u64) {
        self.status().add(Counter::LostEvents, events);
    }

    /// Whether nothing is written any more: the writer or the manager has ended, or the profile cannot be written.
    pub(crate) fn has_stopped(&self) -> bool {
        let status = self.status();
        hung_up(&self.events)
            || hung_up(&self.to_manager)
            || status.failure(Failure::Identity).is_some()
            || status.failure(Failure::Writer).is_some()
    }

    /// A failure of our processes to report to the user, once: purpose and errno.
    pub fn failure(&self) -> Option<String> {
        if hung_up(&self.events) {
            return Some(
                "the writer process was killed; the profile ends with its last write".to_owned(),
            );
        }
        if hung_up(&self.to_manager) {
            // The kernel forgets a tracer that ends, but its id may belong to another process by now.
            self.let_nobody_read();
            return Some(
                "the manager process was killed; threads that started later are not in the profile"
                    .to_owned(),
            );
        }
        self.status().message()
    }
}

/// Waits for a condition that other processes meet; returns whether they did.
fn wait_for(done: impl Fn() -> bool, until: Instant) -> bool {
    loop {
        if done() {
            return true;
        }
        if Instant::now() >= until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Whether the other end of a socket is closed.
fn hung_up(socket: &UnixStream) -> bool {
    let mut fds = [PollFd::new(socket.as_fd(), PollFlags::empty())];
    poll(&mut fds, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
}
