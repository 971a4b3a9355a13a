//! What attribution looks at in a stack, found once for all executions and tasks that have the stack.

use std::sync::{Arc, OnceLock};

use unfuse_format::Frame;

use crate::boundary::{self, Boundary};
use crate::generated::{generated_hash, is_mapped};
use crate::heading;
use crate::rule::Rule;

/// A frame where an operator may begin: its index from the root, and its boundary unless it is generated code.
pub(crate) type Landmark = (usize, Option<&'static Boundary>);

/// What matters in a stack.
#[derive(Debug, Default)]
pub(crate) struct Landmarks {
    /// Frames where an operator may begin, in order.
    pub(crate) frames: Vec<Landmark>,
    /// The heading in tasks without a plan and with one, see [`heading::in_task`].
    headings: [OnceLock<(&'static str, Rule)>; 2],
}

impl Landmarks {
    /// Those of a stack.
    pub(crate) fn new(frames: &[Arc<Frame>]) -> Self {
        let landmark = |(index, frame): (usize, &Arc<Frame>)| match generated_hash(&frame.file) {
            Some(_) => Some((index, None)),
            None => {
                let boundary = boundary::find(frame)?;
                let counts = *boundary != Boundary::Mapped || is_mapped(frames, index);
                counts.then_some((index, Some(boundary)))
            }
        };
        let found: Vec<Landmark> = frames.iter().enumerate().filter_map(landmark).collect();
        let frames = match found.first() {
            Some((first, _)) if heading::is_beside_operators(&frames[..*first]) => Vec::new(),
            _ => found,
        };
        Self {
            frames,
            ..Self::default()
        }
    }

    /// The heading in a task, for the frames of the same stack.
    pub(crate) fn heading(&self, frames: &[Arc<Frame>], planned: bool) -> (&'static str, Rule) {
        *self.headings[usize::from(planned)].get_or_init(|| heading::in_task(frames, planned))
    }
}
