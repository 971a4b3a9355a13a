//! Parts of tables: rows within bounds, some columns, rows that are not known yet.

use std::sync::Mutex;

use unfuse_format::{Bounds, ProfileDir, SampleRow, SegmentWriter, StackId, StackRow, TableId};

/// Three segments with the samples of stages 0 to 2, 3 to 5 and, without a stage, of none.
fn profile() -> (tempfile::TempDir, ProfileDir) {
    let home = tempfile::tempdir().expect("a directory");
    let dir = ProfileDir::create(&home.path().join("profile")).expect("a profile");
    let mut samples = SegmentWriter::<SampleRow>::new(&dir, "host-1");
    for stages in [
        vec![Some(0), Some(1), Some(2)],
        vec![Some(3), Some(4), Some(5)],
        vec![None],
    ] {
        for stage in stages {
            samples.push(SampleRow {
                app: "app".to_owned(),
                stage,
                count: 1 << stage.unwrap_or(6),
                ..SampleRow::default()
            });
        }
        samples.flush().expect("written");
    }
    (home, dir)
}

#[test]
fn every_folder_is_copied_and_processes_last() {
    let folders = ProfileDir::folders_to_copy();
    assert_eq!(folders.len(), 1 + TableId::ALL.len());
    let position = |name: &str| folders.iter().position(|folder| *folder == name);
    assert_eq!(position("processes"), Some(folders.len() - 1));
    assert_eq!(position("samples"), Some(folders.len() - 2));
}

#[test]
fn rows_out_of_bounds_are_left_out() {
    let (_home, dir) = profile();
    let stages = |bounds: &Bounds| -> Vec<Option<i32>> {
        let rows = dir.read_within::<SampleRow>(bounds).expect("a table").rows;
        rows.into_iter().map(|row| row.stage).collect()
    };
    assert_eq!(stages(&Bounds::ALL).len(), 7);
    assert_eq!(
        stages(&Bounds::ALL.and("stage", 2..=4)),
        [Some(2), Some(3), Some(4)]
    );
    let both = Bounds::ALL.and("stage", 2..=4).and("stage", 4..=9);
    assert_eq!(stages(&both), [Some(4)]);
    assert_eq!(stages(&Bounds::ALL.and("no such column", 0..=9)), []);
}

/// Segments that hold no wanted row are not read: damage in their pages goes unnoticed.
#[test]
fn other_segments_are_not_read() {
    let (_home, dir) = profile();
    let first = &dir.segments::<SampleRow>().expect("segments")[0];
    let mut bytes = std::fs::read(first).expect("a segment");
    bytes[4..64].fill(0xff);
    std::fs::write(first, bytes).expect("written");
    let problems = |bounds: &Bounds| {
        dir.read_within::<SampleRow>(bounds)
            .expect("a table")
            .problems
            .len()
    };
    assert_eq!(problems(&Bounds::ALL), 1);
    assert_eq!(problems(&Bounds::ALL.and("stage", 3..=5)), 0);
}

#[test]
fn columns_are_summed_up_without_rows() {
    let (_home, dir) = profile();
    let read = dir.fold::<SampleRow, u64>(
        &["app", "count"],
        &Bounds::ALL.and("stage", 0..=5),
        || 0,
        |sum, columns| {
            for rows in columns {
                let (apps, counts) = (rows.texts("app")?, rows.u64s("count")?);
                // What was not asked for is not there.
                assert_eq!(rows.i32s("stage")?.get(0), None);
                for row in 0..rows.rows() {
                    assert_eq!(apps.get(row), "app");
                    *sum += counts.or_zero(row);
                }
            }
            Ok(())
        },
    );
    let read = read.expect("a table");
    assert!(read.problems.is_empty());
    assert_eq!(read.rows.iter().sum::<u64>(), 0b11_1111);
    let wrong = |_: &mut (), columns: &[unfuse_format::Columns]| {
        columns
            .iter()
            .try_for_each(|rows| rows.u64s("app").map(drop))
    };
    let read = dir.fold::<SampleRow, ()>(&["app"], &Bounds::ALL, || (), wrong);
    assert_eq!(read.expect("a table").problems.len(), 3);
}

#[test]
fn rows_that_are_known_are_not_read() {
    let (_home, dir) = profile();
    let mut stacks = SegmentWriter::<StackRow>::new(&dir, "host-1");
    for ids in [[1, 2], [2, 3], [1, 3]] {
        for stack in ids {
            stacks.push(StackRow {
                stack: StackId(stack),
                ..StackRow::default()
            });
        }
        stacks.flush().expect("written");
    }
    let read = Mutex::new(Vec::new());
    let take = |rows: Vec<StackRow>| {
        let mut read = read.lock().expect("not poisoned");
        read.extend(rows.into_iter().map(|row| row.stack.0));
    };
    let problems = dir.read_new("stack", |id| id != 3, take);
    assert_eq!(problems.expect("a table").len(), 0);
    let mut read = read.into_inner().expect("not poisoned");
    read.sort_unstable();
    assert_eq!(read, [1, 1, 2, 2]);
}
