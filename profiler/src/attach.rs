//! Profiling a JVM that runs already: what `unfuse record` and the agent it loads say to each other.
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
//! A JVM with heap and threads is never forked. Everything hangs on the recorder: when it ends, however it
//! ends, its sockets close, the samplers finish and the agent leaves.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::{Duration, Instant};

use nix::cmsg_space;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, getsockopt, recvmsg, sendmsg, sockopt,
};
use serde::{Deserialize, Serialize};
use unfuse_codemap::CodeMap;
use unfuse_format::ProfileDir;

use crate::config::Config;
use crate::interpreter::Layout;
use crate::launch::{Crew, LaunchError, STATUS_ATTACHED, Session, failure_in};
use crate::perf_event;
use crate::process;
use crate::wire::stream_pair;

/// How long each side waits for a word of the other that is due at once.
const SOON: Duration = Duration::from_secs(10);
/// How long the agent may take to describe the code there is.
const DESCRIBING: Duration = Duration::from_secs(120);
/// How long the agent may take to leave.
const LEAVING: Duration = Duration::from_secs(15);
/// No message is longer.
const LONGEST: u32 = 1 << 16;
/// "Name the threads."
const GO: u8 = b'g';

/// What the agent says.
#[derive(Debug, Serialize, Deserialize)]
enum FromAgent {
    Ready { layout: Layout, recompiles: bool },
    Going,
    Left,
    Failed(String),
}

fn send(mut to: &UnixStream, message: &FromAgent) -> io::Result<()> {
    let message = postcard::to_stdvec(message).map_err(io::Error::other)?;
    let mut bytes = (message.len() as u32).to_ne_bytes().to_vec();
    bytes.extend(message);
    to.write_all(&bytes)
}

fn receive(mut from: &UnixStream, patience: Duration) -> io::Result<FromAgent> {
    from.set_read_timeout(Some(patience))?;
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_ne_bytes(length);
    if length > LONGEST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0; length as usize];
    from.read_exact(&mut bytes)?;
    postcard::from_bytes(&bytes).map_err(io::Error::other)
}

/// The recorder's side, before the agent is loaded.
pub struct Recorder {
    config: Config,
    dir: ProfileDir,
    jvm: u32,
    map: CodeMap,
    memory: OwnedFd,
    to_manager: UnixStream,
    manager_end: UnixStream,
    listener: UnixListener,
    name: String,
}

/// Why a recording cannot begin.
#[derive(Debug)]
pub enum RecordError {
    /// What is needed on this side.
    Launch(LaunchError),
    /// The agent says so.
    Refused(String),
    /// The agent says nothing.
    Silent(io::Error),
}

impl std::fmt::Display for RecordError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Launch(e) => e.fmt(f),
            Self::Refused(reason) => f.write_str(reason),
            Self::Silent(e) => write!(f, "the agent in the JVM does not answer: {e}"),
        }
    }
}

impl std::error::Error for RecordError {}

impl From<LaunchError> for RecordError {
    fn from(error: LaunchError) -> Self {
        Self::Launch(error)
    }
}

impl Recorder {
    /// Makes the profile directory, the code map and the sockets for the JVM `jvm`.
    ///
    /// # Errors
    /// Where one of them cannot be made, or perf_event is not allowed.
    pub fn new(config: Config, jvm: u32) -> Result<Self, LaunchError> {
        perf_event::probe().map_err(LaunchError::PerfDenied)?;
        let dir = ProfileDir::create(&config.dir).map_err(LaunchError::Directory)?;
        let system = |what| move |e| LaunchError::System(what, e);
        let (map, memory) = CodeMap::create_for_another((config.map_mib as usize) << 20)
            .map_err(system("make the code map"))?;
        map.status().set(STATUS_ATTACHED, 1);
        let (to_manager, manager_end) = stream_pair().map_err(system("make a socket"))?;
        let name = format!(
            "unfuse-record-{}-{}",
            std::process::id(),
            crate::clock::monotonic_ns()
        );
        // In the kernel's own name space: nothing to clean up, and no question of file permissions.
        let listener = SocketAddr::from_abstract_name(&name)
            .and_then(|address| UnixListener::bind_addr(&address))
            .map_err(system("make a socket"))?;
        Ok(Self {
            config,
            dir,
            jvm,
            map,
            memory,
            to_manager,
            manager_end,
            listener,
            name,
        })
    }

    /// The agent's option that leads it here.
    pub fn option(&self) -> String {
        format!("attach={}", self.name)
    }

    /// Lets the agent, which has been loaded, set itself up.
    ///
    /// # Errors
    /// Where it does not come, or says that it cannot.
    pub fn meet(self) -> Result<Met, RecordError> {
        let control = self.accept().map_err(RecordError::Silent)?;
        let handed = [self.memory.as_raw_fd(), self.to_manager.as_raw_fd()];
        let sent = sendmsg::<()>(
            control.as_raw_fd(),
            &[IoSlice::new(&[0])],
            &[ControlMessage::ScmRights(&handed)],
            MsgFlags::MSG_NOSIGNAL,
            None,
        );
        // One that refuses may have hung up already, but has said why.
        match receive(&control, DESCRIBING) {
            Ok(FromAgent::Ready { layout, recompiles }) => Ok(Met {
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

    /// The connection from the JVM; those of other processes are closed.
    fn accept(&self) -> io::Result<UnixStream> {
        let until = Instant::now() + SOON;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let mut fds = [PollFd::new(self.listener.as_fd(), PollFlags::POLLIN)];
            let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
            match poll(&mut fds, timeout) {
                Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
                Ok(_) => {}
                Err(nix::errno::Errno::EINTR) => continue,
                Err(e) => return Err(e.into()),
            }
            let (stream, _) = self.listener.accept()?;
            let peer = getsockopt(&stream, sockopt::PeerCredentials)?;
            if peer.pid() as u32 == self.jvm {
                return Ok(stream);
            }
        }
    }
}

/// The agent is ready; nothing is sampled yet.
pub struct Met {
    recorder: Recorder,
    control: UnixStream,
    layout: Layout,
    recompiles: bool,
}

impl Met {
    /// Whether the JVM now compiles anew what it had compiled.
    pub fn recompiles(&self) -> bool {
        self.recompiles
    }

    /// Waits so long, or until `stop` polls readable or the agent hangs up.
    pub fn wait(&self, duration: Duration, stop: impl AsFd) {
        wait(duration, &[self.control.as_fd(), stop.as_fd()]);
    }

    /// Begins to sample.
    ///
    /// # Errors
    /// Where the processes cannot be started, or the agent is gone.
    pub fn go(self) -> Result<Recording, RecordError> {
        let Self {
            recorder,
            mut control,
            layout,
            ..
        } = self;
        let system = |what| move |e| LaunchError::System(what, e);
        let jvm_ends = process::pidfd(recorder.jvm as i32).map_err(system("watch the JVM"))?;
        let (alive, ends) = UnixStream::pair().map_err(system("make a socket"))?;
        let (events, writer_events) = UnixStream::pair().map_err(system("make a socket"))?;
        let crew = Crew {
            config: &recorder.config,
            dir: recorder.dir,
            jvm: recorder.jvm,
            ends: ends.into(),
            from_jvm: recorder.manager_end,
            events: writer_events,
            map: &recorder.map,
            timers: None,
            layout,
        };
        crew.start()
            .map_err(|(what, e)| LaunchError::System(what, e))?;
        control.write_all(&[GO]).map_err(RecordError::Silent)?;
        match receive(&control, SOON).map_err(RecordError::Silent)? {
            FromAgent::Going => {}
            FromAgent::Failed(reason) => return Err(RecordError::Refused(reason)),
            _ => return Err(RecordError::Silent(io::ErrorKind::InvalidData.into())),
        }
        Ok(Recording {
            control,
            jvm_ends,
            running: Some((alive, events)),
            map: recorder.map,
        })
    }
}

/// A recording at work. Dropping it ends it.
pub struct Recording {
    control: UnixStream,
    jvm_ends: OwnedFd,
    /// Held for as long as samples are to be taken: the samplers watch the other end of the first, the
    /// writer of the second.
    running: Option<(UnixStream, UnixStream)>,
    map: CodeMap,
}

impl Recording {
    /// Waits so long, or until the JVM ends or `stop` polls readable.
    pub fn wait(&self, duration: Duration, stop: impl AsFd) {
        wait(duration, &[self.jvm_ends.as_fd(), stop.as_fd()]);
    }

    /// Ends the sampling; samplers and writer finish what they have.
    pub fn stop(&mut self) {
        self.running = None;
    }

    /// Whether the JVM has ended.
    pub fn jvm_has_ended(&self) -> bool {
        let mut fds = [PollFd::new(self.jvm_ends.as_fd(), PollFlags::POLLIN)];
        poll(&mut fds, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
    }

    /// Makes the agent leave the JVM and waits until it has.
    ///
    /// # Errors
    /// Where the agent does not say so in time.
    pub fn leave(&mut self) -> io::Result<()> {
        self.stop();
        self.control.shutdown(std::net::Shutdown::Write)?;
        match receive(&self.control, LEAVING)? {
            FromAgent::Left => Ok(()),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// A failure that the user should know.
    pub fn failure(&self) -> Option<String> {
        failure_in(&self.map)
    }
}

/// Waits until one of the descriptors polls readable, at most so long.
fn wait(duration: Duration, descriptors: &[BorrowedFd<'_>]) {
    let until = Instant::now() + duration;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let mut fds: Vec<_> = descriptors
            .iter()
            .map(|fd| PollFd::new(*fd, PollFlags::POLLIN))
            .collect();
        // Rounded up, not to wake too early.
        let timeout = i32::try_from(left.as_millis() + 1).unwrap_or(i32::MAX);
        match poll(
            &mut fds,
            PollTimeout::try_from(timeout).unwrap_or(PollTimeout::MAX),
        ) {
            Ok(0) if Instant::now() < until => {}
            Err(nix::errno::Errno::EINTR) => {}
            _ => return,
        }
    }
}

/// The agent's side.
#[derive(Debug)]
pub struct Control(UnixStream);

impl Control {
    /// Connects to the recorder that has this name.
    ///
    /// # Errors
    /// The system's, where there is none.
    pub fn connect(name: &str) -> io::Result<Self> {
        let stream = UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?)?;
        stream.set_read_timeout(Some(SOON))?;
        stream.set_write_timeout(Some(SOON))?;
        Ok(Self(stream))
    }

    /// Takes what the recorder hands over.
    ///
    /// # Errors
    /// Where it hands over nothing, or something else.
    pub fn session(&self) -> io::Result<Session> {
        let mut byte = [0];
        let mut space = cmsg_space!([RawFd; 2]);
        let mut received = Vec::new();
        {
            let mut slices = [IoSliceMut::new(&mut byte)];
            let message = recvmsg::<()>(
                self.0.as_raw_fd(),
                &mut slices,
                Some(&mut space),
                MsgFlags::MSG_CMSG_CLOEXEC,
            )?;
            for part in message.cmsgs()? {
                if let ControlMessageOwned::ScmRights(fds) = part {
                    // SAFETY: the kernel just made these descriptors for this process.
                    received.extend(fds.iter().map(|fd| unsafe { OwnedFd::from_raw_fd(*fd) }));
                }
            }
        }
        let [memory, to_manager] =
            <[OwnedFd; 2]>::try_from(received).map_err(|_| io::ErrorKind::InvalidData)?;
        Ok(Session::attached(
            CodeMap::of_another(memory)?,
            to_manager.into(),
        ))
    }

    /// Says that the code is known, and waits for the word to go on; false where the recorder is gone.
    pub fn ready(&self, layout: Layout, recompiles: bool) -> bool {
        if send(&self.0, &FromAgent::Ready { layout, recompiles }).is_err() {
            return false;
        }
        self.wait() == Some(GO)
    }

    /// Says that the threads are named, and waits until the recorder has enough or is gone.
    pub fn going(&self) {
        if send(&self.0, &FromAgent::Going).is_ok() {
            while self.wait().is_some() {}
        }
    }

    /// Says that the JVM is as it was.
    pub fn left(&self) {
        let _ = send(&self.0, &FromAgent::Left);
    }

    /// Says why not.
    pub fn failed(&self, reason: &str) {
        let _ = send(&self.0, &FromAgent::Failed(reason.to_owned()));
    }

    /// The next byte, however long it takes; `None` at the end.
    fn wait(&self) -> Option<u8> {
        let _ = self.0.set_read_timeout(None);
        let mut byte = [0];
        (&self.0).read_exact(&mut byte).is_ok().then_some(byte[0])
    }
}
