//! The framing of snappy-java's `SnappyOutputStream`, which Spark writes as `snappy`.
//!
//! A header of 16 bytes (magic number, two versions), then blocks: a length, 32 bits and big-endian, and a raw Snappy
//! block. Another header may follow; its first bytes are not a valid length.

use std::io::{self, BufRead};

use super::blocks::{Framing, array, at_end, bytes, invalid, resize};

pub(super) const MAGIC: &[u8] = b"\x82SNAPPY\0";
/// Largest block, bytes, far above any setting (32 KiB by default).
const LARGEST: usize = 128 << 20;

#[derive(Default)]
pub(super) struct Snappy {
    packed: Vec<u8>,
}

impl Framing for Snappy {
    fn next(&mut self, file: &mut impl BufRead, block: &mut Vec<u8>) -> io::Result<bool> {
        loop {
            if at_end(file)? {
                return Ok(false);
            }
            let word = array::<4>(file)?;
            if word == MAGIC[..4] {
                if array::<4>(file)? != MAGIC[4..] {
                    return Err(invalid("half a header of Snappy"));
                }
                array::<8>(file)?;
                continue;
            }
            let length = u32::from_be_bytes(word) as usize;
            if length > LARGEST {
                return Err(invalid("no Snappy block where one should begin"));
            }
            bytes(file, length, &mut self.packed)?;
            let unpacked = snap::raw::decompress_len(&self.packed).map_err(invalid)?;
            resize(block, unpacked, LARGEST)?;
            let mut decoder = snap::raw::Decoder::new();
            decoder.decompress(&self.packed, block).map_err(invalid)?;
            if unpacked > 0 {
                return Ok(true);
            }
        }
    }
}

/// Packs, for tests.
#[cfg(test)]
pub(super) fn pack(text: &[u8], block: usize) -> Vec<u8> {
    let mut packed = MAGIC.to_vec();
    packed.extend([0, 0, 0, 1, 0, 0, 0, 1]);
    for chunk in text.chunks(block) {
        let small = snap::raw::Encoder::new().compress_vec(chunk);
        let small = small.expect("a block that fits");
        packed.extend((small.len() as u32).to_be_bytes());
        packed.extend(small);
    }
    packed
}
