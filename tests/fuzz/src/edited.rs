//! Copies of real inputs with a few edits: they get further into a parser than random bytes do.

use bolero::{Driver, ValueGenerator, produce};

/// Boundary values of lengths, counts and offsets.
const EDGES: [u64; 8] = [
    0,
    1,
    0x7f,
    0xff,
    0x7fff_ffff,
    0xffff_ffff,
    i64::MAX as u64,
    u64::MAX,
];

/// Most edits of one input.
const MOST_EDITS: usize = 6;

/// Longest run of bytes that an edit moves.
const LONGEST_RUN: usize = 64;

/// Generates edited copies of some inputs.
#[derive(Debug)]
pub struct EditedCopies {
    inputs: Vec<Vec<u8>>,
}

impl EditedCopies {
    /// Edits the corpus of a target.
    pub fn corpus(target: &str) -> Self {
        Self {
            inputs: crate::corpus(target),
        }
    }
}

impl ValueGenerator for EditedCopies {
    type Output = Vec<u8>;

    fn generate<D: Driver>(&self, driver: &mut D) -> Option<Vec<u8>> {
        let mut bytes = self.inputs[(0..self.inputs.len()).generate(driver)?].clone();
        for _ in 0..(1..=MOST_EDITS).generate(driver)? {
            edit(&mut bytes, driver)?;
        }
        Some(bytes)
    }
}

fn edit<D: Driver>(bytes: &mut Vec<u8>, driver: &mut D) -> Option<()> {
    let offset = (0..=bytes.len()).generate(driver)?;
    let run = offset
        ..bytes
            .len()
            .min(offset + (0..=LONGEST_RUN).generate(driver)?);
    let byte = produce::<u8>().generate(driver)?;
    match (0..6u8).generate(driver)? {
        0 => bytes.insert(offset, byte),
        1 => bytes.truncate(offset),
        2 => drop(bytes.drain(run)),
        3 => {
            let copy = bytes[run].to_vec();
            let to = (0..=bytes.len()).generate(driver)?;
            bytes.splice(to..to, copy);
        }
        4 => {
            let edge = EDGES[(0..EDGES.len()).generate(driver)?].to_ne_bytes();
            let width = [1, 2, 4, 8][(0..4usize).generate(driver)?].min(bytes.len() - offset);
            bytes[offset..offset + width].copy_from_slice(&edge[..width]);
        }
        _ => {
            if let Some(old) = bytes.get_mut(offset) {
                *old ^= byte;
            }
        }
    }
    Some(())
}
