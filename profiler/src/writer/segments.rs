//! The open segment of every table, made from the list of tables.

use unfuse_format::{FormatError, Lifetime, OpenSegment, ProfileDir, SegmentWriter, TableId};

/// Rows of one table that are kept while nothing can be written.
pub(super) const MOST_ROWS: usize = 400_000;

macro_rules! segments_of {
    ($(#[doc = $doc:literal])* $segments:ident { $($name:ident: $row:ty,)+ }) => {
        $(#[doc = $doc])*
        pub(super) struct $segments {
            $(pub(super) $name: SegmentWriter<$row>,)+
        }

        impl $segments {
            pub(super) fn new(dir: &ProfileDir, writer: &str) -> Self {
                Self {
                    $($name: SegmentWriter::new(dir, writer),)+
                }
            }

            /// All of them, in the order in which they are written.
            pub(super) fn all(&mut self) -> impl Iterator<Item = &mut dyn OpenSegment> {
                let all: Vec<&mut dyn OpenSegment> = vec![$(&mut self.$name),+];
                all.into_iter()
            }
        }
    };
}

macro_rules! segments {
    (
        { $($id:ident $name:ident: $row:ty => $lifetime:ident,)+ }
        { $($record_id:ident $record_name:ident: $record_row:ty => $record_lifetime:ident,)+ }
    ) => {
        segments_of! {
            /// Those of the writer.
            Segments { $($name: $row,)+ }
        }
        segments_of! {
            /// Those of followed records.
            RecordSegments { $($record_name: $record_row,)+ }
        }
    };
}

unfuse_format::every_table!(segments);

impl Segments {
    /// Calls the segments that are deleted by generation by another name from now on.
    pub(super) fn begin_generation(&mut self, name: &str) {
        for segment in self.by_generation() {
            segment.rename(name);
        }
    }

    /// Bytes written so far of what is deleted by generation.
    pub(super) fn written(&mut self) -> u64 {
        self.by_generation().map(|segment| segment.written()).sum()
    }

    fn by_generation(&mut self) -> impl Iterator<Item = &mut dyn OpenSegment> {
        self.all()
            .filter(|segment| segment.table().lifetime() == Lifetime::Generation)
    }

    /// Whether a table has more rows than should wait.
    pub(super) fn is_large(&mut self, rows: usize) -> bool {
        self.all().any(|segment| segment.pending() >= rows)
    }

    /// Writes the tables that have no rule of their own; hands each failure to `failed`.
    ///
    /// Samples and stacks have one, and so has the table whose latest row counts.
    pub(super) fn flush_others(&mut self, mut failed: impl FnMut(FormatError)) {
        for segment in self.all() {
            if let TableId::Stacks | TableId::Samples | TableId::Processes = segment.table() {
                continue;
            }
            if let Err(e) = flush(segment) {
                failed(e);
            }
        }
    }

    /// Drops all rows.
    pub(super) fn discard(&mut self) {
        for segment in self.all() {
            segment.discard();
        }
    }
}

impl RecordSegments {
    /// Writes all. Rows that cannot be written are given up: the disk is full, and the files that wait are on it too.
    pub(super) fn flush(&mut self) {
        for segment in self.all() {
            if segment.flush().is_err() {
                segment.discard();
            }
        }
    }
}

/// Writes a segment; drops its rows where it cannot be written and they are too many to be kept.
pub(super) fn flush(segment: &mut dyn OpenSegment) -> Result<(), FormatError> {
    let flushed = segment.flush();
    if flushed.is_err() && segment.pending() > MOST_ROWS {
        segment.discard();
    }
    flushed
}
