//! What a sampler reads of its JVM's.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};

use crate::identity::Identity;
use crate::maps::Maps;
use crate::memory::Memory;

/// What was opened while the process that forks the samplers could still open it. The kernel asks when such a file
/// is opened, not when it is read.
#[derive(Debug, Default)]
pub(crate) struct Access {
    memory: Option<Memory>,
    maps: Option<File>,
}

impl Access {
    /// Makes the calling process one of the JVM's owner, with what it takes to open events on the JVM's threads.
    /// Before that it opens what only root may where a JVM lets nobody look into it (its user has changed while it
    /// ran, or ptrace is restricted).
    ///
    /// # Errors
    /// Those of `Identity::assume`.
    pub(crate) fn take_over(owner: Identity, jvm: u32) -> io::Result<Self> {
        let access = Self {
            memory: Memory::open(jvm).ok(),
            maps: Maps::file(jvm).ok(),
        };
        owner.assume(&owner.event_capabilities())?;
        Ok(access)
    }

    pub(crate) fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        let memory = self.memory.as_ref().map(Memory::as_raw_fd);
        memory
            .into_iter()
            .chain(self.maps.as_ref().map(File::as_raw_fd))
    }

    /// The JVM's memory.
    ///
    /// # Errors
    /// The system's, where ptrace is restricted.
    pub(super) fn memory(&self, jvm: u32) -> io::Result<Memory> {
        Memory::open(jvm).or_else(|e| self.memory.as_ref().ok_or(e)?.try_clone())
    }

    /// The JVM's mappings. A file of the sampler's own is better: those who share one make each other start again.
    ///
    /// # Errors
    /// The system's, where the JVM has ended.
    pub(super) fn maps(&self, jvm: u32) -> io::Result<Maps> {
        let own = Maps::file(jvm);
        Maps::read_from(own.or_else(|e| self.maps.as_ref().ok_or(e)?.try_clone())?)
    }
}
