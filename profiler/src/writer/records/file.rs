//! The file in which a task's records wait: what `RecordFile` in the JVM writes.

use std::collections::BTreeMap;
use std::ops::Range;

const MAGIC: &[u8] = b"UNFREC1\n";
const INPUTS: u8 = 1;
const OUTPUTS: u8 = 2;

/// A record of the file.
#[derive(Debug, PartialEq)]
pub(super) enum Block {
    Input(Input),
    Output(Output),
}

#[derive(Debug, PartialEq)]
pub(super) struct Input {
    pub(super) source: i32,
    pub(super) position: i64,
    pub(super) id: i64,
    pub(super) ns: i64,
}

#[derive(Debug, PartialEq)]
pub(super) struct Output {
    pub(super) output: i32,
    pub(super) position: i64,
    pub(super) key: i64,
    pub(super) whole: i64,
    pub(super) ns: i64,
    /// Sources below this number have no part in it.
    forgotten: i32,
    /// What was read since the output before.
    read: Vec<(i32, Range<i64>)>,
}

/// The records of a file, up to its end or to where it is damaged.
pub(super) struct Blocks<'a> {
    rest: &'a [u8],
    /// The block that is being read: its kind, its source or output, what is left of it.
    block: (u8, i32, &'a [u8]),
    positions: BTreeMap<(u8, i32), i64>,
}

impl<'a> Blocks<'a> {
    pub(super) fn of(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes.strip_prefix(MAGIC).unwrap_or_default(),
            block: (0, 0, &[]),
            positions: BTreeMap::new(),
        }
    }

    fn next_block(&mut self) -> Option<()> {
        let (kind, rest) = self.rest.split_first()?;
        let (number, rest) = rest.split_first_chunk::<4>()?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let (rows, rest) = rest.split_at_checked(length)?;
        self.block = (*kind, i32::from_le_bytes(*number), rows);
        self.rest = rest;
        Some(())
    }
}

impl Iterator for Blocks<'_> {
    type Item = Block;

    fn next(&mut self) -> Option<Block> {
        while self.block.2.is_empty() {
            self.next_block()?;
        }
        let (kind, number, rows) = &mut self.block;
        let position = self.positions.entry((*kind, *number)).or_default();
        let block = match *kind {
            INPUTS => Block::Input(Input {
                source: *number,
                position: *position,
                ns: number_of(rows)?,
                id: id_of(rows)?,
            }),
            OUTPUTS => {
                let (key, whole) = (id_of(rows)?, id_of(rows)?);
                let forgotten = i32::try_from(number_of(rows)?).ok()?;
                let touched = number_of(rows)?;
                let mut read = Vec::new();
                for _ in 0..touched {
                    let source = i32::try_from(number_of(rows)?).ok()?;
                    let first = number_of(rows)?;
                    read.push((source, first..first.checked_add(number_of(rows)?)?));
                }
                Block::Output(Output {
                    output: *number,
                    position: *position,
                    key,
                    whole,
                    ns: number_of(rows)?,
                    forgotten,
                    read,
                })
            }
            _ => return None,
        };
        *position += 1;
        Some(block)
    }
}

/// Seven bits to a byte, the lowest first; never negative.
fn number_of(bytes: &mut &[u8]) -> Option<i64> {
    let mut value = 0_u64;
    for shift in (0..63).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return i64::try_from(value).ok();
        }
    }
    None
}

fn id_of(bytes: &mut &[u8]) -> Option<i64> {
    let (id, rest) = bytes.split_first_chunk::<8>()?;
    *bytes = rest;
    Some(i64::from_le_bytes(*id))
}

/// Which records each output came from: of every source those that were read for it, or, where none were, those of the output before.
#[derive(Default)]
pub(super) struct Ranges(BTreeMap<i32, BTreeMap<i32, Range<i64>>>);

impl Ranges {
    pub(super) fn of(&mut self, row: &Output) -> impl Iterator<Item = (i32, Range<i64>)> {
        let last = self.0.entry(row.output).or_default();
        last.retain(|source, _| *source >= row.forgotten);
        for (source, range) in &row.read {
            last.insert(*source, range.clone());
        }
        last.iter().map(|(source, range)| (*source, range.clone()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn block(kind: u8, number: i32, rows: &[u8]) -> Vec<u8> {
        let mut bytes = vec![kind];
        bytes.extend(number.to_le_bytes());
        bytes.extend((rows.len() as u32).to_le_bytes());
        bytes.extend(rows);
        bytes
    }

    fn output(key: u8, forgotten: u8, read: &[[u8; 3]], ns: u8) -> Vec<u8> {
        let mut bytes = vec![key, 0, 0, 0, 0, 0, 0, 0];
        bytes.extend([0; 8]);
        bytes.extend([forgotten, read.len() as u8]);
        bytes.extend(read.iter().flatten());
        bytes.push(ns);
        bytes
    }

    #[test]
    fn outputs_come_from_what_was_read_before_them() {
        let file = [
            MAGIC.to_vec(),
            block(INPUTS, 0, &[0x80, 1, 9, 0, 0, 0, 0, 0, 0, 0]),
            block(
                OUTPUTS,
                0,
                &[
                    output(1, 0, &[[0, 0, 2], [1, 0, 1]], 5),
                    // Another record of the same.
                    output(2, 0, &[], 6),
                    // One more of the first source.
                    output(3, 0, &[[0, 2, 1]], 7),
                    // The first two are done with.
                    output(4, 2, &[[2, 0, 1]], 8),
                ]
                .concat(),
            ),
        ]
        .concat();
        let blocks: Vec<Block> = Blocks::of(&file).collect();
        let input = Input {
            source: 0,
            position: 0,
            id: 9,
            ns: 128,
        };
        assert_eq!(blocks[0], Block::Input(input));
        let mut ranges = Ranges::default();
        let of: Vec<Vec<_>> = blocks[1..]
            .iter()
            .map(|block| match block {
                Block::Output(row) => ranges.of(row).collect(),
                Block::Input(row) => panic!("{row:?}"),
            })
            .collect();
        let both = vec![(0, 0..2), (1, 0..1)];
        assert_eq!(
            of,
            [
                both.clone(),
                both,
                vec![(0, 2..3), (1, 0..1)],
                vec![(2, 0..1)]
            ]
        );
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let file = [MAGIC, &bytes].concat();
            let mut ranges = Ranges::default();
            for block in Blocks::of(&file) {
                if let Block::Output(row) = block {
                    let _ = ranges.of(&row).count();
                }
            }
        }
    }
}
