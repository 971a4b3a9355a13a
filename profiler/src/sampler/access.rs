//! What a sampler may read of its JVM.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, RawFd};

use super::has_ended;
use crate::identity::{Identity, raise_capabilities, retain_capabilities};
use crate::maps::Maps;
use crate::memory::Memory;
use crate::process;

/// Files opened while the process that forks the samplers could still open them. The kernel checks permissions when
/// such a file is opened, not when it is read.
#[derive(Debug, Default)]
pub(crate) struct Access {
    /// The owner of the JVM, if the samplers were not forked from it.
    owner: Option<Identity>,
    memory: Option<Memory>,
    maps: Option<File>,
}

impl Access {
    /// Gives the calling process the identity of the JVM's owner, with the capabilities to open events on the JVM's
    /// threads. Before that it opens files that only root may open, if nobody else may inspect the JVM (its user
    /// changed while it ran, or ptrace is restricted).
    ///
    /// # Errors
    /// Those of [`Identity::assume`].
    pub(crate) fn take_over(owner: Identity, jvm: u32) -> io::Result<Self> {
        let mut access = Self::open(owner, jvm).unwrap_or_default();
        access.owner = Some(owner);
        owner.assume(&owner.event_capabilities())?;
        Ok(access)
    }

    /// `None` if the files may be another process's: the number may have been reused before they were opened, and a
    /// process that runs a set-uid program keeps it.
    fn open(owner: Identity, jvm: u32) -> Option<Self> {
        let process = process::pidfd(jvm as i32).ok()?;
        let access = Self {
            owner: Some(owner),
            memory: Memory::open(jvm).ok(),
            maps: Maps::file(jvm).ok(),
        };
        let status = read_status(&format!("/proc/{jvm}/status")).ok()?;
        (!has_ended(&process) && owner.is_all_of(&status)).then_some(access)
    }

    pub(crate) fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        let memory = self.memory.as_ref().map(Memory::as_raw_fd);
        memory
            .into_iter()
            .chain(self.maps.as_ref().map(File::as_raw_fd))
    }

    /// Checks that the JVM has such a thread now, and that it is its owner's: the JVM may announce any number.
    ///
    /// # Errors
    /// ESRCH if there is no such thread, EPERM if it is another user's.
    pub(super) fn check_thread(&self, jvm: u32, tid: u32) -> io::Result<()> {
        let status =
            read_status(&format!("/proc/{jvm}/task/{tid}/status")).map_err(|e| match e.kind() {
                io::ErrorKind::NotFound => io::Error::from_raw_os_error(libc::ESRCH),
                _ => e,
            })?;
        match self.owner {
            Some(owner) if !owner.is_all_of(&status) => {
                Err(io::Error::from_raw_os_error(libc::EPERM))
            }
            _ => Ok(()),
        }
    }

    /// Reduces the capabilities of the calling sampler, whose events are open, to those for inspecting the JVM.
    ///
    /// # Errors
    /// The system's, if it keeps more. A sampler that was forked from the JVM drops nothing yet.
    pub(super) fn keep_inspection(&self) -> io::Result<()> {
        if let Some(owner) = self.owner {
            retain_capabilities(owner.inspection_capabilities())?;
            raise_capabilities();
        }
        Ok(())
    }

    /// Drops all capabilities of the calling sampler.
    ///
    /// # Errors
    /// The system's, if it keeps some. For a sampler that was forked from the JVM that is no error: it has the JVM's.
    pub(super) fn give_up_capabilities(&self) -> io::Result<()> {
        match (retain_capabilities(&[]), self.owner) {
            (Err(e), Some(_)) => Err(e),
            _ => Ok(()),
        }
    }

    /// The JVM's memory.
    ///
    /// # Errors
    /// The system's, if ptrace is restricted.
    pub(super) fn memory(&self, jvm: u32) -> io::Result<Memory> {
        Memory::open(jvm).or_else(|e| self.memory.as_ref().ok_or(e)?.try_clone())
    }

    /// The JVM's mappings. Each sampler needs its own file: shared ones make each other restart.
    ///
    /// # Errors
    /// The system's, if the JVM has ended.
    pub(super) fn maps(&self, jvm: u32) -> io::Result<Maps> {
        let own = Maps::file(jvm);
        Maps::read_from(own.or_else(|e| self.maps.as_ref().ok_or(e)?.try_clone())?)
    }
}

/// The status of a process or thread. Its name may not be UTF-8.
fn read_status(path: &str) -> io::Result<String> {
    fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errno(checked: io::Result<()>) -> Option<i32> {
        checked.unwrap_err().raw_os_error()
    }

    #[test]
    fn only_threads_of_the_jvm_and_of_its_owner_pass() {
        let jvm = std::process::id();
        let thread = nix::unistd::gettid().as_raw() as u32;
        let forked = Access::default();
        forked.check_thread(jvm, thread).unwrap();
        let parent = std::os::unix::process::parent_id();
        for other in [parent, 1, u32::MAX] {
            assert_eq!(errno(forked.check_thread(jvm, other)), Some(libc::ESRCH));
        }
        let of = |owner| Access {
            owner: Some(owner),
            ..Access::default()
        };
        let own = Identity::from_process(jvm).unwrap();
        of(own).check_thread(jvm, thread).unwrap();
        let other = of(Identity::nobody());
        assert_eq!(errno(other.check_thread(jvm, thread)), Some(libc::EPERM));
    }

    #[test]
    fn files_of_another_users_process_are_not_used() {
        let process = std::process::id();
        let own = Access::open(Identity::current(), process).unwrap();
        assert!(own.memory.is_some() && own.maps.is_some());
        assert!(Access::open(Identity::nobody(), process).is_none());
    }
}
