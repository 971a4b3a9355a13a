//! Pausing a running profiler, and resuming it.
//!
//! The manager listens on an abstract socket that is named after the JVM. `unfuse pause` and `unfuse resume` send one byte, and
//! the manager answers with the state and whether all samplers are in it. Such a name has no permissions, so both ends check who
//! the other is: the manager listens to root and to the JVM's owner only, and whoever asks accepts no answer of another user's
//! process.

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::{Duration, Instant};

use nix::sys::socket::{getsockopt, sockopt};

use crate::error::PauseError;
use crate::identity::may_profile;
use crate::running::RunningTask;

/// How long either end waits for a byte of the other.
const SOON: Duration = Duration::from_millis(200);
/// How long samplers may take to follow. One whose thread ends meanwhile never does.
pub(crate) const FOLLOW: Duration = Duration::from_millis(500);

/// What a running profiler records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RecordingState {
    /// Everything.
    #[default]
    On,
    /// Plans, stages, tasks and sources, but neither samples nor waits, nor what tasks and the host use.
    EventsOnly,
    /// Nothing but the sources of generated code. Tasks and queries that begin meanwhile are not in the profile.
    Off,
}

impl RecordingState {
    const ALL: [Self; 3] = [Self::On, Self::EventsOnly, Self::Off];

    /// The state with this number, by which it stands in the status words and in a request.
    pub(crate) fn from_number(number: u64) -> Option<Self> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }
}

/// In place of a state: only asks for it.
const ASK: u8 = 0xff;
/// In place of a state: asks for the tasks that run.
const RUNNING: u8 = 0xfe;

/// The manager's end.
#[derive(Debug)]
pub(crate) struct PauseListener(UnixListener);

impl PauseListener {
    /// Listens for who wants to pause the profiler of this JVM.
    ///
    /// # Errors
    /// The system's; `AddrInUse` where the name is taken.
    pub(crate) fn bind(jvm: u32) -> io::Result<Self> {
        let listener = UnixListener::bind_addr(&address(jvm)?)?;
        listener.set_nonblocking(true)?;
        Ok(Self(listener))
    }

    /// Takes one connection, if there is one. Calls `set` with the state that is asked for, then answers with what `state` says:
    /// the state, and whether all samplers follow it. Where the tasks that run are asked for, answers with `running` only.
    pub(crate) fn serve(
        &self,
        set: impl FnOnce(RecordingState),
        state: impl FnOnce() -> (RecordingState, bool),
        running: impl FnOnce() -> Vec<RunningTask>,
    ) {
        let Ok((mut connection, _)) = self.0.accept() else {
            return;
        };
        let peer = getsockopt(&connection, sockopt::PeerCredentials);
        if !peer.is_ok_and(|peer| may_profile(&peer)) {
            return;
        }
        let mut byte = [ASK];
        let read = connection
            .set_read_timeout(Some(SOON))
            .and_then(|()| connection.read_exact(&mut byte));
        if read.is_err() {
            return;
        }
        let answer = if byte[0] == RUNNING {
            RunningTask::encode(&running())
        } else {
            if let Some(wanted) = RecordingState::from_number(byte[0].into()) {
                set(wanted);
            }
            let (state, settled) = state();
            vec![state as u8, u8::from(settled)]
        };
        let _ = connection.set_write_timeout(Some(SOON));
        let _ = connection.write_all(&answer);
    }
}

impl AsFd for PauseListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The name of the socket. It is the network namespace's, and process ids are the process namespace's: both of the JVM.
fn address(jvm: u32) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("unfuse-pause-{jvm}"))
}

/// Brings the profiler of a JVM into a state, and waits until its samplers follow.
///
/// # Errors
/// Where the JVM is not being profiled, its profiler does not listen to this user, or samplers do not follow in time.
pub fn set_recording(jvm: u32, state: RecordingState) -> Result<(), PauseError> {
    let until = Instant::now() + FOLLOW + SOON;
    let mut request = state as u8;
    loop {
        let (now, settled) = ask(jvm, request)?;
        if now == state && settled {
            return Ok(());
        }
        if Instant::now() >= until {
            return Err(PauseError::Late(jvm));
        }
        request = ASK;
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The tasks that run in a profiled JVM now, by thread. A task is missing if it began before thousands of others, and every task is
/// while the profiler is paused by `unfuse pause --all`.
///
/// # Errors
/// Where the JVM is not being profiled, or its profiler does not answer this user.
pub fn running_tasks(jvm: u32) -> Result<Vec<RunningTask>, PauseError> {
    let mut answer = Vec::new();
    let mut connection = request(jvm, RUNNING)?.take(RunningTask::MOST_BYTES);
    connection
        .read_to_end(&mut answer)
        .map_err(|e| failed(jvm, e))?;
    // It hangs up on whom it does not listen to.
    RunningTask::decode(&answer).ok_or(PauseError::NotAllowed(jvm))
}

/// One question to the manager about the state.
fn ask(jvm: u32, wanted: u8) -> Result<(RecordingState, bool), PauseError> {
    let mut answer = [0; 2];
    request(jvm, wanted)?
        .read_exact(&mut answer)
        .map_err(|e| failed(jvm, e))?;
    let state = RecordingState::from_number(answer[0].into())
        .ok_or_else(|| PauseError::System(jvm, io::ErrorKind::InvalidData.into()))?;
    Ok((state, answer[1] == 1))
}

fn failed(jvm: u32, error: io::Error) -> PauseError {
    match error.kind() {
        // It hangs up on whom it does not listen to.
        io::ErrorKind::UnexpectedEof
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::BrokenPipe => PauseError::NotAllowed(jvm),
        io::ErrorKind::WouldBlock => PauseError::Late(jvm),
        _ => PauseError::System(jvm, error),
    }
}

/// Connects to the manager and sends a question.
fn request(jvm: u32, byte: u8) -> Result<UnixStream, PauseError> {
    let system = |e| PauseError::System(jvm, e);
    let owner = fs::metadata(format!("/proc/{jvm}")).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => PauseError::NoProcess(jvm),
        _ => system(e),
    })?;
    let address = address(jvm).map_err(system)?;
    let mut connection = UnixStream::connect_addr(&address).map_err(|e| match e.kind() {
        io::ErrorKind::ConnectionRefused => PauseError::NotProfiled(jvm),
        _ => system(e),
    })?;
    let peer = getsockopt(&connection, sockopt::PeerCredentials).map_err(|e| system(e.into()))?;
    if peer.uid() != owner.uid() {
        return Err(PauseError::Impostor {
            pid: jvm,
            user: peer.uid(),
        });
    }
    connection
        .set_read_timeout(Some(SOON))
        .and_then(|()| connection.set_write_timeout(Some(SOON)))
        .and_then(|()| connection.write_all(&[byte]))
        .map_err(|e| failed(jvm, e))?;
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn the_manager_is_asked_until_its_samplers_follow() {
        let jvm = std::process::id();
        let listener = PauseListener::bind(jvm).unwrap();
        assert_eq!(
            PauseListener::bind(jvm).unwrap_err().kind(),
            io::ErrorKind::AddrInUse
        );
        let client = std::thread::spawn(move || set_recording(jvm, RecordingState::Off));
        let (state, asked) = (Cell::new(RecordingState::On), Cell::new(0));
        while !client.is_finished() {
            listener.serve(
                |wanted| state.set(wanted),
                || {
                    asked.set(asked.get() + 1);
                    (state.get(), asked.get() == 3)
                },
                Vec::new,
            );
        }
        client.join().unwrap().unwrap();
        assert_eq!((state.get(), asked.get()), (RecordingState::Off, 3));
    }

    #[test]
    fn a_jvm_without_a_profiler_refuses() {
        let parent = std::os::unix::process::parent_id();
        let error = set_recording(parent, RecordingState::EventsOnly).unwrap_err();
        assert!(matches!(error, PauseError::NotProfiled(_)), "{error}");
    }

    #[test]
    fn numbers_are_states() {
        for state in RecordingState::ALL {
            assert_eq!(RecordingState::from_number(state as u64), Some(state));
        }
        assert_eq!(RecordingState::from_number(ASK.into()), None);
    }
}
