use unfuse_format::FormatError;

/// Why records cannot be propagated.
#[derive(Debug, thiserror::Error)]
pub enum ProvenanceError {
    /// The profile cannot be read.
    #[error(transparent)]
    Profile(#[from] FormatError),
    /// Records were not traced in this run.
    #[error(
        "{0} holds no records; run the job again as `unfuse run --records -- COMMAND` to follow them"
    )]
    NoRecords(String),
    /// There is no space for intermediate results.
    #[error("cannot keep intermediate results in {dir}: {source}; point TMPDIR to a disk with room", dir = std::env::temp_dir().display())]
    NoRoom {
        /// The system's error.
        source: std::io::Error,
    },
}

impl From<std::io::Error> for ProvenanceError {
    fn from(source: std::io::Error) -> Self {
        Self::NoRoom { source }
    }
}
