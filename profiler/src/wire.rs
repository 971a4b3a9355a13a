//! Messages between our processes. Each is one packet of a SOCK_SEQPACKET pair, so messages of several samplers never
//! mix, and an end that all its holders have closed is an end of file.

use std::collections::BTreeMap;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::rc::Rc;

use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, recv, recvmsg, send, sendmsg, setsockopt,
    socketpair, sockopt,
};
use serde::{Deserialize, Serialize, Serializer};
use unfuse_format::{Frame, FrameKind, StackId};

/// Largest packet, bytes. Limited by the socket's buffer, see [`packet_pair`].
pub(crate) const MAX_PACKET: usize = 256 << 10;

/// Length of the windows in which samplers count all and incomplete samples, ns.
pub(crate) const WINDOW_NS: u64 = 100_000_000;

/// Longest message on a stream, bytes: a thread's name and a few numbers.
const LONGEST_MESSAGE: usize = 4 << 10;

/// From the JVM to the manager.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToManager {
    /// Profile this thread from now on; `slot` is its timer's ring, if timers are used.
    Profile {
        tid: u32,
        name: String,
        task: bool,
        slot: Option<u32>,
    },
    /// The thread has ended, after this CPU time.
    Ended { tid: u32, cpu_ns: u64 },
    /// Profile only task threads from now on: end the other samplers.
    TasksOnly,
    /// Make samplers send their data.
    Collect,
}

/// The Spark task of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TaskAttempt {
    pub stage: i32,
    pub stage_attempt: i32,
    pub task: i64,
}

/// A resolved frame. Native frames have their address in the library; the writer resolves their names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct WireFrame {
    pub frame: Frame,
    /// Address within the ELF file `frame.file`, for native frames.
    pub address: u64,
}

/// A [`WireFrame`] as sent: its kind is a number, so it is not larger than when it was received. Its texts can be those
/// of the packet.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SentFrame<T> {
    kind: u8,
    class: T,
    method: T,
    signature: T,
    file: T,
    line: u32,
    bci: i32,
    inlined: bool,
    line_before: u32,
    address: u64,
}

/// A [`WirePiece`] in a packet.
pub type SentPiece<'a> = Vec<SentFrame<&'a str>>;

impl SentFrame<&str> {
    /// The frame; `None` if no kind of frame has its number.
    pub(crate) fn into_frame(self) -> Option<WireFrame> {
        let frame = Frame {
            kind: FrameKind::from_number(self.kind)?,
            class: self.class.into(),
            method: self.method.into(),
            signature: self.signature.into(),
            file: self.file.into(),
            line: self.line,
            bci: self.bci,
            inlined: self.inlined,
            line_before: self.line_before,
        };
        let address = self.address;
        Some(WireFrame { frame, address })
    }
}

impl Serialize for WireFrame {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let frame = &self.frame;
        let sent = SentFrame {
            kind: frame.kind.number(),
            class: frame.class.as_str(),
            method: &frame.method,
            signature: &frame.signature,
            file: &frame.file,
            line: frame.line,
            bci: frame.bci,
            inlined: frame.inlined,
            line_before: frame.line_before,
            address: self.address,
        };
        sent.serialize(serializer)
    }
}

/// Frames of one word of a callchain: a method with its inlined callees, innermost first.
pub type WirePiece = Rc<[WireFrame]>;

/// Stacks seen at about the same time. Callers of the leaves are mostly the same, and are sent once.
#[derive(Debug, Serialize, Deserialize)]
pub struct WireStacks<P = WirePiece> {
    pub pieces: Vec<P>,
    pub stacks: Vec<WireStack>,
}

impl<P> Default for WireStacks<P> {
    fn default() -> Self {
        Self {
            pieces: Vec::new(),
            stacks: Vec::new(),
        }
    }
}

/// A stack of pieces.
#[derive(Debug, Serialize, Deserialize)]
pub struct WireStack {
    pub id: StackId,
    /// Indices in [`WireStacks::pieces`], innermost first.
    pub pieces: Vec<u32>,
}

/// Samples with one stack and one task.
#[derive(Debug, Serialize, Deserialize)]
pub struct WireSamples {
    pub task: Option<TaskAttempt>,
    pub stack: StackId,
    /// Whether the thread was off its CPU.
    pub waiting: bool,
    pub first: u64,
    pub last: u64,
    pub count: u64,
    pub weight_ns: u64,
}

/// Counts of a sampler since its last message.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// For attached JVMs, by window (see `writer::completeness`): all samples, and incomplete ones.
    pub windows: BTreeMap<u64, (u64, u64)>,
    pub samples: u64,
    pub lost_samples: u64,
    pub lost_marks: u64,
    pub broken_chains: u64,
    /// Time of all waits, ns.
    pub waiting_ns: u64,
    /// Part of `waiting_ns` whose stack is the last CPU sample's, because switches could not be sampled.
    pub guessed_ns: u64,
    /// Part of `waiting_ns` whose stack is unknown.
    pub stackless_ns: u64,
}

/// From a sampler to the writer.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToWriter<P = WirePiece> {
    /// Stacks that this sampler has not sent before.
    Stacks(WireStacks<P>),
    /// Samples of one thread.
    Samples {
        tid: u32,
        thread: String,
        /// The writer's generation in which the rows' stacks were sent.
        generation: u64,
        /// Stacks of the rows that this sampler has not sent before.
        stacks: WireStacks<P>,
        rows: Vec<WireSamples>,
        /// Counters to add.
        tally: Tally,
    },
    /// Samples of a Python worker in a task.
    Python(WirePython),
}

/// What was sampled in a Python worker since its last message.
#[derive(Debug, Serialize, Deserialize)]
pub struct WirePython {
    pub job: PythonJob,
    /// As in [`ToWriter::Samples`].
    pub generation: u64,
    pub rows: Vec<WireSamples>,
    /// CPU time of the worker since it got the job, as far as it is known, ns.
    pub used_ns: u64,
    /// Whether this is the answer to [`ToPython::End`].
    pub over: bool,
}

/// A Python worker's work for a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PythonJob {
    pub task: TaskAttempt,
    /// The worker's process id.
    pub pid: u32,
}

/// From the writer to the sampler of Python workers.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToPython<P = WirePiece> {
    /// The worker has got a job; with the frames of Spark's code that talks to it, innermost first.
    Begin(PythonJob, P),
    /// The task has ended.
    End(PythonJob),
}

/// A pair of packet sockets, close-on-exec, with space for whole messages.
pub(crate) fn packet_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SockFlag::SOCK_CLOEXEC;
    let (a, b) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags)?;
    for end in [&a, &b] {
        // Without the capability the kernel limits it to wmem_max, which also fits MAX_PACKET (it counts double), so an
        // error is no failure.
        let _ = setsockopt(end, sockopt::SndBuf, &(4 * MAX_PACKET));
    }
    Ok((a, b))
}

/// The packet of a message.
pub fn encode<M: Serialize>(message: &M) -> io::Result<Vec<u8>> {
    postcard::to_stdvec(message).map_err(io::Error::other)
}

/// The message of a packet; `None` if it is invalid.
pub fn decode<'a, M: Deserialize<'a>>(packet: &'a [u8]) -> Option<M> {
    postcard::from_bytes(packet).ok()
}

/// Sends a message, waiting for space.
pub(crate) fn send_blocking<M: Serialize>(to: &OwnedFd, message: &M) -> io::Result<()> {
    let bytes = encode(message)?;
    loop {
        match sendmsg::<()>(
            to.as_raw_fd(),
            &[IoSlice::new(&bytes)],
            &[],
            MsgFlags::MSG_NOSIGNAL,
            None,
        ) {
            Ok(_) => return Ok(()),
            Err(nix::errno::Errno::EINTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

/// Sends a packet if there is space at once.
pub(crate) fn send_packet<M: Serialize>(to: &OwnedFd, message: &M) -> io::Result<()> {
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
    send(to.as_raw_fd(), &encode(message)?, flags)?;
    Ok(())
}

/// Sends a message on a stream if there is space at once; for the JVM's threads.
///
/// A stream holds hundreds of small messages, while a packet socket holds `net.unix.max_dgram_qlen` of them, often 10.
/// Messages of several threads do not mix: the kernel accepts a small one completely or not at all.
pub(crate) fn send_at_once<M: Serialize>(to: &UnixStream, message: &M) -> io::Result<()> {
    let message = encode(message)?;
    let mut bytes = (message.len() as u32).to_ne_bytes().to_vec();
    bytes.extend(message);
    send(
        to.as_raw_fd(),
        &bytes,
        MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL,
    )?;
    Ok(())
}

/// Reassembles messages from a stream.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    buffer: Vec<u8>,
}

impl Messages {
    /// The next message, without waiting. An invalid or too long one ends the connection.
    pub(crate) fn receive<M: for<'a> Deserialize<'a>>(&mut self, from: &UnixStream) -> Incoming<M> {
        let mut chunk = [0u8; 16 << 10];
        loop {
            if let Some((length, rest)) = self.buffer.split_first_chunk::<4>() {
                let length = u32::from_ne_bytes(*length) as usize;
                if length > LONGEST_MESSAGE {
                    return Incoming::Closed;
                }
                if let Some(bytes) = rest.get(..length) {
                    let message = postcard::from_bytes(bytes);
                    self.buffer.drain(..4 + length);
                    return message.map_or(Incoming::Closed, Incoming::Message);
                }
            }
            match recv(from.as_raw_fd(), &mut chunk, MsgFlags::MSG_DONTWAIT) {
                Ok(0) => return Incoming::Closed,
                Ok(bytes) => self.buffer.extend_from_slice(&chunk[..bytes]),
                Err(nix::errno::Errno::EAGAIN | nix::errno::Errno::EINTR) => {
                    return Incoming::Empty;
                }
                Err(_) => return Incoming::Closed,
            }
        }
    }
}

/// A pair of streams, close-on-exec, with large buffers.
pub(crate) fn stream_pair() -> io::Result<(UnixStream, UnixStream)> {
    let (a, b) = UnixStream::pair()?;
    // As much as the system allows; an error is no failure.
    let _ = setsockopt(&a, sockopt::SndBuf, &(4 * MAX_PACKET));
    Ok((a, b))
}

/// The result of receiving.
pub(crate) enum Incoming<M> {
    /// A message.
    Message(M),
    /// Nothing now.
    Empty,
    /// All senders are gone, or one sent an invalid message.
    Closed,
}

/// Receives a message without waiting. A packet that cannot be decoded is skipped as `Empty`.
pub(crate) fn receive<'a, M: Deserialize<'a>>(
    from: &OwnedFd,
    buffer: &'a mut Vec<u8>,
) -> Incoming<M> {
    buffer.resize(MAX_PACKET, 0);
    let received = {
        let mut slices = [IoSliceMut::new(buffer)];
        recvmsg::<()>(from.as_raw_fd(), &mut slices, None, MsgFlags::MSG_DONTWAIT).map(|m| m.bytes)
    };
    match received {
        Ok(0) => Incoming::Closed,
        Ok(bytes) => decode(&buffer[..bytes]).map_or(Incoming::Empty, Incoming::Message),
        Err(nix::errno::Errno::EAGAIN | nix::errno::Errno::EINTR) => Incoming::Empty,
        Err(_) => Incoming::Closed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_message_ends_the_connection() {
        let too_long = (LONGEST_MESSAGE as u32 + 1).to_ne_bytes();
        let unknown = [[1, 0, 0, 0], [0xff; 4]].concat();
        for bytes in [&too_long[..], &u32::MAX.to_ne_bytes(), &unknown] {
            let (to, from) = stream_pair().unwrap();
            send(to.as_raw_fd(), bytes, MsgFlags::empty()).unwrap();
            let received = Messages::default().receive::<ToManager>(&from);
            assert!(matches!(received, Incoming::Closed), "{bytes:?}");
        }
    }

    #[test]
    fn the_longest_name_fits_into_a_message() {
        let (to, from) = stream_pair().unwrap();
        let profile = ToManager::Profile {
            tid: u32::MAX,
            name: "x".repeat(crate::names::LONGEST_THREAD_NAME),
            task: true,
            slot: Some(u32::MAX),
        };
        send_at_once(&to, &profile).unwrap();
        let received = Messages::default().receive::<ToManager>(&from);
        assert!(matches!(received, Incoming::Message(_)));
    }

    #[test]
    fn a_stream_holds_a_burst_and_gives_it_back_in_order() {
        let (to, from) = stream_pair().unwrap();
        let sent = (0..200u32)
            .take_while(|tid| {
                let ended = ToManager::Ended {
                    tid: *tid,
                    cpu_ns: u64::MAX,
                };
                send_at_once(&to, &ended).is_ok()
            })
            .count();
        assert_eq!(sent, 200);
        drop(to);
        let mut messages = Messages::default();
        for expected in 0..200 {
            match messages.receive(&from) {
                Incoming::Message(ToManager::Ended { tid, .. }) => assert_eq!(tid, expected),
                _ => panic!("message {expected} is missing"),
            }
        }
        assert!(matches!(
            messages.receive::<ToManager>(&from),
            Incoming::Closed
        ));
    }
}
