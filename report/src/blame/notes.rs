//! What has to be said of the numbers.

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
