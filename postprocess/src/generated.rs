//! Generated classes, by their frames.

use std::sync::Arc;

use unfuse_format::Frame;

/// The hash in a generated class's source file name, `generated_HASH.java`.
pub fn generated_hash(file: &str) -> Option<&str> {
    file.strip_prefix("generated_")?.strip_suffix(".java")
}

/// Whether a Scala iterator calls the frame once for each row. The frame then belongs to the operator that made the
/// iterator, not to the one that reads from it.
pub(crate) fn is_mapped(frames: &[Arc<Frame>], index: usize) -> bool {
    let caller = index.checked_sub(1).and_then(|before| frames.get(before));
    caller.is_some_and(|caller| caller.class.starts_with("scala.collection.Iterator"))
}
