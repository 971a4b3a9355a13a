//! Stacks that hold calls of certain methods.

use std::sync::Arc;

use unfuse_format::Frame;

/// Methods that write what does not fit into memory to disk, and read it back.
const SPILLS: [&str; 7] = [
    "org.apache.spark.util.collection.unsafe.sort.UnsafeExternalSorter.spill",
    "org.apache.spark.util.collection.unsafe.sort.UnsafeSorterSpill",
    "org.apache.spark.util.collection.ExternalSorter.spill",
    "org.apache.spark.util.collection.ExternalSorter$SpillReader",
    "org.apache.spark.util.collection.ExternalAppendOnlyMap.spill",
    "org.apache.spark.shuffle.sort.ShuffleExternalSorter.spill",
    "org.apache.spark.unsafe.map.BytesToBytesMap$MapIterator.spill",
];
/// The package of the classes among these.
const COLLECTIONS: &str = "org.apache.spark.util.collection.";
/// Sorting, which is needed without a spill too.
const SORTS: [&str; 2] = [
    "org.apache.spark.util.collection.unsafe.sort.UnsafeInMemorySorter",
    "org.apache.spark.shuffle.sort.ShuffleInMemorySorter",
];

/// Whether the name of a method, with its class, begins with one of these.
pub(crate) fn has_call(frames: &[Arc<Frame>], names: &[impl AsRef<str>]) -> bool {
    frames.iter().any(|frame| {
        let method = || frame.class.bytes().chain(*b".").chain(frame.method.bytes());
        let mut names = names.iter().map(AsRef::as_ref);
        names.any(|name| method().take(name.len()).eq(name.bytes()))
    })
}

/// Whether a stack spills to disk, or reads back what was spilled.
pub(crate) fn is_spill(frames: &[Arc<Frame>]) -> bool {
    // Few frames are of such classes or methods, and the names of all frames would take long to compare.
    let may_spill =
        |frame: &&Arc<Frame>| frame.method == "spill" || frame.class.starts_with(COLLECTIONS);
    let mut frames_of_spills = frames.iter().filter(may_spill);
    frames_of_spills.any(|frame| has_call(std::slice::from_ref(frame), &SPILLS))
        && !has_call(frames, &SORTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(methods: &[&str]) -> Vec<Arc<Frame>> {
        let frame = |name: &&str| {
            let (class, method) = name.rsplit_once('.').expect("a class");
            Arc::new(Frame {
                class: class.to_owned(),
                method: method.to_owned(),
                ..Frame::default()
            })
        };
        methods.iter().map(frame).collect()
    }

    #[test]
    fn writing_what_was_sorted_is_a_spill_and_sorting_it_is_none() {
        const SORTER: &str = "org.apache.spark.util.collection.unsafe.sort.UnsafeExternalSorter";
        const MEMORY: &str = "org.apache.spark.util.collection.unsafe.sort.UnsafeInMemorySorter";
        let spill = format!("{SORTER}.spill");
        let write = "org.apache.spark.util.collection.unsafe.sort.UnsafeSorterSpillWriter.write";
        let insert = format!("{SORTER}.insertRecord");
        let sort = format!("{MEMORY}.getSortedIterator");
        assert!(is_spill(&stack(&[&insert, &spill, write])));
        assert!(!is_spill(&stack(&[&insert, &spill, &sort])));
        assert!(!is_spill(&stack(&[&insert])));
    }
}
