//! What has to be said of the numbers.

use std::collections::HashMap;

use unfuse_contention::{CapacityBasis, Graph, Input, Note, Resource, Workload};

/// What has to be said of the numbers.
pub fn notes(workload: &Workload, graph: &Graph, input: &Input) -> Vec<String> {
    let capacities = graph.notes.iter();
    let capacities = capacities.filter_map(|note| capacity_note(workload, note));
    input.notes.iter().cloned().chain(capacities).collect()
}

/// What is said of a capacity that is not known, or cannot be right.
fn capacity_note(workload: &Workload, note: &Note) -> Option<String> {
    let what = note.resource.name();
    let host = workload.host_name(note.host);
    match note.basis {
        // Disks never say theirs, and slots are counted.
        CapacityBasis::Unknown if matches!(note.resource, Resource::Io | Resource::Slots) => None,
        CapacityBasis::Unknown => Some(format!(
            "what {what} of {host} can do is not known; what was used counts as its capacity"
        )),
        CapacityBasis::Exceeded => {
            let times =
                note.highest / workload.capacity(note.host, note.executor, note.resource)?;
            // Counters are not read at one moment; so little shifts no blame.
            (times > 1.005).then(|| format!(
                "in {} more {what} of {host} was used than its capacity, up to {} times as much; there what was used counts as \
                 the capacity",
                match note.windows {
                    1 => "1 window".to_owned(),
                    windows => format!("{windows} windows"),
                },
                match times {
                    ..10.0 => format!("{times:.2}"),
                    _ => format!("{times:.0}"),
                }
            ))
        }
        CapacityBasis::Nominal => None,
    }
}

/// Notes on parts of a profile. Those that differ in numbers only are one.
#[derive(Default)]
pub(super) struct Notes {
    texts: Vec<String>,
    /// By the text without numbers: its position, and how often it came with other numbers.
    known: HashMap<String, (usize, usize)>,
}

impl Notes {
    /// Adds the notes on a part.
    pub(super) fn add(&mut self, notes: Vec<String>) {
        for note in notes {
            let pattern = note.replace(|c: char| c.is_ascii_digit(), "");
            match self.known.get_mut(&pattern) {
                Some((at, others)) => *others += usize::from(self.texts[*at] != note),
                None => {
                    self.known.insert(pattern, (self.texts.len(), 0));
                    self.texts.push(note);
                }
            }
        }
    }

    /// One text for each.
    pub(super) fn texts(mut self) -> Vec<String> {
        for (at, others) in self.known.into_values().filter(|(_, others)| *others > 0) {
            let text = &mut self.texts[at];
            *text += &format!(" ({others} more like this, with other numbers)");
        }
        self.texts
    }
}
