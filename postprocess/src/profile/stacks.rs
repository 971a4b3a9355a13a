//! The stacks of a profile. Several processes write the same stacks; each stack and each frame is kept once.

use std::collections::HashSet;
use std::sync::{Arc, PoisonError, RwLock};

use unfuse_format::{FormatError, Frame, Problem, ProfileDir, StackId, StackRow};

use super::StackMap;

/// Stacks by id, frames root first.
pub(super) type Stacks = StackMap<Vec<Arc<Frame>>>;

/// Reads the stacks. Segments that cannot be read are added to `problems`.
pub(super) fn read(dir: &ProfileDir, problems: &mut Vec<Problem>) -> Result<Stacks, FormatError> {
    let known = RwLock::new(StackTable::default());
    let is_new = |id| {
        let known = known.read().unwrap_or_else(PoisonError::into_inner);
        !known.stacks.contains_key(&StackId(id))
    };
    let take = |rows: Vec<StackRow>| {
        let mut known = known.write().unwrap_or_else(PoisonError::into_inner);
        rows.into_iter().for_each(|row| known.add(row));
    };
    problems.extend(dir.read_new("stack", is_new, take)?);
    let known = known.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(known.stacks)
}

#[derive(Default)]
struct StackTable {
    stacks: Stacks,
    frames: HashSet<Arc<Frame>, ahash::RandomState>,
}

impl StackTable {
    fn add(&mut self, row: StackRow) {
        if self.stacks.contains_key(&row.stack) {
            return;
        }
        let frames = row.frames.into_iter().map(|frame| self.frame(frame));
        let frames: Vec<Arc<Frame>> = frames.collect();
        self.stacks.insert(row.stack, frames);
    }

    fn frame(&mut self, frame: Arc<Frame>) -> Arc<Frame> {
        if let Some(known) = self.frames.get(&frame) {
            return Arc::clone(known);
        }
        self.frames.insert(Arc::clone(&frame));
        frame
    }
}
