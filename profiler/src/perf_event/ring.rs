//! The mmap ring of an event.

use std::io;
use std::num::NonZeroUsize;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use perf_event_open_sys::bindings::perf_event_mmap_page;

use super::record::{HEADER_BYTES, Record, header_size};

/// The mapped ring; unmapped on drop.
#[derive(Debug)]
pub(super) struct Ring {
    base: NonNull<libc::c_void>,
    /// Bytes of the control page; the data follow it.
    page_bytes: usize,
    data_bytes: usize,
    /// A buffer for a record that wraps around the end.
    scratch: Vec<u8>,
}

impl Ring {
    /// Maps the control page and `data_bytes` (a power of two), or a page of data if pages are larger.
    pub(super) fn map(fd: BorrowedFd<'_>, data_bytes: usize) -> io::Result<Self> {
        let page_bytes = procfs::page_size() as usize;
        let data_bytes = data_bytes.max(page_bytes);
        let bytes = NonZeroUsize::MIN.saturating_add(page_bytes + data_bytes - 1);
        let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a fresh shared mapping chosen by the kernel aliases nothing of ours.
        let base = unsafe { mmap(None, bytes, protection, MapFlags::MAP_SHARED, fd, 0) }?;
        Ok(Self {
            base,
            page_bytes,
            data_bytes,
            scratch: Vec::new(),
        })
    }

    fn head(&self) -> &AtomicU64 {
        let page = self.base.as_ptr().cast::<perf_event_mmap_page>();
        // SAFETY: the control page stays mapped as long as `self`; the kernel updates the aligned
        // word atomically.
        unsafe { AtomicU64::from_ptr(&raw mut (*page).data_head) }
    }

    fn tail(&self) -> &AtomicU64 {
        let page = self.base.as_ptr().cast::<perf_event_mmap_page>();
        // SAFETY: as for `head`; only we write it.
        unsafe { AtomicU64::from_ptr(&raw mut (*page).data_tail) }
    }

    /// Reads all complete records and frees their space. Each comes with the header of the next one, if there is one.
    pub(super) fn drain(&mut self, mut each: impl FnMut(Record<'_>, Option<[u8; HEADER_BYTES]>)) {
        let head = self.head().load(Ordering::Acquire);
        let mut tail = self.tail().load(Ordering::Relaxed);
        let mut scratch = std::mem::take(&mut self.scratch);
        while tail < head {
            let size = self.header(tail, head).map_or(0, header_size);
            if size < HEADER_BYTES || tail + size as u64 > head {
                // The kernel does not write such a ring; skip to the next records to avoid a loop.
                tail = head;
                break;
            }
            let next = self.header(tail + size as u64, head);
            let offset = tail as usize % self.data_bytes;
            if offset + size <= self.data_bytes {
                // SAFETY: the bytes lie within the mapping and the kernel does not write between
                // tail and head.
                let bytes = unsafe { std::slice::from_raw_parts(self.data().add(offset), size) };
                each(Record::parse(bytes), next);
            } else {
                scratch.clear();
                self.copy(tail, size, &mut scratch);
                each(Record::parse(&scratch), next);
            }
            tail += size as u64;
        }
        self.scratch = scratch;
        self.tail().store(tail, Ordering::Release);
    }

    /// The header of the record at `from`, if one was written before `head`. Records are multiples of eight bytes, so no
    /// header wraps around the end.
    fn header(&self, from: u64, head: u64) -> Option<[u8; HEADER_BYTES]> {
        let offset = from as usize % self.data_bytes;
        let is_there =
            from + HEADER_BYTES as u64 <= head && offset + HEADER_BYTES <= self.data_bytes;
        // SAFETY: the bytes lie within the mapping and the kernel does not write between tail and head.
        is_there.then(|| unsafe { self.data().add(offset).cast::<[u8; HEADER_BYTES]>().read() })
    }

    fn data(&self) -> *const u8 {
        // SAFETY: the data pages follow the control page in the same mapping.
        unsafe { self.base.as_ptr().cast::<u8>().add(self.page_bytes) }
    }

    fn copy(&self, from: u64, bytes: usize, into: &mut Vec<u8>) {
        let offset = from as usize % self.data_bytes;
        let first = bytes.min(self.data_bytes - offset);
        // SAFETY: both parts lie within the data pages (`bytes` ≤ the distance of head and tail,
        // which the kernel keeps ≤ `data_bytes`).
        unsafe {
            into.extend_from_slice(std::slice::from_raw_parts(self.data().add(offset), first));
            into.extend_from_slice(std::slice::from_raw_parts(self.data(), bytes - first));
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: this exact mapping was made in `map` and nothing borrows from it any more.
        let _ = unsafe { munmap(self.base, self.page_bytes + self.data_bytes) };
    }
}
