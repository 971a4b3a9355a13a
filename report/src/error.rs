//! The error of this crate.

use unfuse_contention::InputError;
use unfuse_format::FormatError;
use unfuse_impact::TableError;
use unfuse_provenance::ProvenanceError;
use unfuse_sizing::SizingError;

/// Why an answer cannot be given.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The profile cannot be read.
    #[error(transparent)]
    Profile(#[from] FormatError),
    /// Its tables have impossible rows.
    #[error(transparent)]
    Contention(#[from] InputError),
    /// Records cannot be followed.
    #[error(transparent)]
    Records(#[from] ProvenanceError),
    /// A table of runs cannot be analysed.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The job's profile cannot predict the time, or no cluster fits.
    #[error(transparent)]
    Sizing(#[from] SizingError),
    /// There is no answer, or the job that computes it failed; the reason.
    #[error("{0}")]
    Refused(String),
    /// A part of the page cannot be packed.
    #[error("a part of the page cannot be packed: {0}")]
    Page(#[from] std::io::Error),
}
