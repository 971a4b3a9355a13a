//! Limits the size of an unpacked log: 30 KiB of zstd can contain gigabytes.

use std::io::{self, BufRead, Error, ErrorKind, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum bytes of text for each compressed byte. Spark's logs have 10 to 60.
const MOST_PER_BYTE: u64 = 200;
/// Bytes of text that are allowed for any log.
const ANY: u64 = 64 << 20;

/// Bytes read so far from all files of a log. Clones share the count.
#[derive(Clone, Default)]
pub(crate) struct Budget(Arc<Counts>);

#[derive(Default)]
struct Counts {
    packed: AtomicU64,
    unpacked: AtomicU64,
}

impl Budget {
    fn check(&self) -> io::Result<()> {
        let packed = self.0.packed.load(Ordering::Relaxed);
        let unpacked = self.0.unpacked.load(Ordering::Relaxed);
        if unpacked <= packed.saturating_mul(MOST_PER_BYTE).saturating_add(ANY) {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::FileTooLarge,
            format!(
                "{packed} bytes of the log unpack to more than {} MiB, which no log of Spark does; the rest is not read. To \
                 read it nevertheless, unpack it first",
                unpacked >> 20
            ),
        ))
    }
}

/// A file that counts the bytes read.
pub(super) struct CountedFile<R> {
    file: R,
    budget: Budget,
}

impl<R> CountedFile<R> {
    pub(super) fn new(file: R, budget: Budget) -> Self {
        Self { file, budget }
    }
}

impl<R: Read> Read for CountedFile<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(into)?;
        self.budget
            .0
            .packed
            .fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// The text of such a file, up to the limit.
pub(super) struct BoundedText<T> {
    text: T,
    budget: Budget,
}

impl<T> BoundedText<T> {
    pub(super) fn new(text: T, budget: Budget) -> Self {
        Self { text, budget }
    }

    fn count(&self, bytes: usize) {
        let unpacked = &self.budget.0.unpacked;
        unpacked.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

impl<T: BufRead> BufRead for BoundedText<T> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.budget.check()?;
        self.text.fill_buf()
    }

    fn consume(&mut self, bytes: usize) {
        self.count(bytes);
        self.text.consume(bytes);
    }
}

impl<T: BufRead> Read for BoundedText<T> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.budget.check()?;
        let read = self.text.read(into)?;
        self.count(read);
        Ok(read)
    }
}
