//! Streams of compressed blocks, for any framing.

use std::io::{self, BufRead, Error, ErrorKind, Read};

/// The framing of blocks.
pub(super) trait Framing {
    /// Unpacks the next non-empty block into `block`, which is empty. False at the end of the file.
    ///
    /// # Errors
    /// `UnexpectedEof` if the file ends inside a block, `InvalidData` if a block is invalid.
    fn next(&mut self, file: &mut impl BufRead, block: &mut Vec<u8>) -> io::Result<bool>;
}

/// Reads one block at a time. After an error it yields no more blocks.
pub(super) struct Blocks<R, F> {
    file: R,
    framing: F,
    block: Vec<u8>,
    read: usize,
    over: bool,
}

impl<R: BufRead, F: Framing> Blocks<R, F> {
    pub(super) fn new(file: R, framing: F) -> Self {
        Self {
            file,
            framing,
            block: Vec::new(),
            read: 0,
            over: false,
        }
    }
}

impl<R: BufRead, F: Framing> BufRead for Blocks<R, F> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.read == self.block.len() && !self.over {
            self.block.clear();
            self.read = 0;
            match self.framing.next(&mut self.file, &mut self.block) {
                Ok(more) => self.over = !more,
                Err(error) => {
                    self.over = true;
                    self.block.clear();
                    return Err(error);
                }
            }
        }
        Ok(&self.block[self.read..])
    }

    fn consume(&mut self, bytes: usize) {
        self.read = (self.read + bytes).min(self.block.len());
    }
}

impl<R: BufRead, F: Framing> Read for Blocks<R, F> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let ready = self.fill_buf()?;
        let length = ready.len().min(into.len());
        into[..length].copy_from_slice(&ready[..length]);
        self.consume(length);
        Ok(length)
    }
}

/// Whether the file ends here.
pub(super) fn at_end(file: &mut impl BufRead) -> io::Result<bool> {
    Ok(file.fill_buf()?.is_empty())
}

/// The next bytes, as many as the array has.
pub(super) fn array<const N: usize>(file: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// The next `length` bytes. Memory grows with the bytes present, not with a damaged length.
pub(super) fn bytes(file: &mut impl Read, length: usize, into: &mut Vec<u8>) -> io::Result<()> {
    into.clear();
    file.by_ref().take(length as u64).read_to_end(into)?;
    if into.len() < length {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok(())
}

/// Resizes a block to its unpacked length, at most `most`.
pub(super) fn resize(block: &mut Vec<u8>, length: usize, most: usize) -> io::Result<()> {
    if length > most {
        return Err(invalid(format!(
            "a block of {length} bytes, where {most} is the most"
        )));
    }
    block.resize(length, 0);
    Ok(())
}

pub(super) fn invalid(what: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}
