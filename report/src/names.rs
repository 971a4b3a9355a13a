//! Names of frames, with one numbering for all queries.

use std::collections::{HashMap, HashSet};

use unfuse_format::{Frame, StackId};

use crate::model::FrameNames;
use unfuse_postprocess::{Profile, generated_hash, is_python, line_name, method_name};

/// The frames of every stack with samples, as numbers.
#[derive(Debug, Default)]
pub(super) struct Names {
    pub(super) table: FrameNames,
    stacks: HashMap<StackId, Vec<u32>, ahash::RandomState>,
}

impl Names {
    pub(super) fn new(profile: &Profile) -> Self {
        let mut names = Self::default();
        let mut known = Known::default();
        // Sorted, so that the same profile gives the same numbers.
        let ran = profile.groups.iter().map(|(group, _)| group.stack);
        let ran: HashSet<StackId, ahash::RandomState> = ran.collect();
        let stacks = profile.stacks.iter();
        let mut stacks: Vec<_> = stacks.filter(|(id, _)| ran.contains(id)).collect();
        stacks.sort_by_key(|(id, _)| **id);
        for (id, frames) in stacks {
            let numbers = frames
                .iter()
                .map(|frame| names.number(frame, &mut known))
                .collect();
            names.stacks.insert(*id, numbers);
        }
        names
    }

    /// The frames of a stack, root first.
    pub(super) fn stack(&self, id: StackId) -> &[u32] {
        self.stacks.get(&id).map_or(&[], Vec::as_slice)
    }

    fn number<'a>(&mut self, frame: &'a Frame, known: &mut Known<'a>) -> u32 {
        let generated = generated_hash(&frame.file).is_some();
        let python = is_python(frame);
        let line = if generated || python { frame.line } else { 0 };
        let kind = match generated {
            true => "generated",
            false => frame.kind.as_str(),
        };
        let of = if python { &frame.file } else { &frame.class };
        let key = (kind, of.as_str(), frame.method.as_str(), line);
        let next = self.table.names.len() as u32;
        *known.entry(key).or_insert_with(|| {
            self.table.names.push(match line {
                _ if python => line_name(frame),
                0 => method_name(frame),
                line => format!("{}:{line}", method_name(frame)),
            });
            let kinds = &mut self.table.kinds;
            let position = kinds.iter().position(|known| known == kind);
            self.table.kind.push(position.unwrap_or(kinds.len()) as u8);
            if position.is_none() {
                kinds.push(kind.to_owned());
            }
            next
        })
    }
}

/// Numbers of frames.
type Known<'a> = HashMap<FrameKey<'a>, u32, ahash::RandomState>;

/// Kind, class or Python file, method and, in generated code and Python, the line.
type FrameKey<'a> = (&'a str, &'a str, &'a str, u32);
