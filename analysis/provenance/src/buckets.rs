//! Rows in buckets: in memory if there are few, else on disk.

use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tempfile::SpooledTempFile;

/// Rows by bucket.
pub(crate) struct Buckets<T> {
    files: Vec<SpooledTempFile>,
    of: PhantomData<T>,
}

impl<T: Serialize + DeserializeOwned> Buckets<T> {
    /// `count` buckets, which use up to `memory` bytes together before they go to disk.
    pub(crate) fn new(count: usize, memory: usize) -> Self {
        let each = memory / count.max(1);
        Self {
            files: (0..count).map(|_| SpooledTempFile::new(each)).collect(),
            of: PhantomData,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }

    pub(crate) fn put(&mut self, bucket: usize, row: &T) -> std::io::Result<()> {
        let mut bytes = [0; 128];
        let row = postcard::to_slice(row, &mut bytes).map_err(std::io::Error::other)?;
        let file = &mut self.files[bucket];
        file.write_all(&[u8::try_from(row.len()).unwrap_or(u8::MAX)])?;
        file.write_all(row)
    }

    /// Continues to append rows after a bucket was read.
    pub(crate) fn seek_end(&mut self, bucket: usize) -> std::io::Result<()> {
        self.files[bucket].seek(SeekFrom::End(0)).map(|_| ())
    }

    /// The rows of a bucket, in the order of insertion.
    pub(crate) fn rows(
        &mut self,
        bucket: usize,
    ) -> std::io::Result<impl Iterator<Item = std::io::Result<T>>> {
        let file = &mut self.files[bucket];
        file.seek(SeekFrom::Start(0))?;
        let mut file = BufReader::new(file);
        Ok(std::iter::from_fn(move || {
            let mut length = [0];
            match file.read(&mut length) {
                Ok(0) => None,
                Ok(_) => {
                    let mut row = [0; 128];
                    let row = &mut row[..usize::from(length[0]).min(128)];
                    let read = file.read_exact(row);
                    Some(
                        read.and_then(|()| {
                            postcard::from_bytes(row).map_err(std::io::Error::other)
                        }),
                    )
                }
                Err(error) => Some(Err(error)),
            }
        }))
    }
}

/// The bucket of an id.
pub(crate) fn bucket_of(id: i64, count: usize) -> usize {
    // Ids of positions are small numbers.
    let mixed = id.cast_unsigned().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    usize::try_from(mixed).unwrap_or(0) % count.max(1)
}
