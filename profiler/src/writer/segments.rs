//! The open segments of all tables, declared by the list of tables.

use unfuse_format::{FormatError, Lifetime, OpenSegment, ProfileDir, SegmentWriter, TableId};

/// Maximum number of rows of a table that are kept while writing fails.
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

            /// All segments, in the order of writing.
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
            /// The writer's segments.
            Segments { $($name: $row,)+ }
        }
        segments_of! {
            /// The segments of traced records.
            RecordSegments { $($record_name: $record_row,)+ }
        }
    };
}

unfuse_format::every_table!(segments);

impl Segments {
    /// Renames the segments that are deleted by generation, from now on.
    pub(super) fn begin_generation(&mut self, name: &str) {
        for segment in self.by_generation() {
            segment.rename(name);
        }
    }

    /// Bytes written so far to tables that are deleted by generation.
    pub(super) fn written(&mut self) -> u64 {
        self.by_generation().map(|segment| segment.written()).sum()
    }

    /// Bytes written so far to all tables.
    pub(super) fn written_in_all(&mut self) -> u64 {
        self.all().map(|segment| segment.written()).sum()
    }

    fn by_generation(&mut self) -> impl Iterator<Item = &mut dyn OpenSegment> {
        self.all()
            .filter(|segment| segment.table().lifetime() == Lifetime::Generation)
    }

    /// Whether a table has more rows than should wait.
    pub(super) fn is_large(&mut self, rows: usize) -> bool {
        self.all().any(|segment| segment.pending() >= rows)
    }

    /// Writes the tables without a rule of their own; passes each failure to `failed`.
    ///
    /// Samples and stacks have a rule, and so does the table in which only the latest row counts.
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
    /// Writes all. Rows that cannot be written are dropped: the disk is full, and the waiting files are on it, too.
    pub(super) fn flush(&mut self) {
        for segment in self.all() {
            if segment.flush().is_err() {
                segment.discard();
            }
        }
    }
}

/// Writes a segment; if that fails, drops its rows if they are too many to keep.
pub(super) fn flush(segment: &mut dyn OpenSegment) -> Result<(), FormatError> {
    let flushed = segment.flush();
    if flushed.is_err() && segment.pending() > MOST_ROWS {
        segment.discard();
    }
    flushed
}
