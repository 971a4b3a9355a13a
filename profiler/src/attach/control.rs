//! The agent's side.

use std::io::{self, IoSliceMut, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};

use nix::cmsg_space;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};
use unfuse_codemap::CodeMap;

use super::messages::{FromAgent, send};
use super::peer::{Invitation, KEY_BYTES};
use super::{GO, SOON};
use crate::interpreter::Layout;
use crate::session::Session;
use crate::timer::TimerRings;

/// The agent's end of the connection to the recorder.
#[derive(Debug)]
pub struct Control {
    stream: UnixStream,
    key: [u8; KEY_BYTES],
}

impl Control {
    /// Connects to the recorder that made these options ([`Recorder::options`](super::Recorder::options)).
    ///
    /// # Errors
    /// The system's, if there is no recorder, and `PermissionDenied` if another process has its name by now.
    pub fn connect(option: &str) -> io::Result<Self> {
        let invitation = Invitation::parse(option).ok_or(io::ErrorKind::InvalidInput)?;
        let address = SocketAddr::from_abstract_name(&invitation.name)?;
        let stream = UnixStream::connect_addr(&address)?;
        invitation.check(&stream)?;
        stream.set_read_timeout(Some(SOON))?;
        stream.set_write_timeout(Some(SOON))?;
        Ok(Self {
            stream,
            key: invitation.key,
        })
    }

    /// Receives the map and the socket from the recorder.
    ///
    /// # Errors
    /// If the recorder sends nothing or something else, and `PermissionDenied` if it does not know the key.
    pub fn session(&self) -> io::Result<Session> {
        let mut key = [0; KEY_BYTES];
        let mut space = cmsg_space!([RawFd; 4]);
        let mut received = Vec::new();
        {
            let mut slices = [IoSliceMut::new(&mut key)];
            let message = recvmsg::<()>(
                self.stream.as_raw_fd(),
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
        if key != self.key {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        // Where CPU timers take the samples, a fourth.
        let timers = (received.len() == 4).then(|| received.pop()).flatten();
        let [memory, to_manager, events] =
            <[OwnedFd; 3]>::try_from(received).map_err(|_| io::ErrorKind::InvalidData)?;
        Ok(Session::attached(
            CodeMap::from_descriptor(memory)?,
            to_manager.into(),
            events.into(),
            timers.map(TimerRings::from_descriptor).transpose()?,
        ))
    }

    /// Reports that the code is known, and waits for the recorder; false if the recorder is gone.
    pub fn ready(&self, layout: Layout, recompiles: bool) -> bool {
        if send(&self.stream, &FromAgent::Ready { layout, recompiles }).is_err() {
            return false;
        }
        self.wait() == Some(GO)
    }

    /// Reports that the threads are announced.
    pub fn going(&self) {
        let _ = send(&self.stream, &FromAgent::Going);
    }

    /// Waits until the recorder ends the recording or is gone.
    pub fn wait_for_end(&self) {
        while self.wait().is_some() {}
    }

    /// Reports that the agent is detached.
    pub fn left(&self) {
        let _ = send(&self.stream, &FromAgent::Left);
    }

    /// Reports why recording is impossible.
    pub fn failed(&self, reason: &str) {
        let _ = send(&self.stream, &FromAgent::Failed(reason.to_owned()));
    }

    /// Waits for the next byte without a limit; `None` at the end.
    fn wait(&self) -> Option<u8> {
        let _ = self.stream.set_read_timeout(None);
        let mut byte = [0];
        (&self.stream)
            .read_exact(&mut byte)
            .is_ok()
            .then_some(byte[0])
    }
}

#[cfg(test)]
mod tests {
    use std::io::IoSlice;
    use std::os::unix::net::UnixListener;

    use nix::sys::socket::{ControlMessage, sendmsg};

    use super::*;
    use crate::wire::stream_pair;

    /// Sends a code map with this key, as the recorder does.
    fn hand_over(control: &UnixStream, key: [u8; KEY_BYTES]) {
        let (_map, memory) = CodeMap::create_for_another(0).unwrap();
        let (to_manager, _manager) = stream_pair().unwrap();
        let events = control.try_clone().unwrap();
        let handed = [
            memory.as_raw_fd(),
            to_manager.as_raw_fd(),
            events.as_raw_fd(),
        ];
        sendmsg::<()>(
            control.as_raw_fd(),
            &[IoSlice::new(&key)],
            &[ControlMessage::ScmRights(&handed)],
            MsgFlags::MSG_NOSIGNAL,
            None,
        )
        .unwrap();
    }

    #[test]
    fn only_the_recorder_that_asked_is_accepted() {
        let invitation = Invitation::new().unwrap();
        let address = SocketAddr::from_abstract_name(&invitation.name).unwrap();
        let listener = UnixListener::bind_addr(&address).unwrap();
        for (key, accepted) in [(invitation.key, true), ([7; KEY_BYTES], false)] {
            let control = Control::connect(&invitation.to_string()).unwrap();
            let (recorder, _) = listener.accept().unwrap();
            hand_over(&recorder, key);
            let session = control.session().map(drop).map_err(|e| e.kind());
            let expected = match accepted {
                true => Ok(()),
                false => Err(io::ErrorKind::PermissionDenied),
            };
            assert_eq!(session, expected);
        }
        // Another process has the name now.
        let asked = Invitation {
            pid: 1,
            ..invitation
        };
        let error = Control::connect(&asked.to_string()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    }
}
