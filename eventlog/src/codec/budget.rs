//! A limit for what a compressed file unpacks to: 30 KiB of zstd can hold gigabytes.

use std::io::{self, BufRead, Error, ErrorKind, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of text that a compressed byte may hold. Those of Spark's logs hold 10 to 60.
const MOST_PER_BYTE: u64 = 200;
/// Bytes of text that any file may hold.
const ANY: u64 = 64 << 20;

/// A file of which the bytes are counted that were read.
pub(super) struct Packed<R> {
    file: R,
    read: Arc<AtomicU64>,
}

impl<R> Packed<R> {
    pub(super) fn new(file: R) -> Self {
        Self {
            file,
            read: Arc::default(),
        }
    }

    /// Bytes that were read so far.
    pub(super) fn counter(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.read)
    }
}

impl<R: Read> Read for Packed<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(into)?;
        self.read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// The text of such a file, as far as it may go.
pub(super) struct Budgeted<T> {
    text: T,
    packed: Arc<AtomicU64>,
    unpacked: u64,
}

impl<T> Budgeted<T> {
    pub(super) fn new(text: T, packed: Arc<AtomicU64>) -> Self {
        Self {
            text,
            packed,
            unpacked: 0,
        }
    }

    fn check(&self) -> io::Result<()> {
        let packed = self.packed.load(Ordering::Relaxed);
        if self.unpacked <= packed.saturating_mul(MOST_PER_BYTE).saturating_add(ANY) {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::FileTooLarge,
            format!(
                "{packed} bytes of it unpack to more than {} MiB, which no log of Spark does; the rest is not read. To read it \
                 nevertheless, unpack it first",
                self.unpacked >> 20
            ),
        ))
    }
}

impl<T: BufRead> BufRead for Budgeted<T> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.check()?;
        self.text.fill_buf()
    }

    fn consume(&mut self, bytes: usize) {
        self.unpacked += bytes as u64;
        self.text.consume(bytes);
    }
}

impl<T: BufRead> Read for Budgeted<T> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.check()?;
        let read = self.text.read(into)?;
        self.unpacked += read as u64;
        Ok(read)
    }
}
