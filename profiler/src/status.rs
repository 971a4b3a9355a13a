//! The status words in the code map, with which the JVM, the manager, samplers and the writer inform each other.
//!
//! All are numbers that start at 0. Only the JVM waits for words, the answers to [`StatusWords::ask_to_send`] and
//! [`StatusWords::order_flush`], and only with a time limit.

use std::io;
use std::ops::Range;

use unfuse_codemap::{CodeMap, Status};

use crate::pause::RecordingState;

/// The places of the words.
#[derive(Clone, Copy)]
#[repr(usize)]
enum Word {
    SamplerErrno,
    WriterErrno,
    IdentityErrno,
    LostThreads,
    LostEvents,
    SamplersDied,
    BriefThreads,
    BriefNs,
    Manager,
    CodeLow,
    CodeHigh,
    Attached,
    Generation,
    Seed,
    SendsAsked,
    SendsDone,
    FlushesOrdered,
    FlushesDone,
    Recording,
    PausedSince,
    PausedNs,
    SwitchesErrno,
    PythonErrno,
    Samples,
    LostSamples,
    SampledNs,
    WrittenBytes,
    OwnNs,
    PythonNs,
}

/// Kinds of failures; the word contains the errno of the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// A process could not take on the identity of the JVM's owner.
    Identity,
    /// The writer could not write.
    Writer,
    /// A sampler could not start.
    Sampler,
    /// The CPUs cannot be watched.
    Switches,
    /// The stacks of Python workers cannot be read; ENOEXEC if their interpreter is unknown.
    Python,
}

impl Failure {
    fn word(self) -> Word {
        match self {
            Self::Identity => Word::IdentityErrno,
            Self::Writer => Word::WriterErrno,
            Self::Sampler => Word::SamplerErrno,
            Self::Switches => Word::SwitchesErrno,
            Self::Python => Word::PythonErrno,
        }
    }
}

/// Counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counter {
    /// Threads whose announcement did not reach the manager.
    LostThreads,
    /// Events that the JVM dropped for lack of space.
    LostEvents,
    /// Samplers that crashed or were killed.
    SamplersDied,
    /// Threads that ended before they got a sampler.
    BriefThreads,
    /// CPU time of these, as far as measured, ns.
    BriefNs,
    /// CPU time of the profiler's own processes, ns.
    OwnNs,
}

impl Counter {
    fn word(self) -> Word {
        match self {
            Self::LostThreads => Word::LostThreads,
            Self::LostEvents => Word::LostEvents,
            Self::SamplersDied => Word::SamplersDied,
            Self::BriefThreads => Word::BriefThreads,
            Self::BriefNs => Word::BriefNs,
            Self::OwnNs => Word::OwnNs,
        }
    }
}

/// What the writer has received and written since it started.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Samples, without those that were lost.
    pub(crate) samples: u64,
    /// Samples that were lost.
    pub(crate) lost_samples: u64,
    /// CPU time of the JVM's threads that the samples stand for, ns.
    pub(crate) sampled_ns: u64,
    /// CPU time of Python workers, ns.
    pub(crate) python_ns: u64,
    /// Bytes of the profile, also those deleted meanwhile.
    pub(crate) written_bytes: u64,
}

/// The status words of a code map.
#[derive(Clone, Copy)]
pub(crate) struct StatusWords<'a>(Status<'a>);

impl<'a> StatusWords<'a> {
    pub(crate) fn new(map: &'a CodeMap) -> Self {
        Self(map.status())
    }

    fn get(self, word: Word) -> u64 {
        self.0.get(word as usize)
    }

    fn set(self, word: Word, value: u64) {
        self.0.set(word as usize, value);
    }

    /// Sets a failure.
    pub(crate) fn fail(self, failure: Failure, errno: i32) {
        self.set(failure.word(), errno as u64);
    }

    /// The last failure of this kind, if any.
    pub(crate) fn failure(self, failure: Failure) -> Option<io::Error> {
        match self.get(failure.word()) {
            0 => None,
            errno => Some(io::Error::from_raw_os_error(errno as i32)),
        }
    }

    /// Adds to a counter.
    pub(crate) fn add(self, counter: Counter, number: u64) {
        self.0.add(counter.word() as usize, number);
    }

    /// The value of a counter.
    pub(crate) fn count(self, counter: Counter) -> u64 {
        self.get(counter.word())
    }

    /// What the writer has received and written so far.
    pub(crate) fn progress(self) -> Progress {
        Progress {
            samples: self.get(Word::Samples),
            lost_samples: self.get(Word::LostSamples),
            sampled_ns: self.get(Word::SampledNs),
            python_ns: self.get(Word::PythonNs),
            written_bytes: self.get(Word::WrittenBytes),
        }
    }

    /// Sets it. Only the writer does.
    pub(crate) fn set_progress(self, progress: Progress) {
        self.set(Word::Samples, progress.samples);
        self.set(Word::LostSamples, progress.lost_samples);
        self.set(Word::SampledNs, progress.sampled_ns);
        self.set(Word::PythonNs, progress.python_ns);
        self.set(Word::WrittenBytes, progress.written_bytes);
    }

    /// Counts a thread that ended before it got a sampler.
    pub(crate) fn add_brief_thread(self, cpu_ns: u64) {
        self.add(Counter::BriefThreads, 1);
        self.add(Counter::BriefNs, cpu_ns);
    }

    /// The manager's pid; 0 before it runs.
    pub(crate) fn manager(self) -> u64 {
        self.get(Word::Manager)
    }

    pub(crate) fn set_manager(self, pid: u64) {
        self.set(Word::Manager, pid);
    }

    /// The range in which the JVM places generated code; empty until it is known.
    pub(crate) fn code_cache(self) -> Range<u64> {
        self.get(Word::CodeLow)..self.get(Word::CodeHigh)
    }

    pub(crate) fn set_code_cache(self, addresses: Range<u64>) {
        self.set(Word::CodeLow, addresses.start);
        self.set(Word::CodeHigh, addresses.end);
    }

    /// Whether the JVM was attached to: then its compilers keep no frame pointers.
    pub(crate) fn is_attached(self) -> bool {
        self.get(Word::Attached) != 0
    }

    pub(crate) fn set_attached(self) {
        self.set(Word::Attached, 1);
    }

    /// The writer's generation ([`unfuse_format::Retention`]). Stacks that were sent in an earlier one must be sent
    /// again.
    pub(crate) fn generation(self) -> u64 {
        self.get(Word::Generation)
    }

    pub(crate) fn set_generation(self, number: u64) {
        self.set(Word::Generation, number);
    }

    /// The seed for drawing the profiled tasks.
    pub(crate) fn seed(self) -> u64 {
        self.get(Word::Seed)
    }

    pub(crate) fn set_seed(self, seed: u64) {
        self.set(Word::Seed, seed);
    }

    /// How many times samplers were asked to send, summed over samplers.
    pub(crate) fn sends_asked(self) -> u64 {
        self.get(Word::SendsAsked)
    }

    /// How many times they have sent.
    pub(crate) fn sends_done(self) -> u64 {
        self.get(Word::SendsDone)
    }

    /// Adds a number of samplers that were asked to send. The JVM waits for the number to grow, so no samplers count as
    /// one that has answered.
    pub(crate) fn ask_to_send(self, samplers: u64) {
        if samplers == 0 {
            self.add_send_done();
        }
        self.0.add(Word::SendsAsked as usize, samplers.max(1));
    }

    /// Notes that a sampler has sent its data on request.
    pub(crate) fn add_send_done(self) {
        self.0.add(Word::SendsDone as usize, 1);
    }

    /// Orders a flush from the writer; returns its number.
    pub(crate) fn order_flush(self) -> u64 {
        self.0.add(Word::FlushesOrdered as usize, 1);
        self.get(Word::FlushesOrdered)
    }

    /// The number of the last completed flush.
    pub(crate) fn flushed(self) -> u64 {
        self.get(Word::FlushesDone)
    }

    pub(crate) fn set_flushed(self, number: u64) {
        self.set(Word::FlushesDone, number);
    }

    /// What is recorded now.
    pub(crate) fn recording(self) -> RecordingState {
        RecordingState::from_number(self.get(Word::Recording)).unwrap_or_default()
    }

    /// Sets it from this time on, CLOCK_MONOTONIC ns. Only the manager does.
    pub(crate) fn set_recording(self, state: RecordingState, now: u64) {
        self.set(Word::PausedNs, self.paused_ns(now));
        let since = if state == RecordingState::On { 0 } else { now };
        self.set(Word::PausedSince, since);
        self.set(Word::Recording, state as u64);
    }

    /// How long the profiler was paused up to this time, ns.
    pub(crate) fn paused_ns(self, now: u64) -> u64 {
        let current = match self.get(Word::PausedSince) {
            0 => 0,
            since => now.saturating_sub(since),
        };
        self.get(Word::PausedNs) + current
    }

    /// The failure that the user should know of first.
    pub(crate) fn message(self) -> Option<String> {
        if let Some(e) = self.failure(Failure::Identity) {
            return Some(format!(
                "nothing was recorded: the profiling processes cannot become processes of the JVM's user: {e}"
            ));
        }
        if let Some(e) = self.failure(Failure::Writer) {
            return Some(format!("the profile cannot be written any more: {e}"));
        }
        if let Some(e) = self.failure(Failure::Sampler) {
            return Some(format!(
                "a sampler could not start: {e} (run `unfuse doctor`)"
            ));
        }
        let died = self.count(Counter::SamplersDied);
        if died > 0 {
            return Some(format!(
                "samples of {died} thread(s) are missing: their sampler processes were killed"
            ));
        }
        let lost = self.count(Counter::LostThreads);
        if lost > 0 {
            return Some(format!(
                "{lost} thread(s) are not in the profile: too many started at once"
            ));
        }
        if let Some(e) = self.failure(Failure::Python) {
            return Some(python_message(&e));
        }
        let e = self.failure(Failure::Switches)?;
        let why = match e.raw_os_error() {
            Some(libc::EACCES | libc::EPERM) => {
                format!("the kernel does not allow it ({e}); it needs root or CAP_PERFMON")
            }
            Some(libc::EINVAL) => "it needs heartbeats, which heartbeat=off disables".to_owned(),
            _ => e.to_string(),
        };
        Some(format!("option switches=on has no effect: {why}"))
    }
}

fn python_message(e: &io::Error) -> String {
    let why = match e.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => format!(
            "the kernel does not allow it ({e}); it does with kernel.yama.ptrace_scope=0, or as root with CAP_SYS_PTRACE"
        ),
        Some(libc::ENOEXEC) => {
            "their interpreter is none of CPython 3.9 to 3.13, or exports no symbols".to_owned()
        }
        Some(libc::ECHILD) => "the process that reads them was killed".to_owned(),
        _ => e.to_string(),
    };
    format!(
        "Python workers have CPU time but no lines in the profile, as their stacks cannot be read: {why}"
    )
}
