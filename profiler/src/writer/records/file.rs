//! The file with a task's records, which `RecordFile` in the JVM writes.

use std::collections::BTreeMap;
use std::io::Read;
use std::ops::Range;

const MAGIC: &[u8] = b"UNFREC2\n";
const INPUTS: u8 = 1;
const OUTPUTS: u8 = 2;
/// Longest block, bytes.
const LONGEST: u32 = 16 << 20;

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
    /// The part of it by itself, ns.
    pub(super) alone_ns: i64,
    /// Sources below this number have no part in it.
    forgotten: i32,
    /// Records read since the previous output.
    read: Vec<(i32, Range<i64>)>,
}

/// The records of a file, up to its end or to the damage.
pub(super) struct Blocks<R> {
    file: R,
    /// The current block: its kind, its source or output, its rows and the number of bytes read.
    block: (u8, i32, Vec<u8>, usize),
    positions: BTreeMap<(u8, i32), i64>,
}

impl<R: Read> Blocks<R> {
    pub(super) fn new(mut file: R) -> Self {
        let mut magic = [0; MAGIC.len()];
        let mut block = (0, 0, Vec::new(), 0);
        if file.read_exact(&mut magic).is_err() || magic != MAGIC {
            // Not a kind of block: nothing will be read.
            block = (0, 0, vec![0], 0);
        }
        Self {
            file,
            block,
            positions: BTreeMap::new(),
        }
    }

    fn next_block(&mut self) -> Option<()> {
        let mut head = [0; 9];
        self.file.read_exact(&mut head).ok()?;
        let [kind, a, b, c, d, length @ ..] = head;
        let length = u32::from_le_bytes(length);
        if length > LONGEST {
            return None;
        }
        let (_, _, rows, offset) = &mut self.block;
        rows.clear();
        *offset = 0;
        let read = (&mut self.file)
            .take(length.into())
            .read_to_end(rows)
            .ok()?;
        (self.block.0, self.block.1) = (kind, i32::from_le_bytes([a, b, c, d]));
        (read == length as usize).then_some(())
    }
}

impl<R: Read> Iterator for Blocks<R> {
    type Item = Block;

    fn next(&mut self) -> Option<Block> {
        while self.block.3 == self.block.2.len() {
            self.next_block()?;
        }
        let (kind, number, bytes, offset) = &mut self.block;
        let rows = &mut &bytes[*offset..];
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
                    alone_ns: number_of(rows)?,
                    forgotten,
                    read,
                })
            }
            _ => return None,
        };
        *offset = bytes.len() - rows.len();
        *position += 1;
        Some(block)
    }
}

/// Seven bits in each byte, the lowest first; never negative.
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

/// The inputs of each output: for every source those that were read for it or, without any, those of the previous
/// output.
#[derive(Default)]
pub(super) struct Ranges(BTreeMap<i32, OutputRanges>);

/// The inputs of one output.
#[derive(Default)]
struct OutputRanges {
    forgotten: i32,
    last: BTreeMap<i32, Range<i64>>,
}

impl Ranges {
    /// Adds the records read for an output; returns its inputs.
    pub(super) fn update(&mut self, row: &Output) -> impl Iterator<Item = (i32, Range<i64>)> {
        let OutputRanges { forgotten, last } = self.0.entry(row.output).or_default();
        // Once: an earlier source that is read again counts again.
        if row.forgotten > *forgotten {
            *forgotten = row.forgotten;
            last.retain(|source, _| *source >= row.forgotten);
        }
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
        bytes.extend([ns, ns / 2]);
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
                    // Another output of the same inputs.
                    output(2, 0, &[], 6),
                    // One more record of the first source.
                    output(3, 0, &[[0, 2, 1]], 7),
                    // The first two sources are finished.
                    output(4, 2, &[[2, 0, 1]], 8),
                    // But one of them is read again, and stays.
                    output(5, 2, &[[1, 1, 1]], 8),
                    output(6, 2, &[[2, 1, 1]], 8),
                ]
                .concat(),
            ),
        ]
        .concat();
        let blocks: Vec<Block> = Blocks::new(file.as_slice()).collect();
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
                Block::Output(row) => ranges.update(row).collect(),
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
                vec![(2, 0..1)],
                vec![(1, 1..2), (2, 0..1)],
                vec![(1, 1..2), (2, 1..2)],
            ]
        );
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let file = [MAGIC, &bytes].concat();
            let mut ranges = Ranges::default();
            for block in Blocks::new(file.as_slice()) {
                if let Block::Output(row) = block {
                    let _ = ranges.update(&row).count();
                }
            }
        }
    }
}
