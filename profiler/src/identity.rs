//! The user and group of a JVM, and dropping the privileges of another user's process.
//!
//! Root may record the JVM of any user. All that reads that JVM's memory or touches its files runs in forked processes
//! that take on the identity of the JVM's owner first, so the owner gains no access through them.

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use caps::{CapSet, Capability, CapsHashSet};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::UnixCredentials;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{
    Gid, Pid, Uid, User, getegid, geteuid, getresgid, getresuid, pipe2, setgroups, setresgid,
    setresuid,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::process;

/// Longest answer of [`Identity::run`], bytes.
const LONGEST_ANSWER: u64 = 1 << 20;
/// How long a killed child may take to exit.
const DYING: Duration = Duration::from_secs(2);

/// A user and a group, as the kernel numbers them here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    uid: Uid,
    gid: Gid,
}

/// The answer of a child process of [`Identity::run`].
#[derive(Serialize, Deserialize)]
enum Answer<T> {
    Done(T),
    /// It could not take on the identity; the errno.
    Refused(i32),
}

impl Identity {
    /// The effective user and group of a process. For a process in a user namespace, those outside it.
    ///
    /// # Errors
    /// The system's, if there is no such process.
    pub fn from_process(pid: u32) -> io::Result<Self> {
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        Self::parse(&status).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// `Uid: REAL EFFECTIVE SAVED FILESYSTEM`, among other fields.
    fn parse(status: &str) -> Option<Self> {
        let effective = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().nth(1)?.parse::<u32>().ok()
        };
        Some(Self {
            uid: effective("Uid:")?.into(),
            gid: effective("Gid:")?.into(),
        })
    }

    /// Whether all of a process's ids (real, effective, saved, file system) in its /proc/PID/status are this user's and
    /// group's.
    pub(crate) fn is_all_of(self, status: &str) -> bool {
        let all = |name: &str, id: u32| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let ids = line.unwrap_or_default().split_whitespace();
            ids.map(|id| id.parse().ok()).eq([Some(id); 4])
        };
        all("Uid:", self.uid.as_raw()) && all("Gid:", self.gid.as_raw())
    }

    /// The identity of this process.
    pub fn current() -> Self {
        Self {
            uid: geteuid(),
            gid: getegid(),
        }
    }

    /// The user.
    pub fn uid(self) -> Uid {
        self.uid
    }

    /// The group.
    pub fn gid(self) -> Gid {
        self.gid
    }

    /// Whether this process can take it on.
    pub fn is_available(self) -> bool {
        self == Self::current() || geteuid().is_root()
    }

    /// Runs `work` in a child process with this identity and without capabilities, and returns its result. The child is
    /// killed after `patience`; if it cannot die (a file system blocks it), it is left alone.
    ///
    /// Only for single-threaded processes.
    ///
    /// # Errors
    /// `TimedOut`, or the system's if the child cannot be started or cannot take on the identity.
    pub fn run<T: Serialize + DeserializeOwned>(
        self,
        patience: Duration,
        work: impl FnOnce() -> T,
    ) -> io::Result<T> {
        let until = Instant::now() + patience;
        let (answers, to_parent) = pipe2(OFlag::O_CLOEXEC)?;
        let child = process::spawn(|| {
            let mut to_parent = fs::File::from(to_parent);
            let answer = match self.assume(&[]) {
                Ok(()) => {
                    // The change of identity resets this, so it comes after.
                    let _ = prctl::set_pdeathsig(Signal::SIGKILL);
                    Answer::Done(work())
                }
                Err(e) => Answer::Refused(e.raw_os_error().unwrap_or(libc::EPERM)),
            };
            if let Ok(bytes) = postcard::to_stdvec(&answer) {
                let _ = to_parent.write_all(&bytes);
            }
        })?;
        let answer = read_until(answers, until);
        end(child);
        match postcard::from_bytes(&answer?).map_err(io::Error::other)? {
            Answer::Done(done) => Ok(done),
            Answer::Refused(errno) => Err(io::Error::from_raw_os_error(errno)),
        }
    }

    /// Makes this the only identity of the calling process, permanently, and keeps those of its capabilities that are
    /// in `keep`, none of them effective (see [`raise_capabilities`]). Other processes of this user can neither trace
    /// nor inspect the process.
    ///
    /// # Errors
    /// EPERM if it is not allowed, or the system's. The process must exit then: it may have either identity.
    pub(crate) fn assume(self, keep: &[Capability]) -> io::Result<()> {
        let changes = self != Self::current();
        if changes {
            setgroups(&[])?;
        }
        prctl::set_keepcaps(true)?;
        setresgid(self.gid, self.gid, self.gid)?;
        setresuid(self.uid, self.uid, self.uid)?;
        prctl::set_keepcaps(false)?;
        if changes {
            // The kernel may be configured not to do this itself (fs.suid_dumpable).
            prctl::set_dumpable(false)?;
        }
        retain_capabilities(keep)?;
        let (users, groups) = (getresuid()?, getresgid()?);
        let users = [users.real, users.effective, users.saved];
        let groups = [groups.real, groups.effective, groups.saved];
        if users != [self.uid; 3] || groups != [self.gid; 3] {
            return Err(Errno::EPERM.into());
        }
        Ok(())
    }

    /// The capabilities with which a process of this identity can open events, including the kernel's samples, on the
    /// threads of this user's JVM, and map their rings.
    pub(crate) fn event_capabilities(self) -> Vec<Capability> {
        let held = caps::read(None, CapSet::Permitted).unwrap_or_default();
        let mut keep = vec![Capability::CAP_IPC_LOCK];
        let has_own = held.contains(&Capability::CAP_PERFMON);
        if has_own {
            keep.push(Capability::CAP_PERFMON);
        }
        // Before Linux 5.8 only this one allows events. Some kernels of Debian ask for it at this level, too.
        if !has_own || event_restriction() >= 3 {
            keep.push(Capability::CAP_SYS_ADMIN);
        }
        keep.extend_from_slice(self.inspection_capabilities());
        keep
    }

    /// The capabilities that a process of this identity needs to inspect this user's JVM and read its libraries: a JVM
    /// of root has capabilities, too. For other users none.
    pub(crate) fn inspection_capabilities(self) -> &'static [Capability] {
        match self.uid.is_root() {
            true => &[Capability::CAP_SYS_PTRACE, Capability::CAP_DAC_READ_SEARCH],
            false => &[],
        }
    }
}

/// `kernel.perf_event_paranoid`; 2, as most kernels have it, if it is unknown.
fn event_restriction() -> i32 {
    let text = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
    text.ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(2)
}

/// `alice`, or `user 1000` if the user has no name here.
impl std::fmt::Display for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match User::from_uid(self.uid) {
            Ok(Some(user)) => f.write_str(&user.name),
            _ => write!(f, "user {}", self.uid),
        }
    }
}

/// Keeps those of the calling process's capabilities that are in `keep`, none of them effective, and prevents it from
/// gaining any by executing a program.
pub(crate) fn retain_capabilities(keep: &[Capability]) -> io::Result<()> {
    let keep: CapsHashSet = caps::read(None, CapSet::Permitted)
        .map_err(io::Error::other)?
        .into_iter()
        .filter(|held| keep.contains(held))
        .collect();
    prctl::set_no_new_privs()?;
    for (set, kept) in [
        (CapSet::Effective, &CapsHashSet::new()),
        (CapSet::Inheritable, &CapsHashSet::new()),
        (CapSet::Permitted, &keep),
    ] {
        caps::set(None, set, kept).map_err(io::Error::other)?;
    }
    Ok(())
}

/// Makes the kept capabilities of the calling process effective.
pub(crate) fn raise_capabilities() {
    if let Ok(kept) = caps::read(None, CapSet::Permitted) {
        let _ = caps::set(None, CapSet::Effective, &kept);
    }
}

/// Reads to the end, which must come before `until`.
fn read_until(from: OwnedFd, until: Instant) -> io::Result<Vec<u8>> {
    let mut from = fs::File::from(from);
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(from.as_fd(), PollFlags::POLLIN)], timeout) {
            Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
            Err(Errno::EINTR) => continue,
            polled => polled?,
        };
        match from.read(&mut chunk)? {
            0 => return Ok(bytes),
            read => bytes.extend_from_slice(&chunk[..read]),
        }
        if bytes.len() as u64 > LONGEST_ANSWER {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
}

/// Kills a child that has answered or timed out, and waits for its exit for a limited time.
fn end(child: Pid) {
    let _ = kill(child, Signal::SIGKILL);
    let until = Instant::now() + DYING;
    while matches!(
        waitpid(child, Some(WaitPidFlag::WNOHANG)),
        Ok(WaitStatus::StillAlive) | Err(Errno::EINTR)
    ) && Instant::now() < until
    {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Whether the user of a process may profile this one: root and the same user may. If root has no number in this user
/// namespace, the kernel reports the overflow user in its place.
pub(crate) fn may_profile(peer: &UnixCredentials) -> bool {
    let number = |path: &str| {
        let text = fs::read_to_string(path).ok()?;
        text.trim().parse::<u32>().ok()
    };
    let is_unmapped = || {
        let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
        let numbers: Vec<&str> = map.split_whitespace().collect();
        let all = numbers == ["0", "0", "4294967295"];
        !all && number("/proc/sys/kernel/overflowuid") == Some(peer.uid())
    };
    peer.uid() == 0 || peer.uid() == geteuid().as_raw() || is_unmapped()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of `nobody` on most systems.
    const OTHER: u32 = 65_534;

    impl Identity {
        /// An identity that no test runs with.
        pub(crate) fn nobody() -> Self {
            Self {
                uid: OTHER.into(),
                gid: OTHER.into(),
            }
        }
    }

    fn other() -> Identity {
        Identity::nobody()
    }

    fn status() -> String {
        fs::read_to_string("/proc/self/status").unwrap_or_default()
    }

    fn field<'a>(status: &'a str, name: &str) -> Vec<&'a str> {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_default().split_whitespace().collect()
    }

    #[test]
    fn effective_ids_are_read() {
        let status = "Name:\tjava\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\n";
        let identity = Identity::parse(status).unwrap();
        assert_eq!((identity.uid.as_raw(), identity.gid.as_raw()), (2, 6));
        assert_eq!(Identity::parse("Uid:\t1"), None);
        let own = Identity::from_process(std::process::id()).unwrap();
        assert_eq!(own, Identity::current());
    }

    #[test]
    fn a_process_with_another_id_is_not_ones_own() {
        let identity = Identity {
            uid: 7.into(),
            gid: 8.into(),
        };
        assert!(identity.is_all_of("Uid:\t7\t7\t7\t7\nGid:\t8\t8\t8\t8\n"));
        for status in [
            "",
            "Uid:\t7\t0\t0\t0\nGid:\t8\t8\t8\t8\n",
            "Uid:\t7\t7\t0\t7\nGid:\t8\t8\t8\t8\n",
            "Uid:\t7\t7\t7\t7\nGid:\t8\t5\t5\t5\n",
            "Uid:\t7\t7\t7\nGid:\t8\t8\t8\t8\n",
        ] {
            assert!(!identity.is_all_of(status), "{status}");
        }
        assert!(Identity::current().is_all_of(&status()));
    }

    #[test]
    fn work_in_ones_own_name_has_no_capability() {
        let (id, status) = Identity::current()
            .run(Duration::from_secs(30), || (std::process::id(), status()))
            .unwrap();
        assert_ne!(id, std::process::id());
        for set in ["CapEff:", "CapPrm:", "CapInh:"] {
            assert_eq!(field(&status, set), ["0000000000000000"], "{status}");
        }
    }

    /// Root takes on any identity, other users only their own.
    #[test]
    fn another_identity_is_for_root() {
        let ran = other().run(Duration::from_secs(30), || {
            let back = setresuid(0.into(), 0.into(), 0.into()).is_ok();
            (back, prctl::get_dumpable().unwrap_or(true), status())
        });
        if !geteuid().is_root() {
            assert!(!other().is_available());
            return assert_eq!(ran.unwrap_err().raw_os_error(), Some(libc::EPERM));
        }
        let (back, dumpable, status) = ran.unwrap();
        assert!(!back && !dumpable, "{status}");
        for ids in ["Uid:", "Gid:"] {
            assert_eq!(field(&status, ids), [OTHER.to_string().as_str(); 4]);
        }
        assert!(field(&status, "Groups:").is_empty(), "{status}");
        assert_eq!(field(&status, "CapPrm:"), ["0000000000000000"], "{status}");
    }

    #[test]
    fn what_is_kept_is_effective_once_it_is_raised() {
        let root = geteuid().is_root();
        let identity = if root { other() } else { Identity::current() };
        let (answers, to_parent) = pipe2(OFlag::O_CLOEXEC).unwrap();
        let child = process::spawn(|| {
            let mut to_parent = fs::File::from(to_parent);
            if identity.assume(&[Capability::CAP_IPC_LOCK]).is_ok() {
                let before = status();
                raise_capabilities();
                let _ = to_parent.write_all((before + &status()).as_bytes());
            }
        })
        .unwrap();
        let text = read_until(answers, Instant::now() + Duration::from_secs(30)).unwrap();
        end(child);
        let text = String::from_utf8(text).unwrap();
        let effective: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("CapEff:"))
            .map(str::trim)
            .collect();
        let kept = if root {
            "0000000000004000"
        } else {
            "0000000000000000"
        };
        assert_eq!(effective, ["0000000000000000", kept]);
    }

    #[test]
    fn work_that_hangs_is_ended() {
        let error = Identity::current()
            .run(Duration::from_millis(50), || {
                std::thread::sleep(Duration::from_secs(600));
            })
            .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn a_child_that_stops_after_its_answer_is_ended() {
        let child = process::spawn(|| {
            let _ = nix::sys::signal::raise(Signal::SIGSTOP);
        })
        .unwrap();
        let before = Instant::now();
        end(child);
        assert!(before.elapsed() < DYING);
        assert_eq!(kill(child, None), Err(Errno::ESRCH), "it is reaped");
    }
}
