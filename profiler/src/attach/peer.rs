//! Authenticates both ends of the abstract socket between recorder and agent.
//!
//! Its name is public in /proc/net/unix, has no permissions, and is free again when the recorder ends. So the recorder
//! accepts connections of the JVM only, and the agent checks that the socket belongs to the process that requested it,
//! and that this process knows the key, which was passed through the JVM's attach socket.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;

use nix::sys::socket::{getsockopt, sockopt};

use crate::identity::{Identity, may_profile};

/// Length of a key, bytes.
pub(super) const KEY_BYTES: usize = 16;

/// The recorder that loads the agent, as an agent option: `NAME:PID:KEY`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Invitation {
    /// The name of the abstract socket.
    pub(super) name: String,
    /// The recorder's process.
    pub(super) pid: u32,
    /// A secret of the recorder and the agent.
    pub(super) key: [u8; KEY_BYTES],
}

impl Invitation {
    /// An invitation from this process.
    pub(super) fn new() -> io::Result<Self> {
        let pid = std::process::id();
        let mut key = [0; KEY_BYTES];
        File::open("/dev/urandom")?.read_exact(&mut key)?;
        Ok(Self {
            name: format!("unfuse-record-{pid}-{}", crate::clock::monotonic_ns()),
            pid,
            key,
        })
    }

    /// Parses the output of `Display`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let (name, pid, key) = (parts.next()?, parts.next()?, parts.next()?);
        let key = u128::from_str_radix(key, 16).ok()?.to_be_bytes();
        Some(Self {
            name: name.to_owned(),
            pid: pid.parse().ok()?,
            key,
        })
    }

    /// Checks that the listener behind a connection is the recorder.
    ///
    /// # Errors
    /// `PermissionDenied` if it is not.
    pub(super) fn check(&self, connection: impl AsFd) -> io::Result<()> {
        let peer = getsockopt(&connection, sockopt::PeerCredentials)?;
        if peer.pid() as u32 == self.pid && may_profile(&peer) {
            return Ok(());
        }
        let reason = format!(
            "its socket belongs to process {} of user {}, not to process {} that asked",
            peer.pid(),
            peer.uid(),
            self.pid
        );
        Err(io::Error::new(io::ErrorKind::PermissionDenied, reason))
    }
}

impl std::fmt::Display for Invitation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let key = u128::from_be_bytes(self.key);
        write!(f, "{}:{}:{key:032x}", self.name, self.pid)
    }
}

/// Whether a connection comes from this process of this user.
pub(super) fn is_from(connection: impl AsFd, pid: u32, owner: Identity) -> io::Result<bool> {
    let peer = getsockopt(&connection, sockopt::PeerCredentials)?;
    Ok(peer.pid() as u32 == pid && peer.uid() == owner.uid().as_raw())
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn an_invitation_survives_its_text() {
        let invitation = Invitation::new().unwrap();
        let text = invitation.to_string();
        assert!(!text.contains(','), "{text} is part of an option string");
        assert_eq!(Invitation::parse(&text), Some(invitation.clone()));
        assert_ne!(Invitation::new().unwrap().key, invitation.key);
        for wrong in ["", "name", "name:1", "name:x:00", "name:1:key"] {
            assert_eq!(Invitation::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn another_process_is_not_the_recorder() {
        let (here, _there) = UnixStream::pair().unwrap();
        let own = Invitation::new().unwrap();
        own.check(&here).unwrap();
        let other = Invitation { pid: 1, ..own };
        let error = other.check(&here).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        let pid = std::process::id();
        assert!(is_from(&here, pid, Identity::current()).unwrap());
        assert!(!is_from(&here, 1, Identity::current()).unwrap());
    }
}
