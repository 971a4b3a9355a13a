//! Notes on the limits of the numbers.

use std::collections::{BTreeSet, HashMap};

use unfuse_contention::{Blame, CapacityBasis, Input, Note, Resource, Workload};

/// Notes on the limits of the numbers.
pub fn notes(workload: &Workload, blame: &Blame, input: &Input) -> Vec<String> {
    let capacities = blame.notes.iter();
    let capacities = capacities.filter_map(|note| capacity_note(workload, note));
    input.notes.iter().cloned().chain(capacities).collect()
}

/// The note on a capacity that is unknown or cannot be right.
fn capacity_note(workload: &Workload, note: &Note) -> Option<String> {
    let what = note.resource.name();
    let host = workload.host_name(note.host);
    match note.basis {
        // The capacity of a disk is never known, and slots are counted.
        CapacityBasis::Unknown if matches!(note.resource, Resource::Io | Resource::Slots) => None,
        CapacityBasis::Unknown => Some(format!(
            "the {what} capacity of {host} is unknown; the use counts as the capacity"
        )),
        CapacityBasis::Exceeded => {
            let times =
                note.highest / workload.capacity(note.host, note.executor, note.resource)?;
            // Counters are not read at the same moment; such a small excess changes no blame.
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

/// Notes on parts of a profile. Of notes that differ only in numbers, the first is kept.
#[derive(Default)]
pub(super) struct Notes {
    texts: Vec<String>,
    /// Position by the text without its numbers.
    known: HashMap<String, usize>,
    /// Positions of texts that occurred with other numbers, too.
    several: BTreeSet<usize>,
}

impl Notes {
    /// Adds the notes on a part of the profile.
    pub(super) fn add(&mut self, notes: Vec<String>) {
        for note in notes {
            let pattern = note.replace(|c: char| c.is_ascii_digit(), "");
            let next = self.texts.len();
            let index = *self.known.entry(pattern).or_insert(next);
            if index == next {
                self.texts.push(note);
            } else if self.texts[index] != note {
                self.several.insert(index);
            }
        }
    }

    /// One text for each note.
    pub(super) fn texts(mut self) -> Vec<String> {
        for index in self.several {
            self.texts[index] += " (and more like this, with other numbers)";
        }
        self.texts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_that_differ_in_numbers_are_one() {
        let mut notes = Notes::default();
        let of = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        notes.add(of(&["1 s of 2 s", "no waits"]));
        notes.add(of(&["3 s of 4 s", "no waits"]));
        let texts = notes.texts();
        assert_eq!(
            texts,
            [
                "1 s of 2 s (and more like this, with other numbers)",
                "no waits"
            ]
        );
    }
}
