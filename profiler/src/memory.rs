//! Reads the JVM's memory as debuggers do.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileExt;

/// Memory of a process.
#[derive(Debug)]
pub(crate) struct Memory(File);

impl Memory {
    /// Opens the memory of `pid`. Must happen before capabilities are dropped; fails if ptrace is restricted.
    pub(crate) fn open(pid: u32) -> io::Result<Self> {
        File::open(format!("/proc/{pid}/mem")).map(Self)
    }

    pub(crate) fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Another handle to it.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    /// Fills `bytes` as far as memory is mapped; returns the number of bytes.
    pub(crate) fn read(&self, bytes: &mut [u8], address: u64) -> usize {
        self.0.read_at(bytes, address).unwrap_or(0)
    }

    pub(crate) fn array<const N: usize>(&self, address: u64) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        (self.read(&mut bytes, address) == N).then_some(bytes)
    }
}

const PAGE: usize = 4096;

/// Memory read in pages: neighbouring data costs one system call.
#[derive(Debug)]
pub(crate) struct Pages {
    memory: Memory,
    /// Pages by the lowest bits of their numbers.
    pages: Vec<Option<Page>>,
}

#[derive(Debug)]
struct Page {
    number: u64,
    bytes: Box<[u8; PAGE]>,
}

impl Pages {
    /// Number of cached pages.
    const KEPT: u64 = 64;

    pub(crate) fn new(memory: Memory) -> Self {
        let pages = (0..Self::KEPT).map(|_| None).collect();
        Self { memory, pages }
    }

    /// Forgets all pages, so that memory is read again.
    pub(crate) fn forget(&mut self) {
        self.pages.fill_with(|| None);
    }

    /// Fills `bytes` as far as memory is mapped; returns the number of bytes.
    pub(crate) fn read(&mut self, bytes: &mut [u8], address: u64) -> usize {
        let mut done = 0;
        while done < bytes.len() {
            let Some(from) = address.checked_add(done as u64) else {
                break;
            };
            let offset = (from % PAGE as u64) as usize;
            let count = (PAGE - offset).min(bytes.len() - done);
            let Some(page) = self.page(from / PAGE as u64) else {
                break;
            };
            bytes[done..done + count].copy_from_slice(&page[offset..offset + count]);
            done += count;
        }
        done
    }

    pub(crate) fn word(&mut self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        (self.read(&mut bytes, address) == 8).then(|| u64::from_ne_bytes(bytes))
    }

    pub(crate) fn half(&mut self, address: u64) -> Option<u16> {
        let mut bytes = [0; 2];
        (self.read(&mut bytes, address) == 2).then(|| u16::from_ne_bytes(bytes))
    }

    fn page(&mut self, number: u64) -> Option<&[u8; PAGE]> {
        let slot = &mut self.pages[(number % Self::KEPT) as usize];
        if slot.as_ref().is_none_or(|page| page.number != number) {
            // Allocated once.
            let mut bytes = slot
                .take()
                .map_or_else(|| Box::new([0; PAGE]), |page| page.bytes);
            if self.memory.read(&mut *bytes, number * PAGE as u64) == PAGE {
                *slot = Some(Page { number, bytes });
            }
        }
        slot.as_ref().map(|page| &*page.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_read_as_memory_does_and_forget() {
        let mut bytes: Vec<u8> = (0..5 * PAGE).map(|i| (i * 7 / 3) as u8).collect();
        let memory = Memory::open(std::process::id()).unwrap();
        let mut pages = Pages::new(memory.try_clone().unwrap());
        let start = bytes.as_ptr() as u64;
        for (offset, length) in [(0, 8), (PAGE - 3, 10), (17, 3 * PAGE), (PAGE, 1)] {
            let (mut direct, mut paged) = (vec![0; length], vec![0; length]);
            let address = start + offset as u64;
            assert_eq!(memory.read(&mut direct, address), length);
            assert_eq!(pages.read(&mut paged, address), length);
            assert_eq!(paged, direct);
        }
        let before = pages.word(start).unwrap();
        bytes[0] ^= 0xff;
        assert_eq!(pages.word(start), Some(before));
        pages.forget();
        assert_eq!(pages.word(start), Some(before ^ 0xff));
        assert_eq!((pages.word(8), pages.half(u64::MAX)), (None, None));
    }
}
