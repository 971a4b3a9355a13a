//! How much memory a segment may take once it is unpacked: a segment of a few KiB can claim any number of rows.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::pages::Claims;

/// What all segments of a table together may take beyond what their sizes allow, bytes.
const SHARED: u64 = 64 << 20;
/// Bytes of rows that a byte of a segment allows. Rows of unfuse take below 150: repeated names and plain numbers pack
/// well.
const ROWS_PER_BYTE: u64 = 512;
/// Bytes of unpacked pages that a byte of a segment allows: Snappy, which unfuse writes, packs to 1/21 at best.
const PAGES_PER_BYTE: u64 = 32;
/// Least bytes that a value takes in columns.
pub(crate) const VALUE: u64 = 8;

/// What the segments of a table may still take beyond what their sizes allow.
#[derive(Debug)]
pub(crate) struct Room(AtomicU64);

impl Default for Room {
    fn default() -> Self {
        Self(AtomicU64::new(SHARED))
    }
}

impl Room {
    /// What a segment of this many bytes may take.
    pub(crate) fn allowance(&self, bytes: u64) -> Allowance<'_> {
        Allowance {
            shared: self,
            own: bytes.saturating_mul(ROWS_PER_BYTE),
            file: bytes,
        }
    }
}

/// What a segment may take: in proportion to its size, and what others leave of the common room.
#[derive(Debug)]
pub(crate) struct Allowance<'a> {
    shared: &'a Room,
    own: u64,
    file: u64,
}

impl Allowance<'_> {
    /// Whether pages may claim so much.
    ///
    /// # Errors
    /// What they claim, for the person.
    pub(crate) fn admits(&self, claims: Claims) -> Result<(), String> {
        let bytes = self
            .file
            .saturating_mul(PAGES_PER_BYTE)
            .saturating_add(SHARED);
        let values = self.own.saturating_add(SHARED) / VALUE;
        if claims.bytes > bytes || claims.values > values {
            return Err(format!(
                "its {} bytes claim to hold {} values in {} bytes",
                self.file, claims.values, claims.bytes
            ));
        }
        Ok(())
    }

    /// Takes room for rows of so many bytes.
    ///
    /// # Errors
    /// If there is not so much.
    pub(crate) fn take(&mut self, bytes: u64) -> Result<(), String> {
        let own = bytes.min(self.own);
        self.own -= own;
        let rest = bytes - own;
        let order = Ordering::Relaxed;
        self.shared
            .0
            .try_update(order, order, |shared| shared.checked_sub(rest))
            .map(drop)
            .map_err(|_| {
                format!(
                    "its {} bytes unpack to more memory than a profile of its size needs",
                    self.file
                )
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_shared_by_segments_and_given_once() {
        let room = Room::default();
        let mut small = room.allowance(1000);
        small.take(ROWS_PER_BYTE * 1000).expect("its own");
        small.take(SHARED).expect("the common room");
        assert!(small.take(1).is_err());
        let mut other = room.allowance(1000);
        other.take(ROWS_PER_BYTE * 1000).expect("its own");
        assert!(other.take(1).is_err());
    }
}
