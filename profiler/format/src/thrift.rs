//! The compact protocol of Thrift, as far as Parquet files use it.

use std::io;

/// Deepest nesting of structs and lists.
const DEEPEST: u32 = 16;

/// What is wrong with a file.
pub(crate) fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// A type in the compact protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Boolean,
    Byte,
    /// Of 16, 32 or 64 bits: all are written alike.
    Int,
    Double,
    /// Bytes or a text.
    Binary,
    /// A list or a set: both are written alike.
    List,
    Struct,
    Other(u8),
}

impl Kind {
    /// The type in the lower half of a head.
    fn from_head(head: u8) -> Self {
        match head & 15 {
            1 | 2 => Self::Boolean,
            3 => Self::Byte,
            4..=6 => Self::Int,
            7 => Self::Double,
            8 => Self::Binary,
            9 | 10 => Self::List,
            12 => Self::Struct,
            other => Self::Other(other),
        }
    }
}

/// Reads values.
pub(crate) struct Thrift<'a> {
    /// What is read, for messages.
    what: &'static str,
    bytes: &'a [u8],
    offset: usize,
    depth: u32,
}

impl<'a> Thrift<'a> {
    pub(crate) fn new(what: &'static str, bytes: &'a [u8]) -> Self {
        Self {
            what,
            bytes,
            offset: 0,
            depth: 0,
        }
    }

    /// Bytes read so far.
    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    /// What is wrong with what is read.
    pub(crate) fn damaged(&self, how: &str) -> io::Error {
        damaged(&format!("{} {how}", self.what))
    }

    /// The error of a read past the end, which has a kind of its own: who has read a part may read more.
    fn cut_off(&self) -> io::Error {
        let text = format!("{} is cut off", self.what);
        io::Error::new(io::ErrorKind::UnexpectedEof, text)
    }

    /// The type of a struct's next field, `None` at its end. `id` is the field's before and becomes its own.
    pub(crate) fn field(&mut self, id: &mut i16) -> io::Result<Option<Kind>> {
        let head = self.byte()?;
        if head == 0 {
            return Ok(None);
        }
        *id = match head >> 4 {
            0 => self.int()? as i16,
            step => id.wrapping_add(i16::from(step)),
        };
        Ok(Some(Kind::from_head(head)))
    }

    /// The type of a list's elements and their number, which is no larger than the bytes that are left.
    pub(crate) fn list(&mut self) -> io::Result<(Kind, u64)> {
        let head = self.byte()?;
        let length = match head >> 4 {
            15 => self.varint()?,
            length => u64::from(length),
        };
        if length > (self.bytes.len() - self.offset) as u64 {
            return Err(self.damaged("has a list that is longer than itself"));
        }
        // Some writers give an empty list no type.
        let kind = if head == 0 {
            Kind::Byte
        } else {
            Kind::from_head(head)
        };
        Ok((kind, length))
    }

    /// Goes into a struct or a list.
    pub(crate) fn enter(&mut self) -> io::Result<()> {
        if self.depth == DEEPEST {
            return Err(self.damaged("nests too deep"));
        }
        self.depth += 1;
        Ok(())
    }

    /// Comes out of a struct or a list.
    pub(crate) fn leave(&mut self) {
        self.depth -= 1;
    }

    pub(crate) fn skip(&mut self, kind: Kind) -> io::Result<()> {
        match kind {
            // Its value is in the field's head.
            Kind::Boolean => Ok(()),
            Kind::Byte => self.advance(1),
            Kind::Int => self.varint().map(drop),
            Kind::Double => self.advance(8),
            Kind::Binary => self.binary().map(drop),
            Kind::List => self.skip_list(),
            Kind::Struct => self.skip_struct(),
            Kind::Other(_) => Err(self.damaged("has a field of an unknown type")),
        }
    }

    fn skip_struct(&mut self) -> io::Result<()> {
        self.enter()?;
        let mut id = 0;
        while let Some(kind) = self.field(&mut id)? {
            self.skip(kind)?;
        }
        self.leave();
        Ok(())
    }

    fn skip_list(&mut self) -> io::Result<()> {
        self.enter()?;
        let (kind, length) = self.list()?;
        if kind == Kind::Boolean {
            // The Parquet reader takes no byte for one of them: nothing would bound what it skips.
            return Err(self.damaged("has a list of booleans"));
        }
        for _ in 0..length {
            self.skip(kind)?;
        }
        self.leave();
        Ok(())
    }

    /// Skips bytes or a text and returns its length.
    pub(crate) fn binary(&mut self) -> io::Result<u64> {
        let length = self.varint()?;
        self.advance(length)?;
        Ok(length)
    }

    fn byte(&mut self) -> io::Result<u8> {
        let byte = self.bytes.get(self.offset).copied();
        let byte = byte.ok_or_else(|| self.cut_off())?;
        self.offset += 1;
        Ok(byte)
    }

    fn advance(&mut self, bytes: u64) -> io::Result<()> {
        let offset = usize::try_from(bytes).ok();
        let offset = offset.and_then(|bytes| self.offset.checked_add(bytes));
        self.offset = offset
            .filter(|offset| *offset <= self.bytes.len())
            .ok_or_else(|| self.cut_off())?;
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
        Err(self.damaged("has a number that is too long"))
    }

    /// A signed number, cut to 32 bits as the Parquet reader does.
    pub(crate) fn int(&mut self) -> io::Result<i32> {
        let value = self.varint()?;
        Ok(((value >> 1) as i64 ^ -((value & 1) as i64)) as i32)
    }
}
