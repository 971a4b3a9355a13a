//! Records that were followed through a run (`records=on`).

use crate::{RecordIdentity, RecordSourceKind, TaskKey};

table! {
    /// A partition of a source, a shuffle or a cached RDD that a task read, in a run with `records=on`; successful task attempts only.
    pub struct RecordSourceRow in RecordSources {
        /// Spark application id.
        pub app: String,
        /// Stage id.
        pub stage: i32,
        /// Stage attempt number.
        pub attempt: i32,
        /// Task attempt id.
        pub task: i64,
        /// Index of the task's partition in its stage.
        pub partition: i32,
        /// The task attempt as one number, unique in the profile; the other tables of records refer to it.
        pub task_key was tap: TaskKey,
        /// Number among the sources of the task.
        pub source: i32,
        /// `file`, `other` (made in place, a database …), `shuffle` or `cached`.
        pub kind: RecordSourceKind,
        /// What identifies its records: `key`, `whole` (the whole record) or `position`.
        pub by: RecordIdentity,
        /// The outputs that its records were written to, see `link` in `record_targets`.
        pub links: Vec<String>,
        /// RDD id.
        pub rdd: i32,
        /// How Spark prints the RDD.
        pub name: String,
        /// Partition of that RDD.
        pub source_partition: i32,
        /// Records read.
        pub count: i64,
        /// Time spent reading, including the merging of values, ns; of a shuffle, the shuffle latency of the partition.
        pub read_ns: i64,
        /// False if another thread read it for a Python process: the times of its records are unknown.
        pub timed: bool,
        /// Whether the ids of its records are the offsets of lines in a text file, bytes; null in profiles from before 2026-11-22.
        pub lines: Option<bool>,
        /// The output of the task that its records go into; -1 for the last one.
        pub output: i32,
        /// Files, in the order in which they were read.
        pub files: Vec<String>,
        /// Offset of the part of each file that was read, bytes.
        pub file_starts: Vec<i64>,
        /// Position of the first record of each file.
        pub file_positions: Vec<i64>,
    }
}

table! {
    /// An output of a task, in a run with `records=on`.
    pub struct RecordTargetRow in RecordTargets {
        /// Spark application id.
        pub app: String,
        /// Stage id.
        pub stage: i32,
        /// Stage attempt number.
        pub attempt: i32,
        /// Task attempt id.
        pub task: i64,
        /// Index of the task's partition in its stage.
        pub partition: i32,
        /// The task attempt, as in `record_sources`.
        pub task_key was tap: TaskKey,
        /// Number among the outputs of the task.
        pub output: i32,
        /// `result`, `shuffle ID` or `cache RDD`.
        pub link: String,
        /// Whether values of a key are merged before they are written.
        pub combined: bool,
        /// Records written.
        pub count: i64,
        /// Time spent writing that belongs to no single record, ns.
        pub write_ns: i64,
        /// Time of the task that belongs to no record and was not spent reading, ns; the same in all rows of a task.
        pub unowned_ns: i64,
    }
}

numbers! {
    /// A record that a task read.
    pub struct RecordInRow in RecordsIn {
        /// The task attempt, as in `record_sources`.
        pub task_key was tap: TaskKey,
        /// The source.
        pub source: i32,
        /// Position in the source, from 0.
        pub position: i64,
        /// Its identity in 64 bits (see `by` in `record_sources`); in text files the offset of its line; 0 if unknown.
        pub id: i64,
        /// Time that the task's code spent on it, ns.
        pub ns: i64,
    }
}

numbers! {
    /// A record that a task wrote, once for each source that it came from.
    pub struct RecordOutRow in RecordsOut {
        /// The task attempt, as in `record_sources`.
        pub task_key was tap: TaskKey,
        /// The output.
        pub output: i32,
        /// Position in the output, from 0.
        pub position: i64,
        /// Hash of its key; 0 if it has none.
        pub key: i64,
        /// Hash of the whole record; 0 if that does not identify it.
        pub whole: i64,
        /// Time between the consumption of the record before it and of this one, ns.
        pub ns: i64,
        /// Time not attributable to any input record, if this output shares its inputs with the previous one (they were sorted,
        /// aggregated or joined before), ns.
        pub alone_ns: i64,
        /// The source.
        pub source: i32,
        /// Position of the first input record.
        pub first: i64,
        /// Number of input records.
        pub count: i64,
    }
}

table! {
    /// One of the slowest records of a source or an output of a task.
    pub struct RecordTextRow in RecordTexts {
        /// The task attempt, as in `record_sources`.
        pub task_key was tap: TaskKey,
        /// The source; -1 for a record of an output.
        pub source: i32,
        /// The output; -1 for a record of a source.
        pub output: i32,
        /// Position in the source or the output.
        pub position: i64,
        /// Its time, ns.
        pub ns: i64,
        /// When it was read, ns since the epoch.
        pub began_ns: i64,
        /// When its processing ended, ns since the epoch.
        pub ended_ns: i64,
        /// Its content, or the beginning of it; null if contents are not kept.
        pub text: Option<String>,
        /// Whether `text` is only the beginning.
        pub cut: bool,
    }
}
