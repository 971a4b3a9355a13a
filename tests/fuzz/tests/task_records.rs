//! The files in which a task stores its records for the writer.

use bolero::check;
use unfuse_fuzz::{EditedCopies, TEST_TIME};
use unfuse_profiler::take_records;

#[test]
fn task_records() {
    check!().with_test_time(TEST_TIME).for_each(read);
}

#[test]
fn task_records_edited() {
    check!()
        .with_test_time(TEST_TIME)
        .with_generator(EditedCopies::corpus("task_records"))
        .for_each(|bytes| read(bytes));
}

/// Least bytes of an input (a time and an id), of an output (two ids and four numbers), and of a source of an output.
const INPUT: usize = 1 + 8;
const OUTPUT: usize = 8 + 8 + 4;
const SOURCE: usize = 3;

/// Checks that each record has bytes of its own, that an output has at most one row for each source that it or an earlier
/// output names, and that further bytes add rows and remove none.
fn read(bytes: &[u8]) {
    let taken = take_records(bytes);
    let rest = bytes
        .len()
        .checked_sub(taken.inputs * INPUT + taken.outputs * OUTPUT);
    let rest = rest.expect("each record has bytes of its own");
    let sources = rest / SOURCE;
    assert!(
        taken.output_rows <= taken.outputs * sources,
        "{taken:?} of {}",
        bytes.len()
    );
    let part = take_records(&bytes[..bytes.len() / 2]);
    assert!(part.inputs <= taken.inputs, "{part:?}, then {taken:?}");
    assert!(
        part.outputs <= taken.outputs && part.output_rows <= taken.output_rows,
        "{part:?}, then {taken:?}"
    );
}
