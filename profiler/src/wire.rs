//! Messages between our processes. One message is one packet of a SOCK_SEQPACKET pair, so messages
//! of several samplers never mix and an end that is closed by all its holders is an end of file.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, recvmsg, send, sendmsg, setsockopt, socketpair,
    sockopt,
};
use serde::{Deserialize, Serialize};
use unfuse_format::Frame;

/// Largest packet. Bounded by the socket's buffer, see [`packet_pair`].
pub(crate) const MAX_PACKET: usize = 256 << 10;

/// From the JVM to the manager.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToManager {
    /// Profile this thread from now on; `slot` is its timer's ring, where timers are used.
    Profile {
        tid: u32,
        name: String,
        task: bool,
        slot: Option<u32>,
    },
    /// The thread is gone.
    Ended { tid: u32 },
    /// Only task threads from now on: end the other samplers.
    TasksOnly,
}

/// The Spark task a sample fell into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TaskKey {
    pub stage: i32,
    pub stage_attempt: i32,
    pub task: i64,
}

/// A resolved frame. Native frames carry their address in the library; the writer names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct WireFrame {
    pub frame: Frame,
    /// Address within the ELF file `frame.file`, for native frames.
    pub address: u64,
}

/// Samples with one stack and one task.
#[derive(Debug, Serialize, Deserialize)]
pub struct WireSamples {
    pub task: Option<TaskKey>,
    pub stack: i64,
    pub first: u64,
    pub last: u64,
    pub count: u64,
    pub weight_ns: u64,
}

/// What a sampler counted since its last message.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    pub samples: u64,
    pub lost_samples: u64,
    pub lost_marks: u64,
    pub broken_chains: u64,
}

/// From a sampler to the writer.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToWriter {
    /// A stack that this sampler has not sent before.
    Stack { id: i64, frames: Vec<WireFrame> },
    /// Samples of one thread.
    Samples {
        tid: u32,
        thread: String,
        rows: Vec<WireSamples>,
    },
    /// Counters, added up.
    Tally(Tally),
}

/// A pair of packet sockets, close-on-exec, with room for whole messages.
pub(crate) fn packet_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SockFlag::SOCK_CLOEXEC;
    let (a, b) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags)?;
    for end in [&a, &b] {
        // Without the capability the kernel caps it at wmem_max, which holds MAX_PACKET as well
        // (it accounts double), so a refusal is no failure.
        let _ = setsockopt(end, sockopt::SndBuf, &(4 * MAX_PACKET));
    }
    Ok((a, b))
}

/// The packet of a message.
pub fn encode<M: Serialize>(message: &M) -> io::Result<Vec<u8>> {
    postcard::to_stdvec(message).map_err(io::Error::other)
}

/// The message of a packet, `None` where it holds none.
pub fn decode<M: for<'a> Deserialize<'a>>(packet: &[u8]) -> Option<M> {
    postcard::from_bytes(packet).ok()
}

/// Sends a message, waiting for room.
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

/// Sends a message if there is room at once; the JVM's threads use this one.
pub(crate) fn send_at_once<M: Serialize>(to: &OwnedFd, message: &M) -> io::Result<()> {
    let bytes = encode(message)?;
    send(
        to.as_raw_fd(),
        &bytes,
        MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL,
    )?;
    Ok(())
}

/// What came in on a packet socket.
pub(crate) enum Incoming<M> {
    /// A message.
    Message(M),
    /// Nothing now.
    Empty,
    /// All senders are gone.
    Closed,
}

/// Receives a message without waiting. A packet that cannot be decoded is skipped as `Empty`.
pub(crate) fn receive<M: for<'a> Deserialize<'a>>(
    from: &OwnedFd,
    buffer: &mut Vec<u8>,
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
