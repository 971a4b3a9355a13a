//! HotSpot's compressed line tables.

/// The line of a bytecode in a compressed table (the bytes after a method's bytecodes); 0 if unknown. Arbitrary bytes
/// give a wrong line, never a fault.
pub(super) fn line_of(table: &[u8], bci: u32, excess: u8) -> u32 {
    let mut reader = Reader {
        bytes: table,
        excess,
    };
    let (mut position, mut line, mut best) = (0i64, 0i64, (-1i64, 0i64));
    while let Some(byte) = reader.byte() {
        match byte {
            0 => break,
            0xff => {
                let (Some(bci), Some(lines)) = (reader.signed(), reader.signed()) else {
                    break;
                };
                position += bci;
                line += lines;
            }
            pair => {
                position += i64::from(pair >> 3);
                line += i64::from(pair & 7);
            }
        }
        // Entries need not be in order; the nearest one at or before the bytecode counts.
        if position <= i64::from(bci) && position >= best.0 {
            best = (position, line);
        }
    }
    u32::try_from(best.1).unwrap_or(0)
}

/// Length of the table at the start of `bytes`, with its end mark; all of `bytes` if there is none.
pub(super) fn table_length(bytes: &[u8], excess: u8) -> usize {
    let mut reader = Reader { bytes, excess };
    loop {
        match reader.byte() {
            Some(0) => return bytes.len() - reader.bytes.len(),
            Some(0xff) if reader.signed().is_some() && reader.signed().is_some() => {}
            Some(0xff) | None => return bytes.len(),
            Some(_) => {}
        }
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    excess: u8,
}

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*first)
    }

    /// UNSIGNED5 with the sign in the lowest bit.
    fn signed(&mut self) -> Option<i64> {
        let mut sum = 0u32;
        let low = 256 - 64 - u32::from(self.excess);
        for position in 0..5 {
            let byte = u32::from(self.byte()?).wrapping_sub(u32::from(self.excess));
            sum = sum.wrapping_add(byte.wrapping_shl(6 * position));
            if byte < low {
                break;
            }
        }
        Some(i64::from((sum >> 1) as i32 ^ -((sum & 1) as i32)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Compresses as HotSpot does (`CompressedLineNumberWriteStream`).
    fn compress(pairs: &[(u32, u32)], excess: u8) -> Vec<u8> {
        let mut bytes = Vec::new();
        let (mut last_bci, mut last_line) = (0i32, 0i32);
        for (bci, line) in pairs {
            let (bci, line) = (*bci as i32, *line as i32);
            let (by, lines) = (bci - last_bci, line - last_line);
            let byte = by << 3 | lines;
            if (0..0x20).contains(&by) && (0..8).contains(&lines) && byte != 0 && byte < 0xff {
                bytes.push(byte as u8);
            } else {
                bytes.push(0xff);
                for value in [by, lines] {
                    let mut value = ((value << 1) ^ (value >> 31)) as u32;
                    let low = 256 - 64 - u32::from(excess);
                    for position in 0..5 {
                        if value < low || position == 4 {
                            bytes.push((value + u32::from(excess)) as u8);
                            break;
                        }
                        value -= low;
                        bytes.push((low + (value & 63) + u32::from(excess)) as u8);
                        value >>= 6;
                    }
                }
            }
            (last_bci, last_line) = (bci, line);
        }
        bytes.push(0);
        bytes
    }

    proptest! {
        #[test]
        fn lines_come_back(steps in proptest::collection::vec((1u32..400, 1u32..5000), 1..30), excess in 0u8..2) {
            let mut bci = 0;
            let pairs: Vec<(u32, u32)> = steps.iter().map(|(by, line)| { bci += by; (bci, *line) }).collect();
            let table = compress(&pairs, excess);
            let followed = [&table[..], &[0x77; 20]].concat();
            prop_assert_eq!(table_length(&followed, excess), table.len());
            for (bci, line) in &pairs {
                prop_assert_eq!(line_of(&table, *bci, excess), *line);
            }
            prop_assert_eq!(line_of(&table, pairs[0].0 - 1, excess), 0);
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100), bci in any::<u32>()) {
            line_of(&bytes, bci, 0);
            line_of(&bytes, bci, 1);
            prop_assert!(table_length(&bytes, 0) <= bytes.len());
        }
    }
}
