//! Where the words are: a mapping shared with forked processes.

use std::io;

#[cfg(not(any(loom, miri)))]
use std::fs::File;
#[cfg(not(any(loom, miri)))]
use std::os::fd::OwnedFd;

#[cfg(not(loom))]
use memmap2::{MmapOptions, MmapRaw};

#[cfg(not(any(loom, miri)))]
use crate::memory_file::{Sealing, memory_file};
use crate::sync::AtomicU64;

/// A mapping of its own, shared with forked processes.
#[cfg(not(loom))]
#[derive(Debug)]
pub struct SharedMapping(MmapRaw);

#[cfg(not(loom))]
impl SharedMapping {
    /// At least `bytes` of zeroed memory, used only as it is touched.
    pub(crate) fn create(bytes: usize) -> io::Result<Self> {
        Self::map(bytes.next_multiple_of(4096)).map(Self)
    }

    #[cfg(not(miri))]
    fn map(bytes: usize) -> io::Result<MmapRaw> {
        let file = memory_file(c"unfuse-codemap", Sealing::Denied)?;
        file.set_len(bytes as u64)?;
        MmapOptions::new().len(bytes).map_raw(&file)
    }

    /// At least `bytes` of zeroed memory, and the descriptor with which another process maps it. No process can make the memory
    /// smaller while it is mapped.
    ///
    /// # Errors
    /// The system's.
    #[cfg(not(miri))]
    pub fn create_sealed(bytes: usize) -> io::Result<(Self, OwnedFd)> {
        use nix::fcntl::{FcntlArg, fcntl};

        let bytes = bytes.next_multiple_of(4096);
        let file = memory_file(c"unfuse-codemap", Sealing::Allowed)?;
        file.set_len(bytes as u64)?;
        fcntl(&file, FcntlArg::F_ADD_SEALS(seals()))?;
        let mapping = MmapOptions::new().len(bytes).map_raw(&file)?;
        Ok((Self(mapping), file.into()))
    }

    /// The memory behind a descriptor of [`SharedMapping::create_sealed`].
    ///
    /// # Errors
    /// If it has less than `least` bytes, or could be made smaller while it is in use.
    #[cfg(not(miri))]
    pub fn open_sealed(memory: OwnedFd, least: usize) -> io::Result<Self> {
        use nix::fcntl::{FcntlArg, SealFlag, fcntl};

        let file = File::from(memory);
        let sealed = SealFlag::from_bits_truncate(fcntl(&file, FcntlArg::F_GET_SEALS)?);
        let bytes = file.metadata()?.len() as usize;
        if !sealed.contains(seals()) || bytes < least {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(Self(MmapOptions::new().len(bytes).map_raw(&file)?))
    }

    /// miri knows neither memfds nor forks.
    #[cfg(miri)]
    fn map(bytes: usize) -> io::Result<MmapRaw> {
        Ok(MmapOptions::new().len(bytes).map_anon()?.into())
    }

    /// Its words.
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is page-aligned, lives as long as `self`, holds no padding, and nobody
        // accesses it but through these atomics.
        unsafe { std::slice::from_raw_parts(self.0.as_mut_ptr().cast(), self.0.len() / 8) }
    }
}

#[cfg(not(any(loom, miri)))]
fn seals() -> nix::fcntl::SealFlag {
    use nix::fcntl::SealFlag;
    SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL
}

/// In the models: loom's atomics are no plain words, and there is one process.
#[cfg(loom)]
pub(crate) struct SharedMapping(Box<[AtomicU64]>);

#[cfg(loom)]
impl SharedMapping {
    pub(crate) fn create(bytes: usize) -> io::Result<Self> {
        Ok(Self((0..bytes / 8).map(|_| AtomicU64::new(0)).collect()))
    }

    pub(crate) fn words(&self) -> &[AtomicU64] {
        &self.0
    }
}
