//! Reading the JVM's memory, the way debuggers do.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Memory of a process.
#[derive(Debug)]
pub(crate) struct Memory(File);

impl Memory {
    /// Opens the memory of `pid`. To be done before capabilities are dropped; refused where ptrace is
    /// restricted.
    pub(crate) fn open(pid: u32) -> io::Result<Self> {
        File::open(format!("/proc/{pid}/mem")).map(Self)
    }

    /// Another handle to it.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    /// Fills `bytes` as far as the mapping goes; returns how far.
    pub(crate) fn read(&self, bytes: &mut [u8], at: u64) -> usize {
        self.0.read_at(bytes, at).unwrap_or(0)
    }

    pub(crate) fn array<const N: usize>(&self, at: u64) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        (self.read(&mut bytes, at) == N).then_some(bytes)
    }

    pub(crate) fn word(&self, at: u64) -> Option<u64> {
        self.array(at).map(u64::from_ne_bytes)
    }

    pub(crate) fn half(&self, at: u64) -> Option<u16> {
        self.array(at).map(u16::from_ne_bytes)
    }
}
