//! The `LZ4Block` framing of lz4-java, which Spark writes as `lz4`.
//!
//! A block is the magic number, a byte (method in its upper half), packed and unpacked length and a checksum of the
//! unpacked bytes, each 32 bits and little-endian, and the packed bytes. An empty block ends a stream; another stream
//! may follow.

use std::io::{self, BufRead};

use twox_hash::XxHash32;

use super::blocks::{Framing, array, at_end, bytes, invalid, resize};

pub(super) const MAGIC: &[u8] = b"LZ4Block";
/// The largest block that lz4-java makes, bytes.
const LARGEST: usize = 32 << 20;
const STORED: u8 = 0x10;
const PACKED: u8 = 0x20;
const SEED: u32 = 0x9747_b28c;
/// Java's interface for checksums drops the upper bits.
const CHECKED: u32 = 0x0fff_ffff;

#[derive(Default)]
pub(super) struct Lz4Block {
    packed: Vec<u8>,
}

impl Framing for Lz4Block {
    fn next(&mut self, file: &mut impl BufRead, block: &mut Vec<u8>) -> io::Result<bool> {
        loop {
            if at_end(file)? {
                return Ok(false);
            }
            if array::<8>(file)? != MAGIC {
                return Err(invalid("no LZ4 block where one should begin"));
            }
            let method = array::<1>(file)?[0] & 0xf0;
            let packed = u32::from_le_bytes(array(file)?) as usize;
            let unpacked = u32::from_le_bytes(array(file)?) as usize;
            let checksum = u32::from_le_bytes(array(file)?);
            if unpacked == 0 {
                continue;
            }
            resize(block, unpacked, LARGEST)?;
            bytes(file, packed, &mut self.packed)?;
            match method {
                STORED if packed == unpacked => block.copy_from_slice(&self.packed),
                PACKED => {
                    let length =
                        lz4_flex::block::decompress_into(&self.packed, block).map_err(invalid)?;
                    if length != unpacked {
                        return Err(invalid("an LZ4 block is shorter than it says"));
                    }
                }
                _ => return Err(invalid("an LZ4 block of an unknown kind")),
            }
            if XxHash32::oneshot(SEED, block) & CHECKED != checksum {
                return Err(invalid("an LZ4 block has another checksum"));
            }
            return Ok(true);
        }
    }
}

/// Packs, for tests.
#[cfg(test)]
pub(super) fn pack(text: &[u8], block: usize) -> Vec<u8> {
    let mut packed = Vec::new();
    let mut put = |method: u8, bytes: &[u8], unpacked: usize, checksum: u32| {
        packed.extend(MAGIC);
        packed.push(method | 6);
        packed.extend((bytes.len() as u32).to_le_bytes());
        packed.extend((unpacked as u32).to_le_bytes());
        packed.extend(checksum.to_le_bytes());
        packed.extend(bytes);
    };
    for chunk in text.chunks(block) {
        let checksum = XxHash32::oneshot(SEED, chunk) & CHECKED;
        let small = lz4_flex::block::compress(chunk);
        if small.len() < chunk.len() {
            put(PACKED, &small, chunk.len(), checksum);
        } else {
            put(STORED, chunk, chunk.len(), checksum);
        }
    }
    put(STORED, &[], 0, 0);
    packed
}
