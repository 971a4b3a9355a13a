//! Profiling a JVM that already runs: the protocol between `unfuse record` and the agent that it loads.
//!
//! ```text
//! unfuse record ──loads──▶ agent          the recorder makes the code map and the sockets
//!       ◀── connects ────── agent
//!       ── map, socket ───▶ agent          follows the code from now on, replays what there is
//!       ◀──── Ready ─────── agent
//!   forks manager, writer
//!       ──── GO ──────────▶ agent          names the threads
//!       ◀──── Going ─────── agent
//!       ──── (closes) ────▶ agent          leaves the JVM
//! ```
//!
//! A JVM with a heap and threads is never forked. Everything depends on the recorder: when it ends, in whatever way,
//! its sockets close, the samplers finish and the agent detaches.
//!
//! If root records another user's JVM, all forked processes take on that user's identity before they read anything of
//! the JVM, but the profile is root's, see `spool`.

mod control;
mod messages;
mod peer;
mod plugin;
mod spool;

use std::io::{self, IoSlice, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use unfuse_codemap::CodeMap;
use unfuse_format::{LiveMarker, ProfileDir};

use crate::config::Config;
use crate::error::LaunchError;
use crate::identity::Identity;
use crate::interpreter::Layout;
use crate::launch_plan::LaunchPlan;
use crate::names::{host, spool_tag, writer_name};
use crate::perf_event;
use crate::process;
use crate::status::{Failure, StatusWords};
use crate::timer::TimerRings;
use crate::wire::stream_pair;
use crate::writer::Place;
use messages::{FromAgent, receive};
use peer::Invitation;
use spool::Spool;

pub use control::Control;
pub use messages::one_line;

/// How long each side waits for a message that is due at once.
const SOON: Duration = Duration::from_secs(10);
/// How long the agent may take to describe existing code.
const DESCRIBING: Duration = Duration::from_secs(120);
/// How long the agent may take to detach.
const LEAVING: Duration = Duration::from_secs(15);
/// Interval at which finished segments of another user's JVM are copied to the profile.
const DELIVER_EVERY: Duration = Duration::from_secs(1);
/// The message to announce threads.
const GO: u8 = b'g';

/// The recorder's side, before the agent is loaded.
pub struct Recorder {
    config: Config,
    dir: ProfileDir,
    spool: Option<Spool>,
    jvm: u32,
    jvm_ends: OwnedFd,
    owner: Identity,
    map: CodeMap,
    memory: OwnedFd,
    /// If CPU timers take the samples: the rings, and the descriptor for the JVM.
    timers: Option<(TimerRings, OwnedFd)>,
    to_manager: UnixStream,
    manager_end: UnixStream,
    /// The agent's end of the events' socket; a copy stays here to see the writer's end close.
    events: UnixStream,
    writer_events: UnixStream,
    listener: UnixListener,
    invitation: Invitation,
}

/// Why a recording cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// Something is missing on the recorder's side.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The agent refuses, with its reason.
    #[error("{}", one_line(.0))]
    Refused(String),
    /// The agent does not answer.
    #[error("the agent in the JVM does not answer: {0}")]
    Silent(#[source] io::Error),
}

impl Recorder {
    /// Makes the code map and the sockets for the JVM `jvm` of this owner, whose profile is written to `dir`.
    ///
    /// # Errors
    /// If one of them cannot be made, or perf_event is not allowed.
    pub fn new(
        config: Config,
        dir: ProfileDir,
        jvm: u32,
        owner: Identity,
    ) -> Result<Self, LaunchError> {
        perf_event::probe().map_err(LaunchError::PerfDenied)?;
        Self::with_sockets(config, dir, jvm, owner)
    }

    fn with_sockets(
        config: Config,
        dir: ProfileDir,
        jvm: u32,
        owner: Identity,
    ) -> Result<Self, LaunchError> {
        let system = |what| move |e| LaunchError::System(what, e);
        let spool = match owner == Identity::current() {
            true => None,
            false => {
                let spool = Spool::new(&dir, owner);
                Some(spool.map_err(system("make a spool for the JVM's user in the profile"))?)
            }
        };
        let (map, memory) = CodeMap::create_for_another((config.map_mib as usize) << 20)
            .map_err(system("make the code map"))?;
        StatusWords::new(&map).set_attached();
        let (to_manager, manager_end) = stream_pair().map_err(system("make a socket"))?;
        let (events, writer_events) = UnixStream::pair().map_err(system("make a socket"))?;
        let invitation = Invitation::new().map_err(system("make a key"))?;
        // In the kernel's abstract name space, which needs no clean-up and has no file permissions.
        let listener = SocketAddr::from_abstract_name(&invitation.name)
            .and_then(|address| UnixListener::bind_addr(&address))
            .map_err(system("make a socket"))?;
        Ok(Self {
            config,
            dir,
            spool,
            jvm,
            jvm_ends: process::pidfd(jvm as i32).map_err(system("watch the JVM"))?,
            owner,
            map,
            memory,
            timers: None,
            to_manager,
            manager_end,
            events,
            writer_events,
            listener,
            invitation,
        })
    }

    /// The options with which the agent finds this recorder.
    pub fn options(&self) -> String {
        let attach = format!("attach={}", self.invitation);
        match &self.config.uri {
            Some(_) => format!("{attach},spool={}", self.dir.path().display()),
            None => attach,
        }
    }

    /// Waits until the loaded agent has connected and is ready.
    ///
    /// # Errors
    /// If it does not connect, or reports a failure.
    pub fn connect(self) -> Result<Handshake, RecordError> {
        let control = self.accept().map_err(RecordError::Silent)?;
        let mut handed = vec![
            self.memory.as_raw_fd(),
            self.to_manager.as_raw_fd(),
            self.events.as_raw_fd(),
        ];
        handed.extend(self.timers.iter().map(|(_, memory)| memory.as_raw_fd()));
        let sent = sendmsg::<()>(
            control.as_raw_fd(),
            &[IoSlice::new(&self.invitation.key)],
            &[ControlMessage::ScmRights(&handed)],
            MsgFlags::MSG_NOSIGNAL,
            None,
        );
        // An agent that refuses may have closed the connection already, but has sent the reason.
        match receive(&control, DESCRIBING) {
            Ok(FromAgent::Ready { layout, recompiles }) => Ok(Handshake {
                recorder: self,
                control,
                layout,
                recompiles,
            }),
            Ok(FromAgent::Failed(reason)) => Err(RecordError::Refused(reason)),
            Ok(_) => Err(RecordError::Silent(io::ErrorKind::InvalidData.into())),
            Err(e) => Err(RecordError::Silent(sent.err().map_or(e, io::Error::from))),
        }
    }

    /// Accepts the connection from the JVM; closes those of other processes.
    fn accept(&self) -> io::Result<UnixStream> {
        accept_from(&self.listener, SOON, |stream| {
            peer::is_from(stream, self.jvm, self.owner)
        })
    }
}

/// Accepts the first wanted connection in time, among any number of others.
fn accept_from(
    listener: &UnixListener,
    patience: Duration,
    is_wanted: impl Fn(&UnixStream) -> io::Result<bool>,
) -> io::Result<UnixStream> {
    let until = Instant::now() + patience;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        if wait(left, &[listener.as_fd()]) {
            let (stream, _) = listener.accept()?;
            if is_wanted(&stream)? {
                return Ok(stream);
            }
        }
    }
}

/// The agent is ready, and sampling has not started.
pub struct Handshake {
    recorder: Recorder,
    control: UnixStream,
    layout: Layout,
    recompiles: bool,
}

impl Handshake {
    /// Whether the JVM now recompiles its code.
    pub fn recompiles(&self) -> bool {
        self.recompiles
    }

    /// Waits for `duration`, or until `stop` polls readable or the agent disconnects.
    pub fn wait(&self, duration: Duration, stop: impl AsFd) {
        wait(duration, &[self.control.as_fd(), stop.as_fd()]);
    }

    /// Starts sampling.
    ///
    /// # Errors
    /// If the processes cannot be started, or the agent is gone.
    pub fn go(self) -> Result<Recording, RecordError> {
        let Self {
            recorder,
            control,
            layout,
            ..
        } = self;
        let system = |what| move |e| LaunchError::System(what, e);
        let (alive, ends) = UnixStream::pair().map_err(system("make a socket"))?;
        let delivery = match recorder.spool {
            Some(spool) => Some(Delivery::new(spool, &recorder.dir, recorder.jvm)?),
            None => None,
        };
        let spool = delivery.as_ref().map(|delivery| &delivery.spool);
        let place = match spool {
            Some(spool) => Place::Spool(spool.handle().map_err(system("open the spool"))?),
            None => Place::Profile(recorder.dir),
        };
        let plan = LaunchPlan {
            config: &recorder.config,
            place,
            tag: spool.map(|spool| spool.tag().to_owned()),
            jvm: recorder.jvm,
            owner: Some(recorder.owner),
            ends: ends.into(),
            from_jvm: recorder.manager_end,
            events: recorder.writer_events,
            map: &recorder.map,
            timers: None,
            layout,
        };
        start(plan, &control)?;
        Ok(Recording {
            control,
            jvm_ends: recorder.jvm_ends,
            alive: Some(alive),
            writer: recorder.events,
            delivery,
            delivery_failure: None,
            map: recorder.map,
        })
    }

    /// Samples until the JVM ends. The processes and the agent go on when this process ends.
    ///
    /// # Errors
    /// If the processes cannot be started, or the agent is gone.
    pub fn leave(self) -> Result<(), RecordError> {
        let Self {
            recorder,
            control,
            layout,
            ..
        } = self;
        let tag = spool_tag(recorder.dir.path()).filter(|_| recorder.config.uri.is_some());
        let plan = LaunchPlan {
            config: &recorder.config,
            tag: tag.map(str::to_owned),
            place: Place::Profile(recorder.dir),
            jvm: recorder.jvm,
            owner: None,
            ends: recorder.jvm_ends,
            from_jvm: recorder.manager_end,
            events: recorder.writer_events,
            map: &recorder.map,
            timers: recorder.timers.as_ref().map(|(rings, _)| rings),
            layout,
        };
        start(plan, &control)
    }
}

/// Starts the processes, and has the agent announce the threads.
fn start(plan: LaunchPlan<'_>, mut control: &UnixStream) -> Result<(), RecordError> {
    plan.start()
        .map_err(|(what, e)| LaunchError::System(what, e))?;
    control.write_all(&[GO]).map_err(RecordError::Silent)?;
    match receive(control, SOON).map_err(RecordError::Silent)? {
        FromAgent::Going => Ok(()),
        FromAgent::Failed(reason) => Err(RecordError::Refused(reason)),
        _ => Err(RecordError::Silent(io::ErrorKind::InvalidData.into())),
    }
}

/// Copies the profile of another user's JVM to the recorder's directory.
struct Delivery {
    spool: Spool,
    /// Marks the profile as growing for its readers.
    live: LiveMarker,
    failure: Option<io::Error>,
}

impl Delivery {
    fn new(spool: Spool, dir: &ProfileDir, jvm: u32) -> Result<Self, LaunchError> {
        let name = format!("{}-{}", writer_name(&host(), jvm), spool.tag());
        Ok(Self {
            live: LiveMarker::hold(dir, &name).map_err(LaunchError::Directory)?,
            spool,
            failure: None,
        })
    }

    fn deliver(&mut self) {
        if let Err(e) = self.spool.deliver() {
            self.failure.get_or_insert(e);
        }
    }

    fn finish(mut self, writer_errno: i32) -> Option<io::Error> {
        self.deliver();
        let errno = match &self.failure {
            Some(e) => e.raw_os_error().unwrap_or(libc::EIO),
            None => writer_errno,
        };
        if errno != 0 {
            self.live.fail(errno);
        }
        self.failure
    }
}

/// A running recording. Dropping it ends it.
pub struct Recording {
    control: UnixStream,
    jvm_ends: OwnedFd,
    /// Open while samples are wanted: the samplers watch the other end.
    alive: Option<UnixStream>,
    /// The other end is the writer's.
    writer: UnixStream,
    delivery: Option<Delivery>,
    delivery_failure: Option<io::Error>,
    map: CodeMap,
}

impl Recording {
    /// Waits for `duration`, or until the JVM ends or `stop` polls readable.
    pub fn wait(&mut self, duration: Duration, stop: impl AsFd) {
        let until = Instant::now() + duration;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let round = match self.delivery {
                Some(_) => left.min(DELIVER_EVERY),
                None => left,
            };
            let told = wait(round, &[self.jvm_ends.as_fd(), stop.as_fd()]);
            if told || Instant::now() >= until {
                return;
            }
            if let Some(delivery) = &mut self.delivery {
                delivery.deliver();
            }
        }
    }

    /// Ends sampling, and waits until samplers and writer have finished their data and the profile is complete, at most
    /// `patience`. Returns whether it is.
    pub fn finish(&mut self, patience: Duration) -> bool {
        self.stop();
        let hung_up = vec![PollFd::new(self.writer.as_fd(), PollFlags::empty())];
        let written = wait_for(patience, hung_up);
        if let Some(delivery) = self.delivery.take() {
            let failure = StatusWords::new(&self.map).failure(Failure::Writer);
            let errno = failure.and_then(|e| e.raw_os_error());
            self.delivery_failure = delivery.finish(errno.unwrap_or(0));
        }
        written
    }

    /// Ends sampling; samplers and writer finish their data.
    fn stop(&mut self) {
        self.alive = None;
        let _ = self.writer.shutdown(Shutdown::Write);
    }

    /// Whether the JVM has ended.
    pub fn jvm_has_ended(&self) -> bool {
        let mut fds = [PollFd::new(self.jvm_ends.as_fd(), PollFlags::POLLIN)];
        poll(&mut fds, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
    }

    /// Makes the agent detach and waits until it has.
    ///
    /// # Errors
    /// If the agent does not confirm it in time.
    pub fn detach(&mut self) -> io::Result<()> {
        self.stop();
        self.control.shutdown(Shutdown::Write)?;
        match receive(&self.control, LEAVING)? {
            FromAgent::Left => Ok(()),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// A failure to report to the user.
    pub fn failure(&self) -> Option<String> {
        let delivery = || {
            let e = self.delivery_failure.as_ref()?;
            Some(format!("a part of the profile was not copied: {e}"))
        };
        StatusWords::new(&self.map).message().or_else(delivery)
    }
}

/// Waits until one of the descriptors polls readable, at most `duration`. Returns whether one does.
fn wait(duration: Duration, descriptors: &[BorrowedFd<'_>]) -> bool {
    let readable = descriptors
        .iter()
        .map(|fd| PollFd::new(*fd, PollFlags::POLLIN));
    wait_for(duration, readable.collect())
}

/// The same for other events.
fn wait_for(duration: Duration, mut fds: Vec<PollFd<'_>>) -> bool {
    let until = Instant::now() + duration;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        // Rounded up, to avoid waking too early.
        let timeout = i32::try_from(left.as_millis() + 1).unwrap_or(i32::MAX);
        let timeout = PollTimeout::try_from(timeout).unwrap_or(PollTimeout::MAX);
        match poll(&mut fds, timeout) {
            Ok(0) if Instant::now() < until => {}
            Err(nix::errno::Errno::EINTR) => {}
            polled => return polled.is_ok_and(|ready| ready > 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_that_keep_connecting_do_not_make_the_wait_longer() {
        let name = format!("unfuse-test-crowd-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(name).unwrap();
        let listener = UnixListener::bind_addr(&address).unwrap();
        let crowd = std::thread::spawn(move || while UnixStream::connect_addr(&address).is_ok() {});
        let error = accept_from(&listener, Duration::from_millis(50), |_| Ok(false)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(listener);
        crowd.join().unwrap();
    }
}
