//! The tables of code objects that give the line of each instruction. They are another process's data: any bytes are
//! decoded, to no more lines than the table has entries.

/// How a version of CPython writes the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    /// `co_lnotab` of 3.9: differences of addresses and of lines, each in a byte.
    Differences,
    /// `co_linetable` of 3.10: lengths, and differences of lines or that there is no line.
    Ranges,
    /// `co_linetable` since 3.11: lengths, and lines with columns in one of several forms.
    Locations,
}

/// Lines of a code object: by the first byte of code that has them; line 0 is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lines {
    first: u32,
    starts: Box<[(u32, u32)]>,
}

/// Size of an instruction since 3.10, bytes of code.
pub(super) const UNIT: u32 = 2;

impl Lines {
    /// Decodes a table; `first` is the first line of the code object.
    pub(super) fn decode(encoding: Encoding, table: &[u8], first: i32) -> Self {
        let mut lines = Builder {
            starts: Vec::new(),
            address: 0,
            line: first,
        };
        match encoding {
            Encoding::Differences => differences(table, &mut lines),
            Encoding::Ranges => ranges(table, &mut lines),
            Encoding::Locations => locations(table, &mut lines),
        }
        Self {
            first: u32::try_from(first).unwrap_or(0),
            starts: lines.starts.into_boxed_slice(),
        }
    }

    /// The line of the instruction at an offset in the code, bytes; the first line for one before the code. 0 if there
    /// is none.
    pub(super) fn at(&self, offset: i64) -> u32 {
        if offset < 0 {
            return self.first;
        }
        let after = self
            .starts
            .partition_point(|(start, _)| i64::from(*start) <= offset);
        self.starts[..after].last().map_or(0, |(_, line)| *line)
    }

    /// Size, bytes.
    pub(super) fn size(&self) -> usize {
        size_of_val(&*self.starts)
    }
}

struct Builder {
    starts: Vec<(u32, u32)>,
    /// First byte of code that has no line yet.
    address: u32,
    line: i32,
}

impl Builder {
    /// The code from here on has the present line, or none.
    fn begin(&mut self, has_line: bool) {
        let line = match has_line {
            true => u32::try_from(self.line).unwrap_or(0),
            false => 0,
        };
        match self.starts.last_mut() {
            Some(last) if last.0 == self.address => last.1 = line,
            Some(last) if last.1 == line => {}
            _ => self.starts.push((self.address, line)),
        }
    }

    fn advance(&mut self, bytes: u32) {
        self.address = self.address.saturating_add(bytes);
    }

    fn add(&mut self, lines: i32) {
        self.line = self.line.wrapping_add(lines);
    }
}

fn signed(byte: u8) -> i32 {
    i32::from(byte.cast_signed())
}

fn differences(table: &[u8], lines: &mut Builder) {
    lines.begin(true);
    for pair in table.chunks_exact(2) {
        lines.advance(u32::from(pair[0]));
        lines.add(signed(pair[1]));
        lines.begin(true);
    }
}

fn ranges(table: &[u8], lines: &mut Builder) {
    const NONE: i32 = -128;
    for pair in table.chunks_exact(2) {
        let difference = signed(pair[1]);
        if difference != NONE {
            lines.add(difference);
        }
        // An empty range has no instruction.
        if pair[0] > 0 {
            lines.begin(difference != NONE);
        }
        lines.advance(u32::from(pair[0]));
    }
    lines.begin(false);
}

fn locations(table: &[u8], lines: &mut Builder) {
    /// The first byte of an entry has this bit, no other byte has it.
    const BEGIN: u8 = 0x80;
    let mut rest = table;
    while let Some((head, tail)) = rest.split_first() {
        let end = tail
            .iter()
            .position(|byte| byte & BEGIN != 0)
            .unwrap_or(tail.len());
        let (entry, next) = tail.split_at(end);
        rest = next;
        let form = (head >> 3) & 15;
        match form {
            10..=12 => lines.add(i32::from(form) - 10),
            13 | 14 => lines.add(signed_number(entry)),
            _ => {}
        }
        lines.begin(form != 15);
        lines.advance(UNIT * u32::from((head & 7) + 1));
    }
    lines.begin(false);
}

/// A signed number of six bits a byte, the lowest first; the lowest bit is the sign.
fn signed_number(bytes: &[u8]) -> i32 {
    let mut number = 0_u32;
    for (at, byte) in bytes.iter().take(6).enumerate() {
        number |= u32::from(byte & 63) << (6 * at);
        if byte & 64 == 0 {
            break;
        }
    }
    let amount = (number >> 1).cast_signed();
    match number & 1 {
        0 => amount,
        _ => -amount,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL: [Encoding; 3] = [Encoding::Differences, Encoding::Ranges, Encoding::Locations];

    #[test]
    fn tables_of_the_documentation_are_decoded() {
        // The example of CPython's Objects/lnotab_notes.txt for 3.9: lines 1, 2, 7, 207, 257, 252.
        let old = [0, 0, 6, 1, 44, 5, 255, 0, 45, 127, 0, 73, 50, 50, 50, 0xfb];
        let lines = Lines::decode(Encoding::Differences, &old, 1);
        for (offset, line) in [
            (-1, 1),
            (0, 1),
            (6, 2),
            (49, 2),
            (50, 7),
            (350, 207),
            (400, 257),
        ] {
            assert_eq!(lines.at(offset), line, "{offset}");
        }
        // The example for 3.10: [0, 6) has line 1, [6, 50) line 2, [50, 300) none, [300, 350) line 200, then 201.
        let ranges = [6, 0, 44, 1, 250, 0x80, 0, 127, 50, 71, 10, 1];
        let lines = Lines::decode(Encoding::Ranges, &ranges, 1);
        for (offset, line) in [(0, 1), (6, 2), (299, 0), (300, 200), (350, 201), (360, 0)] {
            assert_eq!(lines.at(offset), line, "{offset}");
        }
    }

    /// Writes entries of lengths and lines, as CPython 3.11 does.
    fn encode(entries: &[(u8, Option<i32>)], first: i32) -> Vec<u8> {
        let mut table = Vec::new();
        let mut before = first;
        for (units, line) in entries {
            let head = |form: u8| 0x80 | form << 3 | (units - 1);
            let Some(line) = *line else {
                table.push(head(15));
                continue;
            };
            let difference = line - before;
            before = line;
            match difference {
                0 if units % 2 == 0 => table.extend([head(3), 0x11]),
                0..=2 => table.extend([head(10 + difference as u8), 1, 2]),
                _ => {
                    let long = units % 2 == 0;
                    table.push(head(if long { 14 } else { 13 }));
                    let mut number = difference.unsigned_abs() << 1 | u32::from(difference < 0);
                    while number >= 64 {
                        table.push(64 | (number & 63) as u8);
                        number >>= 6;
                    }
                    table.push(number as u8);
                    if long {
                        table.extend([0, 1, 2]);
                    }
                }
            }
        }
        table
    }

    proptest! {
        #[test]
        fn any_bytes_are_decoded_to_no_more_lines_than_they_have_entries(
            table in prop::collection::vec(any::<u8>(), 0..600),
            first in any::<i32>(),
            offsets in prop::collection::vec(any::<i64>(), 0..20),
        ) {
            for encoding in ALL {
                let lines = Lines::decode(encoding, &table, first);
                prop_assert!(lines.starts.len() <= table.len() + 1);
                prop_assert!(lines.starts.is_sorted_by(|a, b| a.0 < b.0));
                for offset in &offsets {
                    lines.at(*offset);
                }
            }
        }

        #[test]
        fn what_is_encoded_is_decoded(
            entries in prop::collection::vec((1..=8_u8, prop::option::of(1..100_000_i32)), 1..60),
            first in 1..100_000_i32,
        ) {
            let lines = Lines::decode(Encoding::Locations, &encode(&entries, first), first);
            let mut offset = 0;
            for (units, line) in entries {
                for _ in 0..units {
                    prop_assert_eq!(lines.at(offset), line.unwrap_or(0) as u32);
                    offset += i64::from(UNIT);
                }
            }
            prop_assert_eq!(lines.at(offset), 0);
        }
    }
}
