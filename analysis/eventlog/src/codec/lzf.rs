//! LZF in the framing of compress-lzf, which Spark writes as `lzf`.
//!
//! A chunk is `ZV`, its kind and its length, 16 bits and big-endian; a packed one has the unpacked length besides. A packed
//! chunk is a row of instructions: a control byte below 32 is followed by that many literal bytes and one more,
//! any other copies bytes that were unpacked before.

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

/// Fills all of the block, or nothing is right.
fn unpack(packed: &[u8], block: &mut [u8]) -> Option<()> {
    let mut packed = packed.iter().copied();
    let mut at = 0;
    while let Some(control) = packed.next() {
        let control = usize::from(control);
        if control < 32 {
            for _ in 0..=control {
                *block.get_mut(at)? = packed.next()?;
                at += 1;
            }
            continue;
        }
        let length = match control >> 5 {
            7 => 9 + usize::from(packed.next()?),
            short => 2 + short,
        };
        let back = ((control & 31) << 8 | usize::from(packed.next()?)) + 1;
        for _ in 0..length {
            *block.get_mut(at)? = *block.get(at.checked_sub(back)?)?;
            at += 1;
        }
    }
    (at == block.len()).then_some(())
}

/// The other way, for tests: runs of a byte are copied, all else is literal.
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
    let mut at = 0;
    while at < chunk.len() {
        let run = match at.checked_sub(1) {
            Some(last) => chunk[at..]
                .iter()
                .take_while(|byte| **byte == chunk[last])
                .count()
                .min(264),
            None => 0,
        };
        match run {
            9.. => packed.extend([7 << 5, (run - 9) as u8, 0]),
            3..9 => packed.extend([((run - 2) << 5) as u8, 0]),
            _ => packed.extend([0, chunk[at]]),
        }
        at += if run < 3 { 1 } else { run };
    }
    packed
}
