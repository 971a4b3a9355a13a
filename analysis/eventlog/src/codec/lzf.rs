//! LZF in the framing of compress-lzf, which Spark writes as `lzf`.
//!
//! A chunk is `ZV`, its kind and its length, 16 bits and big-endian; a packed one also has the unpacked length. A
//! packed chunk is a series of instructions: a control byte below 32 precedes that many literal bytes plus one; any
//! other control byte copies bytes that were unpacked before.

use std::io::{self, BufRead};

use super::blocks::{Framing, array, at_end, bytes, invalid, resize};

pub(super) const MAGIC: &[u8] = b"ZV";
const LARGEST: usize = 1 << 16;

#[derive(Default)]
pub(super) struct Lzf {
    packed: Vec<u8>,
}

impl Framing for Lzf {
    fn next(&mut self, file: &mut impl BufRead, block: &mut Vec<u8>) -> io::Result<bool> {
        loop {
            if at_end(file)? {
                return Ok(false);
            }
            let [z, v, kind] = array::<3>(file)?;
            if [z, v] != MAGIC {
                return Err(invalid("no LZF chunk where one should begin"));
            }
            let length = usize::from(u16::from_be_bytes(array(file)?));
            match kind {
                0 => bytes(file, length, block)?,
                1 => {
                    let unpacked = usize::from(u16::from_be_bytes(array(file)?));
                    bytes(file, length, &mut self.packed)?;
                    resize(block, unpacked, LARGEST)?;
                    unpack(&self.packed, block).ok_or_else(|| invalid("a broken LZF chunk"))?;
                }
                _ => return Err(invalid("an LZF chunk of an unknown kind")),
            }
            if !block.is_empty() {
                return Ok(true);
            }
        }
    }
}

/// Fills the whole block; `None` if the packed bytes are invalid.
fn unpack(packed: &[u8], block: &mut [u8]) -> Option<()> {
    let mut packed = packed.iter().copied();
    let mut offset = 0;
    while let Some(control) = packed.next() {
        let control = usize::from(control);
        if control < 32 {
            for _ in 0..=control {
                *block.get_mut(offset)? = packed.next()?;
                offset += 1;
            }
            continue;
        }
        let length = match control >> 5 {
            7 => 9 + usize::from(packed.next()?),
            short => 2 + short,
        };
        let back = ((control & 31) << 8 | usize::from(packed.next()?)) + 1;
        for _ in 0..length {
            *block.get_mut(offset)? = *block.get(offset.checked_sub(back)?)?;
            offset += 1;
        }
    }
    (offset == block.len()).then_some(())
}

/// Packs, for tests: copies runs of one byte, everything else is literal.
#[cfg(test)]
pub(super) fn pack(text: &[u8], block: usize) -> Vec<u8> {
    let mut packed = Vec::new();
    for (number, chunk) in text.chunks(block.min(LARGEST / 2)).enumerate() {
        let small = instructions(chunk);
        packed.extend(MAGIC);
        let stored = number % 3 == 2;
        packed.push(u8::from(!stored));
        if stored {
            packed.extend((chunk.len() as u16).to_be_bytes());
            packed.extend(chunk);
        } else {
            packed.extend((small.len() as u16).to_be_bytes());
            packed.extend((chunk.len() as u16).to_be_bytes());
            packed.extend(small);
        }
    }
    packed
}

#[cfg(test)]
fn instructions(chunk: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    let mut offset = 0;
    while offset < chunk.len() {
        let run = match offset.checked_sub(1) {
            Some(last) => chunk[offset..]
                .iter()
                .take_while(|byte| **byte == chunk[last])
                .count()
                .min(264),
            None => 0,
        };
        match run {
            9.. => packed.extend([7 << 5, (run - 9) as u8, 0]),
            3..9 => packed.extend([((run - 2) << 5) as u8, 0]),
            _ => packed.extend([0, chunk[offset]]),
        }
        offset += if run < 3 { 1 } else { run };
    }
    packed
}
