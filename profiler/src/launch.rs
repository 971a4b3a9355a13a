//! Starting it all from the JVM, and what the JVM keeps in its hand.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use unfuse_codemap::CodeMap;
use unfuse_files::{Access, Directory};
use unfuse_format::{FormatError, LiveMarker, ProfileDir};

use crate::config::{Config, SampleSource};
use crate::crew::Crew;
use crate::interpreter::Layout;
use crate::perf_event;
use crate::process;
use crate::timer::TimerRings;
use crate::wire::{ToManager, send_at_once, stream_pair};
use crate::writer::Place;

/// Status slot: errno of the last sampler that could not open its event.
pub(crate) const STATUS_SAMPLER_ERRNO: usize = 0;
/// Status slot: samplers that could not start.
pub(crate) const STATUS_SAMPLERS_FAILED: usize = 1;
/// Status slot: errno of the writer's last failed write.
pub(crate) const STATUS_WRITER_ERRNO: usize = 2;
/// Status slot: threads the manager could not be told of.
pub(crate) const STATUS_LOST_THREADS: usize = 3;
/// Status slot: events that found no room.
pub(crate) const STATUS_LOST_EVENTS: usize = 4;
/// Status slot: pid of the manager.
pub(crate) const STATUS_MANAGER: usize = 5;
/// Status slot: samplers that crashed or were killed.
pub(crate) const STATUS_SAMPLERS_DIED: usize = 6;
/// Status slot: threads that ended before they were worth a sampler.
pub(crate) const STATUS_BRIEF_THREADS: usize = 7;
/// Status slot: their CPU time, ns.
pub(crate) const STATUS_BRIEF_NS: usize = 8;
/// Status: the addresses between which the JVM puts generated code; 0 if it did not say.
pub(crate) const STATUS_CODE_LOW: usize = 9;
/// See [`STATUS_CODE_LOW`].
pub(crate) const STATUS_CODE_HIGH: usize = 10;
/// Status: 1 where the JVM ran before the agent came: nobody asked its compilers for frame pointers.
pub(crate) const STATUS_ATTACHED: usize = 11;
/// Status: the writer's generation, see `unfuse_format::Retention`; a new one has none of the stacks of before.
pub(crate) const STATUS_GENERATION: usize = 12;
/// Status: the seed by which tasks are drawn.
pub(crate) const STATUS_SEED: usize = 13;
/// Status: how often samplers were asked to send what they have, all of them added up.
pub(crate) const STATUS_SEND_ASKED: usize = 14;
/// Status: how often they did.
pub(crate) const STATUS_SENT: usize = 15;
/// Status: the number of the last flush that was asked for.
const STATUS_FLUSH_ASKED: usize = 16;
/// Status: the number of the last one that was done.
pub(crate) const STATUS_FLUSHED: usize = 17;
/// Status: errno of a process that could not take on the identity of the JVM's owner.
pub(crate) const STATUS_IDENTITY_ERRNO: usize = 18;
/// Longest thread name that is kept, bytes.
pub(crate) const LONGEST_NAME: usize = 512;

/// How long samplers may take to send what they have.
const ANSWER: Duration = Duration::from_millis(500);

/// Why profiling cannot start. The JVM runs on without it.
#[derive(Debug)]
pub enum LaunchError {
    /// The profile directory.
    Directory(FormatError),
    /// A system call, with what it was for.
    System(&'static str, io::Error),
    /// perf_event was demanded (`source=perf`) and is not allowed.
    PerfDenied(io::Error),
}

impl std::fmt::Display for LaunchError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Directory(e) => e.fmt(f),
            Self::System(what, e) => write!(f, "cannot {what}: {e}"),
            Self::PerfDenied(e) => write!(
                f,
                "perf_event_open is not allowed here ({e}); leave out source=perf to use CPU timers"
            ),
        }
    }
}

impl LaunchError {
    fn errno(&self) -> i32 {
        match self {
            Self::System(_, e) | Self::PerfDenied(e) => e.raw_os_error(),
            Self::Directory(_) => None,
        }
        .unwrap_or(libc::EIO)
    }
}

/// This machine's name.
pub(crate) fn host() -> String {
    nix::unistd::gethostname().map_or_else(
        |_| "localhost".to_owned(),
        |name| name.to_string_lossy().into_owned(),
    )
}

/// What the files of a JVM's writer are called by.
pub(crate) fn writer_name(host: &str, jvm: u32) -> String {
    format!("{host}-{jvm}")
}

/// A profile that somebody copies from a local directory to where it is wanted.
#[derive(Debug, Clone)]
pub struct Shipped {
    /// Where it is wanted.
    pub uri: String,
    /// The local directory, this JVM's own.
    pub spool: PathBuf,
}

/// The running profiler as the JVM sees it. Nothing here waits for anyone.
pub struct Session {
    map: CodeMap,
    to_manager: UnixStream,
    /// None where no events are sent (attached to a running JVM).
    events: Option<UnixStream>,
    timers: Option<TimerRings>,
    perf_denied: Option<io::Error>,
    shipped: Option<Shipped>,
}

/// A session, as the agent keeps it.
pub type Launch = Result<Session, LaunchError>;

/// Makes the profile directory and the code map, and forks the manager. To be called before the JVM
/// has a heap or threads (Agent_OnLoad).
pub fn launch(config: &Config, layout: Layout) -> Launch {
    let (dir, shipped) = match &config.uri {
        Some(uri) => {
            let dir = make_spool(config.spools.as_deref())
                .map_err(|e| LaunchError::System("make a spool for the profile", e))?;
            let shipped = Shipped {
                uri: uri.clone(),
                spool: dir.path().to_owned(),
            };
            (dir, Some(shipped))
        }
        None => {
            let dir = ProfileDir::create(&config.dir).map_err(LaunchError::Directory)?;
            (dir, None)
        }
    };
    let launched = launch_into(dir.clone(), config, layout).inspect_err(|e| {
        // `unfuse run` looks there: it must not guess at reasons where one was said already.
        if let Ok(marker) = LiveMarker::hold(&dir, &writer_name(&host(), std::process::id())) {
            marker.fail(e.errno());
        }
    });
    launched.map(|session| Session { shipped, ..session })
}

/// Waits for what other processes do; whether they did.
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

/// A private directory that no other process has; its name ends what the writer's files are called by, so that
/// containers with the same host name and pid do not overwrite each other's.
fn make_spool(parent: Option<&Path>) -> io::Result<ProfileDir> {
    let parent = parent.map_or_else(std::env::temp_dir, Path::to_owned);
    let name = format!("unfuse-spool-{}", unfuse_files::random_digits()?);
    let spool = Directory::create_shared(&parent)
        .and_then(|parent| parent.create_folder(&name, Access::Private))
        .map_err(io::Error::other)?;
    ProfileDir::create_in(spool).map_err(io::Error::other)
}

/// What tells this spool from others.
pub(crate) fn spool_tag(spool: &Path) -> Option<&str> {
    spool.file_name()?.to_str()?.rsplit('-').next()
}

fn launch_into(dir: ProfileDir, config: &Config, layout: Layout) -> Launch {
    let system = |what| move |e| LaunchError::System(what, e);
    let map =
        CodeMap::create((config.map_mib as usize) << 20).map_err(system("make the code map"))?;
    let perf_denied = match config.source {
        SampleSource::Timer => None,
        SampleSource::Auto => perf_event::probe().err(),
        SampleSource::Perf => {
            perf_event::probe().map_err(LaunchError::PerfDenied)?;
            None
        }
    };
    let timers = if config.source == SampleSource::Timer || perf_denied.is_some() {
        Some(TimerRings::create().map_err(system("make the timers' ring"))?)
    } else {
        None
    };
    let (to_manager, manager_end) = stream_pair().map_err(system("make a socket"))?;
    let (events, writer_events) = UnixStream::pair().map_err(system("make a socket"))?;
    let jvm = std::process::id();
    let jvm_ends = process::pidfd(jvm as i32).map_err(system("watch the JVM"))?;
    let tag = spool_tag(dir.path()).filter(|_| config.uri.is_some());
    let crew = Crew {
        config,
        tag: tag.map(str::to_owned),
        place: Place::Profile(dir),
        jvm,
        owner: None,
        ends: jvm_ends,
        from_jvm: manager_end,
        events: writer_events,
        map: &map,
        timers: timers.as_ref(),
        layout,
    };
    crew.start()
        .map_err(|(what, e)| LaunchError::System(what, e))?;
    let session = Session {
        map,
        to_manager,
        events: Some(events),
        timers,
        perf_denied,
        shipped: None,
    };
    session.let_samplers_read();
    Ok(session)
}

impl Session {
    /// The session of a JVM that ran before: another process made the map and looks after the crew.
    pub(crate) fn attached(map: CodeMap, to_manager: UnixStream) -> Self {
        Self {
            map,
            to_manager,
            events: None,
            timers: None,
            perf_denied: None,
            shipped: None,
        }
    }

    /// Where ptrace is restricted to children, lets the samplers read what the interpreter runs.
    pub fn let_samplers_read(&self) {
        self.set_tracer(self.map.status().get(STATUS_MANAGER));
    }

    /// Takes that back.
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

    /// Why samples come from timers, where perf_event was refused.
    pub fn perf_denied(&self) -> Option<&io::Error> {
        self.perf_denied.as_ref()
    }

    /// Asks for a sampler for the calling thread; `task` says that it runs Spark tasks.
    /// Returns the timer that now ticks for it, where timers are used.
    pub fn profile_this_thread(
        &self,
        name: &str,
        task: bool,
        period_ns: u64,
    ) -> Option<crate::timer::ThreadTimer> {
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

    /// Asks for a sampler for another thread (those that started before the agent could see them).
    pub fn profile_thread(&self, tid: u32, name: &str) {
        if self.timers.is_none() {
            self.profile(tid, name, false, None);
        }
    }

    fn profile(&self, tid: u32, name: &str, task: bool, slot: Option<u32>) -> bool {
        let told = self.tell(&ToManager::Profile {
            tid,
            name: name[..name.floor_char_boundary(LONGEST_NAME)].to_owned(),
            task,
            slot,
        });
        if !told {
            self.map.status().add(STATUS_LOST_THREADS, 1);
        }
        told
    }

    /// Says that the calling thread ends, so that its id may come round again.
    pub fn this_thread_ended(&self) {
        self.tell(&ToManager::Ended {
            tid: nix::unistd::gettid().as_raw() as u32,
            cpu_ns: crate::clock::thread_cpu_ns(),
        });
    }

    /// From now on only threads that run Spark tasks.
    pub fn tasks_only(&self) {
        self.tell(&ToManager::TasksOnly);
    }

    /// Where the profile goes, if it is copied there.
    pub fn shipped(&self) -> Option<&Shipped> {
        self.shipped.as_ref()
    }

    /// Makes the folder where files with records wait for the writer.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn make_records_waiting(&self, config: &Config) -> Result<PathBuf, FormatError> {
        let dir = self.shipped().map_or(&config.dir, |shipped| &shipped.spool);
        ProfileDir::create(dir)?.make_records_waiting()
    }

    /// Has the samplers send what they have, and waits until they did.
    pub fn collect_samples(&self, until: Instant) {
        let status = self.map.status();
        let before = status.get(STATUS_SEND_ASKED);
        if !self.tell(&ToManager::Collect) {
            return;
        }
        // A sampler that ends meanwhile does not answer; it has sent all.
        let until = until.min(Instant::now() + ANSWER);
        let done = || {
            let asked = status.get(STATUS_SEND_ASKED);
            asked > before && status.get(STATUS_SENT) >= asked
        };
        wait_for(done, until);
    }

    /// A number and the event by which the writer is told to write what it has; `last` says that the JVM
    /// ends now.
    pub fn order_flush(&self, last: bool) -> (u64, String) {
        let status = self.map.status();
        status.add(STATUS_FLUSH_ASKED, 1);
        let number = status.get(STATUS_FLUSH_ASKED);
        let event = format!(r#"{{"type":"flush","number":{number},"last":{last}}}"#);
        (number, event)
    }

    /// Waits until the writer has done so; whether it has.
    pub fn await_flush(&self, number: u64, until: Instant) -> bool {
        wait_for(|| self.map.status().get(STATUS_FLUSHED) >= number, until)
    }

    fn tell(&self, message: &ToManager) -> bool {
        send_at_once(&self.to_manager, message).is_ok()
    }

    /// The socket to the writer; one thread of the agent's own writes to it.
    pub fn events(&self) -> Option<&UnixStream> {
        self.events.as_ref()
    }

    /// Tells samplers the addresses between which the JVM puts generated code.
    pub fn set_code_cache(&self, low: u64, high: u64) {
        self.map.status().set(STATUS_CODE_LOW, low);
        self.map.status().set(STATUS_CODE_HIGH, high);
    }

    /// Counts events that were dropped for lack of room.
    pub fn count_lost_events(&self, events: u64) {
        self.map.status().add(STATUS_LOST_EVENTS, events);
    }

    /// A failure of our processes that the user should know, once: what and errno.
    pub fn failure(&self) -> Option<String> {
        if self.events.as_ref().is_some_and(hung_up) {
            return Some(
                "the writer process was killed; the profile ends with its last write".to_owned(),
            );
        }
        if hung_up(&self.to_manager) {
            // The kernel forgets a tracer that ends, but not a process that has got its id since.
            self.let_nobody_read();
            return Some(
                "the manager process was killed; threads that started later are not in the profile"
                    .to_owned(),
            );
        }
        failure_in(&self.map)
    }
}

/// What went wrong by the status words.
pub(crate) fn failure_in(map: &CodeMap) -> Option<String> {
    let status = map.status();
    let error = |slot| io::Error::from_raw_os_error(status.get(slot) as i32);
    if status.get(STATUS_IDENTITY_ERRNO) != 0 {
        let e = error(STATUS_IDENTITY_ERRNO);
        return Some(format!(
            "nothing was recorded: the profiling processes cannot become processes of the JVM's user: {e}"
        ));
    }
    if status.get(STATUS_WRITER_ERRNO) != 0 {
        let e = error(STATUS_WRITER_ERRNO);
        return Some(format!("the profile cannot be written any more: {e}"));
    }
    if status.get(STATUS_SAMPLER_ERRNO) != 0 {
        let e = error(STATUS_SAMPLER_ERRNO);
        return Some(format!(
            "a sampler could not start: {e} (run `unfuse doctor`)"
        ));
    }
    let died = status.get(STATUS_SAMPLERS_DIED);
    if died > 0 {
        return Some(format!(
            "samples of {died} thread(s) are missing: their sampler processes were killed"
        ));
    }
    let lost = status.get(STATUS_LOST_THREADS);
    if lost > 0 {
        return Some(format!(
            "{lost} thread(s) are not in the profile: too many started at once"
        ));
    }
    None
}

/// Whether the other end of a socket is closed.
fn hung_up(socket: &UnixStream) -> bool {
    let mut fds = [PollFd::new(socket.as_fd(), PollFlags::empty())];
    poll(&mut fds, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use unfuse_format::{SampleRow, SegmentWriter, Table};

    use super::*;

    /// Also where others can look into the directory that it is in, as into that for temporary files.
    #[test]
    fn a_spool_is_private() {
        let home = tempfile::tempdir().unwrap();
        fs::set_permissions(home.path(), Permissions::from_mode(0o755)).unwrap();
        let dir = make_spool(Some(home.path())).unwrap();
        let spool = dir.path();
        assert_eq!(spool.parent(), Some(home.path()));
        assert!(spool_tag(spool).is_some_and(|tag| tag.len() == 16));
        let mut samples = SegmentWriter::<SampleRow>::new(&dir, "host-1");
        samples.push(SampleRow::default());
        samples.flush().unwrap();
        let folder = spool.join(SampleRow::NAME);
        let segment = folder.join(samples.take_last().unwrap());
        let manifest = spool.join("unfuse.json");
        let modes = [spool, &folder, &segment, &manifest]
            .map(|path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777);
        assert_eq!(modes, [0o700, 0o700, 0o600, 0o600]);
    }
}
