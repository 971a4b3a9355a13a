//! What the pages of a Parquet file claim to hold, read from their headers before anything is unpacked.
//!
//! A page of a few bytes may claim gigabytes, and the Parquet reader allocates what it claims.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use crate::thrift::{Kind, Thrift, damaged};

/// Bytes that are read for a header, and longest header. Ours have below 100; statistics may make them longer.
const HEADER: u64 = 256;
const LONGEST_HEADER: u64 = 64 << 10;
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

impl Claims {
    pub(crate) fn add(&mut self, other: Self) {
        self.values = self.values.saturating_add(other.values);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// What all pages of a column chunk claim, which has this range of the file.
///
/// # Errors
/// If the range or a page lies outside the file, a header cannot be read, or a page is none that we write.
pub(crate) fn claims(file: &File, chunk: Range<u64>) -> io::Result<Claims> {
    if chunk.end > file.metadata()?.len() {
        return Err(damaged("a column lies outside the file"));
    }
    let mut claims = Claims::default();
    let mut window = Window::new(file, chunk.end);
    let mut offset = chunk.start;
    while offset < chunk.end {
        let (header, length) = window.header(offset)?;
        let (page, packed) = header.checked()?;
        // The first may be the dictionary of a column of nulls.
        if page.values == 0 && offset > chunk.start {
            return Err(damaged("a page has no values"));
        }
        claims.add(page);
        offset = offset.saturating_add(length as u64).saturating_add(packed);
    }
    if offset > chunk.end {
        return Err(damaged("a page lies outside its column"));
    }
    Ok(claims)
}

/// The part of a file that was read last: short pages have several headers in it.
struct Window<'a> {
    file: &'a File,
    /// Where the column ends.
    end: u64,
    start: u64,
    bytes: Vec<u8>,
}

impl<'a> Window<'a> {
    fn new(file: &'a File, end: u64) -> Self {
        Self {
            file,
            end,
            start: 0,
            bytes: Vec::new(),
        }
    }

    /// The header at this place and its length.
    fn header(&mut self, offset: u64) -> io::Result<(PageHeader, usize)> {
        let skip = offset.saturating_sub(self.start) as usize;
        let mut header = PageHeader::parse(self.bytes.get(skip..).unwrap_or_default());
        for longest in [HEADER, LONGEST_HEADER] {
            let is_cut_off = |e: &io::Error| e.kind() == io::ErrorKind::UnexpectedEof;
            if !header.as_ref().is_err_and(is_cut_off) {
                break;
            }
            self.start = offset;
            let length = self.end.saturating_sub(offset).min(longest);
            self.bytes.resize(length as usize, 0);
            self.file.read_exact_at(&mut self.bytes, offset)?;
            header = PageHeader::parse(&self.bytes);
        }
        header
    }
}

/// The fields of a `PageHeader` (parquet.thrift) that say how large a page is.
#[derive(Debug, Default)]
struct PageHeader {
    unpacked: Option<i32>,
    packed: Option<i32>,
    values: i32,
    encodings: Vec<i32>,
}

impl PageHeader {
    /// What the page claims, and its bytes in the file.
    fn checked(&self) -> io::Result<(Claims, u64)> {
        let size = |size: Option<i32>| size.and_then(|size| u64::try_from(size).ok());
        let (Some(packed), Some(bytes)) = (size(self.packed), size(self.unpacked)) else {
            return Err(damaged("a page header lacks its sizes"));
        };
        if !self.encodings.iter().all(|one| ENCODINGS.contains(one)) {
            return Err(damaged("a page has an encoding that unfuse does not write"));
        }
        let values = self.values.max(0) as u64;
        Ok((Claims { values, bytes }, packed))
    }

    /// A header and its length. The Parquet reader does not check the types of fields, so this does: both must read the
    /// same.
    fn parse(bytes: &[u8]) -> io::Result<(Self, usize)> {
        let mut thrift = Thrift::new("a page header", bytes);
        let mut header = Self::default();
        let mut id = 0;
        while let Some(kind) = thrift.field(&mut id)? {
            match (id, kind) {
                (1 | 4, Kind::Int) => drop(thrift.int()?),
                (2, Kind::Int) => header.unpacked = Some(thrift.int()?),
                (3, Kind::Int) => header.packed = Some(thrift.int()?),
                (5..=8, Kind::Struct) => header.of_page(id, &mut thrift)?,
                (1..=8, _) => return Err(thrift.damaged("has a field of another type")),
                (_, kind) => thrift.skip(kind)?,
            }
        }
        Ok((header, thrift.offset()))
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
                (5, 5, Kind::Struct) | (8, 8, Kind::Struct) => thrift.skip(kind)?,
                (_, 9.., kind) => thrift.skip(kind)?,
                _ => return Err(thrift.damaged("has a field of another type")),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// A data page whose unpacked size, packed size and number of values have one byte each.
    fn page(unpacked: u8, packed: u8, values: u8) -> Vec<u8> {
        let head = [0x15, 0, 0x15, unpacked << 1, 0x15, packed << 1];
        let data = [0x2c, 0x15, values << 1, 0x15, 0, 0x15, 6, 0x15, 6, 0, 0];
        let body = vec![0xff; usize::from(packed)];
        [&head[..], &data, &body].concat()
    }

    fn claims_of(bytes: &[u8]) -> io::Result<Claims> {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(bytes).expect("written");
        claims(&file, 0..bytes.len() as u64)
    }

    #[track_caller]
    fn refused(bytes: &[u8], why: &str) {
        let error = claims_of(bytes).expect_err("refused").to_string();
        assert_eq!(error, why);
    }

    #[test]
    fn pages_are_summed_up_wherever_they_begin() {
        // Headers lie within what is read at once, across its end, and behind a page that is longer.
        for packed in [0, 1, 13, 63] {
            let pages = page(40, packed, 3).repeat(1000);
            let (values, bytes) = (3000, 40_000);
            assert_eq!(claims_of(&pages).expect("read"), Claims { values, bytes });
        }
        assert_eq!(claims_of(&[]).expect("read"), Claims::default());
    }

    #[test]
    fn a_long_header_is_read() {
        // A text of statistics (field 1) in a data page of one value.
        let mut one = vec![
            0x15, 0, 0x15, 2, 0x15, 0, 0x2c, 0x15, 2, 0x4c, 0x18, 0xa0, 0x1f,
        ];
        one.resize(one.len() + 4000, b'x');
        one.extend([0, 0, 0]);
        let claims = claims_of(&one.repeat(50)).expect("read");
        assert_eq!((claims.values, claims.bytes), (50, 50));
    }

    #[test]
    fn pages_of_nothing_are_refused() {
        let nothing = [0x25, 0, 0x15, 0, 0];
        refused(&nothing.repeat(1000), "a page has no values");
        refused(&page(0, 0, 0).repeat(1000), "a page has no values");
        refused(
            &[page(1, 0, 1), page(9, 9, 0)].concat(),
            "a page has no values",
        );
        // The dictionary of a column of nulls has none, and is the first.
        let dictionary = [0x15, 4, 0x15, 0, 0x15, 0, 0x4c, 0x15, 0, 0x15, 0, 0, 0];
        let column = [&dictionary[..], &page(1, 1, 5)].concat();
        assert_eq!(claims_of(&column).expect("read").values, 5);
    }

    #[test]
    fn damaged_pages_are_refused() {
        let one = page(1, 5, 1);
        refused(&one[..7], "a page header is cut off");
        refused(&one[..19], "a page lies outside its column");
        refused(&[0x15, 0, 0], "a page header lacks its sizes");
        refused(&[0x1c; 100], "a page header has a field of another type");
    }
}
