//! Detects the compression of a file by its first bytes.

mod blocks;
mod budget;
mod lz4_block;
mod lzf;
mod snappy;
#[cfg(test)]
mod tests;

use std::io::{self, BufRead, BufReader, Read};

use self::blocks::Blocks;
pub(crate) use self::budget::Budget;
use self::budget::{BoundedText, CountedFile};

/// Bytes for each read from the system.
const BUFFER: usize = 1 << 18;

/// A file's text. If it becomes unreadable, the text before is still returned.
pub(crate) type Text = Box<dyn BufRead + Send>;

/// The result of looking at a file's begin.
pub(crate) enum FileStart {
    /// Text, unpacked if necessary.
    Text(Text),
    /// An empty file.
    Empty,
    /// Not a format that Spark writes.
    Unknown,
}

/// A file's text, unpacked according to its first bytes. It ends with [`io::ErrorKind::FileTooLarge`] if the files of
/// the budget unpack to more than a log of their size can contain.
///
/// # Errors
/// If the first bytes cannot be read.
pub(crate) fn text(file: impl Read + Send + 'static, budget: &Budget) -> io::Result<FileStart> {
    let mut file = CountedFile::new(file, budget.clone());
    let mut head = Vec::new();
    file.by_ref().take(8).read_to_end(&mut head)?;
    if head.is_empty() {
        return Ok(FileStart::Empty);
    }
    let codec = Codec::detect(&head);
    let file = BufReader::with_capacity(BUFFER, io::Cursor::new(head).chain(file));
    let buffered = |reader: Box<dyn Read + Send>| -> Text {
        Box::new(BufReader::with_capacity(BUFFER, reader))
    };
    let text: Text = match codec {
        Some(Codec::Plain) => return Ok(FileStart::Text(Box::new(file))),
        Some(Codec::Zstd) => buffered(Box::new(zstd::Decoder::with_buffer(file)?)),
        Some(Codec::Gzip) => buffered(Box::new(flate2::bufread::MultiGzDecoder::new(file))),
        Some(Codec::Lz4Block) => Box::new(Blocks::new(file, lz4_block::Lz4Block::default())),
        Some(Codec::Snappy) => Box::new(Blocks::new(file, snappy::Snappy::default())),
        Some(Codec::Lzf) => Box::new(Blocks::new(file, lzf::Lzf::default())),
        None => return Ok(FileStart::Unknown),
    };
    Ok(FileStart::Text(Box::new(BoundedText::new(
        text,
        budget.clone(),
    ))))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Codec {
    Plain,
    Zstd,
    Gzip,
    /// As lz4-java, and so Spark, writes it.
    Lz4Block,
    /// As snappy-java, and so Spark, writes it.
    Snappy,
    Lzf,
}

impl Codec {
    /// Recognises a magic number that is cut off by its remaining bytes.
    fn detect(head: &[u8]) -> Option<Self> {
        const MAGIC: [(Codec, &[u8]); 5] = [
            (Codec::Zstd, &[0x28, 0xb5, 0x2f, 0xfd]),
            (Codec::Gzip, &[0x1f, 0x8b]),
            (Codec::Lz4Block, lz4_block::MAGIC),
            (Codec::Snappy, snappy::MAGIC),
            (Codec::Lzf, lzf::MAGIC),
        ];
        let of_magic = MAGIC.iter().find(|(_, magic)| {
            let length = magic.len().min(head.len());
            magic[..length] == head[..length]
        });
        match of_magic {
            Some((codec, _)) => Some(*codec),
            None if head
                .trim_ascii_start()
                .first()
                .is_none_or(|byte| *byte == b'{') =>
            {
                Some(Self::Plain)
            }
            None => None,
        }
    }
}
