//! What the pages of a Parquet file claim to hold, read from their headers before anything is unpacked.
//!
//! A page of a few bytes may claim gigabytes, and the Parquet reader allocates what it claims.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// Longest header that is read, bytes. Ours have below 100; statistics may make them longer.
const LONGEST_HEADER: usize = 64 << 10;
/// Deepest nesting of structs in a header.
const DEEPEST: u32 = 16;
/// Encodings that unpack no value to more bytes than its page or dictionary holds, by their numbers in the Parquet
/// format: PLAIN, PLAIN_DICTIONARY, RLE, BIT_PACKED, DELTA_BINARY_PACKED, RLE_DICTIONARY.
const ENCODINGS: [i32; 6] = [0, 2, 3, 4, 5, 8];

/// What pages claim to hold, summed up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Claims {
    /// Values, nulls and values of dictionaries included.
    pub(crate) values: u64,
    /// Bytes once unpacked.
    pub(crate) bytes: u64,
}

/// What all pages of a column chunk claim, which has this range of the file.
///
/// # Errors
/// If the range or a page lies outside the file, a header cannot be read, or an encoding is none that we write.
pub(crate) fn claims(file: &File, mut chunk: Range<u64>) -> io::Result<Claims> {
    let mut claims = Claims::default();
    let mut bytes = Vec::new();
    if chunk.end > file.metadata()?.len() {
        return Err(damaged("a column lies outside the file"));
    }
    while chunk.start < chunk.end {
        let longest = (chunk.end - chunk.start).min(LONGEST_HEADER as u64);
        bytes.resize(longest as usize, 0);
        file.read_exact_at(&mut bytes, chunk.start)?;
        let (header, length) = PageHeader::parse(&bytes)?;
        let size = |size: Option<i32>| size.and_then(|size| u64::try_from(size).ok());
        let (Some(packed), Some(unpacked)) = (size(header.packed), size(header.unpacked)) else {
            return Err(damaged("a page header lacks its sizes"));
        };
        if !header.encodings.iter().all(|one| ENCODINGS.contains(one)) {
            return Err(damaged("a page has an encoding that unfuse does not write"));
        }
        claims.values = claims.values.saturating_add(header.values.max(0) as u64);
        claims.bytes = claims.bytes.saturating_add(unpacked);
        chunk.start = chunk
            .start
            .saturating_add(length as u64)
            .saturating_add(packed);
    }
    if chunk.start == chunk.end {
        Ok(claims)
    } else {
        Err(damaged("a page lies outside its column"))
    }
}

fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// The fields of a `PageHeader` (parquet.thrift) that say how large a page is.
#[derive(Debug, Default)]
struct PageHeader {
    unpacked: Option<i32>,
    packed: Option<i32>,
    values: i32,
    encodings: Vec<i32>,
}

/// A field's type in the compact protocol of Thrift.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Boolean,
    Int,
    Struct,
    Other(u8),
}

impl PageHeader {
    /// A header and its length. The Parquet reader does not check the types of fields, so this does: both must read the
    /// same.
    fn parse(bytes: &[u8]) -> io::Result<(Self, usize)> {
        let mut thrift = Thrift { bytes, at: 0 };
        let mut header = Self::default();
        let mut id = 0;
        while let Some(kind) = thrift.field(&mut id)? {
            match (id, kind) {
                (1 | 4, Kind::Int) => drop(thrift.int()?),
                (2, Kind::Int) => header.unpacked = Some(thrift.int()?),
                (3, Kind::Int) => header.packed = Some(thrift.int()?),
                (5..=8, Kind::Struct) => header.of_page(id, &mut thrift)?,
                (1..=8, _) => return Err(damaged("a page header has a field of another type")),
                (_, kind) => thrift.skip(kind, 0)?,
            }
        }
        Ok((header, thrift.at))
    }

    /// The header of a data page (5), an index page (6), a dictionary (7) or a data page of version 2 (8).
    fn of_page(&mut self, page: i16, thrift: &mut Thrift<'_>) -> io::Result<()> {
        let mut id = 0;
        while let Some(kind) = thrift.field(&mut id)? {
            match (page, id, kind) {
                (5 | 7 | 8, 1, Kind::Int) => self.values = self.values.max(thrift.int()?),
                // Of values, and of levels.
                (5, 2..=4, Kind::Int) | (7, 2, Kind::Int) | (8, 4, Kind::Int) => {
                    self.encodings.push(thrift.int()?);
                }
                (8, 2..=6, Kind::Int) => drop(thrift.int()?),
                (7, 3, Kind::Boolean) | (8, 7, Kind::Boolean) => {}
                // Statistics, and what newer versions may add.
                (5, 5, Kind::Struct) | (8, 8, Kind::Struct) => thrift.skip(kind, 0)?,
                (_, 9.., kind) => thrift.skip(kind, 0)?,
                _ => return Err(damaged("a page header has a field of another type")),
            }
        }
        Ok(())
    }
}

/// The compact protocol of Thrift, as far as page headers use it.
struct Thrift<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Thrift<'_> {
    /// The type of a struct's next field, `None` at its end. `id` is the field's before and becomes its own.
    fn field(&mut self, id: &mut i16) -> io::Result<Option<Kind>> {
        let head = self.byte()?;
        if head == 0 {
            return Ok(None);
        }
        *id = match head >> 4 {
            0 => self.int()? as i16,
            step => id.wrapping_add(i16::from(step)),
        };
        Ok(Some(match head & 15 {
            1 | 2 => Kind::Boolean,
            5 => Kind::Int,
            12 => Kind::Struct,
            other => Kind::Other(other),
        }))
    }

    fn skip(&mut self, kind: Kind, depth: u32) -> io::Result<()> {
        match kind {
            // Its value is in the field's head.
            Kind::Boolean => Ok(()),
            Kind::Int | Kind::Other(4 | 6) => self.varint().map(drop),
            Kind::Other(3) => self.advance(1),
            Kind::Other(7) => self.advance(8),
            Kind::Other(8) => {
                let length = self.varint()?;
                self.advance(length)
            }
            Kind::Struct if depth < DEEPEST => {
                let mut id = 0;
                while let Some(kind) = self.field(&mut id)? {
                    self.skip(kind, depth + 1)?;
                }
                Ok(())
            }
            // No field of a page header is a list, a set or a map.
            _ => Err(damaged("a page header has a field of an unknown type")),
        }
    }

    fn byte(&mut self) -> io::Result<u8> {
        let byte = self.bytes.get(self.at).copied();
        self.at += 1;
        byte.ok_or_else(|| damaged("a page header is cut off"))
    }

    fn advance(&mut self, bytes: u64) -> io::Result<()> {
        let at = usize::try_from(bytes).ok();
        let at = at.and_then(|bytes| self.at.checked_add(bytes));
        self.at = at
            .filter(|at| *at <= self.bytes.len())
            .ok_or_else(|| damaged("a page header is cut off"))?;
        Ok(())
    }

    fn varint(&mut self) -> io::Result<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(damaged("a page header has a number that is too long"))
    }

    /// A signed number, cut to 32 bits as the Parquet reader does.
    fn int(&mut self) -> io::Result<i32> {
        let value = self.varint()?;
        Ok(((value >> 1) as i64 ^ -((value & 1) as i64)) as i32)
    }
}
