//! Headings for work that no plan node does: told by the frames, and outside tasks also by the thread.

use unfuse_format::Frame;

use crate::boundary::{self, Boundary};
use crate::profile::generated_hash;
use crate::rule::Rule;

/// The heading of what is not told.
pub(crate) const UNATTRIBUTED: &str = "unattributed";

/// By what the class of any frame contains; the first that fits counts.
const ANYWHERE: &[(&str, &[&str])] = &[
    (
        "task: deserialization",
        &[
            "ObjectInputStream",
            "JavaDeserializationStream",
            "KryoDeserializ",
        ],
    ),
    (
        SERIALIZATION,
        &[
            "ObjectOutputStream",
            "JavaSerializationStream",
            "KryoSerializ",
        ],
    ),
    (
        "task: compiling generated code",
        &[
            "codegen.CodeGenerator",
            "org.codehaus.janino",
            "codegen.JaninoCodeCompiler",
            "com.sun.tools.javac",
        ],
    ),
];

/// By how the class of a frame of Spark begins, for tasks that run no plan; the innermost counts.
const INNERMOST: &[(&str, &[&str])] = &[
    (
        "task: shuffle write",
        &[
            "org.apache.spark.shuffle.ShuffleWriteProcessor",
            "org.apache.spark.shuffle.sort.",
            "org.apache.spark.util.collection.ExternalSorter",
        ],
    ),
    (
        "task: shuffle read",
        &[
            "org.apache.spark.shuffle.BlockStoreShuffleReader",
            "org.apache.spark.storage.ShuffleBlockFetcherIterator",
            "org.apache.spark.util.collection.ExternalAppendOnlyMap",
        ],
    ),
    ("task: Python", &["org.apache.spark.api.python."]),
    (
        READING,
        &[
            "org.apache.spark.rdd.HadoopRDD",
            "org.apache.spark.rdd.NewHadoopRDD",
        ],
    ),
    (
        "task: storing blocks",
        &[
            "org.apache.spark.storage.memory.",
            "org.apache.spark.storage.BlockManager",
        ],
    ),
    ("task: broadcast", &["org.apache.spark.broadcast."]),
    (
        COLLECTED,
        &[
            "org.apache.spark.sql.execution.SparkPlan",
            "org.apache.spark.sql.execution.arrow.",
        ],
    ),
];

/// The same for classes that are on the stack of any task: what is found here may be the work of something that is not told.
const CATCH_ALL: &[(&str, &[&str])] = &[
    ("task: RDD", &["org.apache.spark.rdd."]),
    (
        OTHER,
        &["org.apache.spark.executor.", "org.apache.spark.scheduler."],
    ),
];

const SERIALIZATION: &str = "task: serialization";

const OTHER: &str = "task: other";

/// What a task does when its work is done: it serializes its result and collects its metrics. Spark counts this as no
/// CPU time of the task.
const REPORTING: &str = "task: reporting";

/// Reading a source outside plans.
const READING: &str = "task: reading input";

/// Rows packed for the driver, where it is not known what for.
const COLLECTED: &str = "task: collected rows";

/// Rows packed for the program that runs the query.
const RESULT: &str = "task: result rows";

/// Classes that are nobody's own code.
const LIBRARIES: &[&str] = &[
    "java.",
    "javax.",
    "jdk.",
    "sun.",
    "com.sun.",
    "scala.",
    "org.apache.",
    "io.netty.",
    "com.esotericsoftware.",
    "com.fasterxml.",
    "net.jpountz.",
    "com.github.luben.",
    "org.xerial.",
    "org.roaringbitmap.",
    "py4j.",
    "com.google.",
    "io.unfuse.",
];

/// Parts of Spark SQL's execution that also run outside operators, where rows are packed.
const SHARED: &[&str] = &[
    "org.apache.spark.sql.execution.metric.",
    "org.apache.spark.sql.execution.vectorized.",
    "org.apache.spark.sql.execution.SQLExecution",
    "org.apache.spark.sql.execution.UnsafeRowSerializer",
    "org.apache.spark.sql.execution.BufferedRowIterator",
    "org.apache.spark.sql.execution.WholeStageCodegen",
];

/// Threads outside tasks, by how their names begin.
const THREADS: &[(&str, &[&str])] = &[
    (
        "spark: scheduling",
        &[
            "dag-scheduler",
            "task-result-getter",
            "dispatcher-",
            "task-scheduler",
            "driver-revive",
            "task-starvation",
        ],
    ),
    (
        "spark: listeners",
        &[
            "spark-listener-group",
            "element-tracking-store",
            "SparkListenerBus",
        ],
    ),
    ("spark: broadcast build", &["broadcast-exchange"]),
    (
        "spark: network",
        &[
            "netty-",
            "shuffle-",
            "rpc-",
            "block-manager",
            "files-client",
            "map-output",
        ],
    ),
    (
        "spark: heartbeats and cleaning",
        &[
            "driver-heartbeater",
            "executor-heartbeater",
            "heartbeat-receiver",
            "Spark Context Cleaner",
            "context-cleaner",
        ],
    ),
    (
        "spark: web UI",
        &["SparkUI", "HistoryServerUI", "MasterUI", "WorkerUI"],
    ),
];

/// What the JVM itself does, as its own threads and native frames are named.
const JVM: &[(&str, &[&str])] = &[
    ("jvm: garbage collection", &["garbage collection"]),
    ("jvm: JIT compilation", &["JIT compilation"]),
    ("jvm: other", &["VM operations"]),
];

/// For samples whose code or callers the JVM had not described (yet).
const UNDESCRIBED: &str = "jvm: code not described";

/// What a sample's heading is told by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    /// Whether its thread ran a task.
    pub(crate) task: bool,
    /// Whether its stage has a plan, whose operators do what operators' classes do.
    pub(crate) planned: bool,
    /// Whether the rows that the task collects are known to be results.
    pub(crate) results: bool,
    /// Name of the thread.
    pub(crate) thread: &'a str,
}

/// The heading for a sample that belongs to no plan node, with the rule that found it.
pub(crate) fn of(place: Place<'_>, frames: &[Frame]) -> (&'static str, Rule) {
    if !place.task {
        return (outside_tasks(place.thread, frames), Rule::OutsideTasks);
    }
    match in_task(frames, place.planned) {
        (COLLECTED, rule) if place.results => (RESULT, rule),
        (OTHER | SERIALIZATION, _) if is_after_run(frames) => (REPORTING, Rule::Heading),
        found => found,
    }
}

/// Whether frames are of no operator's work, so that operators' classes further towards the leaf do not work as such:
/// they are deserialized, or their code is compiled.
pub(crate) fn is_beside_operators(frames: &[Frame]) -> bool {
    anywhere(frames).is_some()
}

/// Whether a task runs nothing of its stage any more: `TaskRunner.run` has left `Task.run`.
fn is_after_run(frames: &[Frame]) -> bool {
    let runs = |class: &str| {
        let is = move |frame: &Frame| frame.class == class && frame.method == "run";
        frames.iter().any(is)
    };
    runs("org.apache.spark.executor.Executor$TaskRunner")
        && !runs("org.apache.spark.scheduler.Task")
}

fn in_task(frames: &[Frame], planned: bool) -> (&'static str, Rule) {
    if let [only] = frames
        && only.kind == "wait"
    {
        return ("task: waiting", Rule::Heading);
    }
    if let Some(heading) = anywhere(frames) {
        return (heading, Rule::Heading);
    }
    // User code that Spark calls is nearer to the leaf than Spark is.
    for frame in frames.iter().rev().filter(|frame| !frame.class.is_empty()) {
        let class = frame.class.as_str();
        for (headings, rule) in [(INNERMOST, Rule::Heading), (CATCH_ALL, Rule::CatchAll)] {
            if let Some((heading, _)) = headings.iter().find(|(_, parts)| begins(class, parts)) {
                return (heading, rule);
            }
        }
        let reads = || {
            class.starts_with("org.apache.spark.sql.execution.datasources.")
                || matches!(boundary::of(class), Some(Boundary::Source(_)))
        };
        if !planned && reads() {
            // Files are also looked into before there is a plan.
            return (READING, Rule::Heading);
        }
        if is_operators(frame) {
            break;
        }
        if !begins(class, LIBRARIES) {
            return ("task: user code", Rule::Heading);
        }
    }
    (UNATTRIBUTED, Rule::Unattributed)
}

/// Whether a frame is the work of some operator, though it is not known of which: then its callers do not tell.
fn is_operators(frame: &Frame) -> bool {
    generated_hash(&frame.file).is_some()
        || (frame.class.starts_with("org.apache.spark.sql.execution.")
            && !begins(&frame.class, SHARED))
        || boundary::of(&frame.class).is_some()
}

fn anywhere(frames: &[Frame]) -> Option<&'static str> {
    let fits = |parts: &[&str]| {
        frames
            .iter()
            .any(|frame| parts.iter().any(|part| frame.class.contains(part)))
    };
    let found = ANYWHERE.iter().find(|(_, parts)| fits(parts));
    found.map(|(heading, _)| *heading)
}

fn outside_tasks(thread: &str, frames: &[Frame]) -> &'static str {
    if let [only] = frames
        && let Some((heading, _)) = JVM
            .iter()
            .find(|(_, work)| work.contains(&only.method.as_str()))
    {
        return heading;
    }
    if frames.iter().any(is_class_loading) {
        return "jvm: class loading";
    }
    if let Some((heading, _)) = THREADS.iter().find(|(_, names)| begins(thread, names)) {
        return heading;
    }
    let compiles = anywhere(frames) == Some("task: compiling generated code");
    let plans = |frame: &Frame| {
        frame.class.starts_with("org.apache.spark.sql.catalyst.")
            || frame.class.starts_with("org.apache.spark.sql.execution.")
    };
    if compiles {
        "spark: compiling generated code"
    } else if frames.iter().any(plans) {
        "spark: planning"
    } else if frames.iter().any(Frame::is_undescribed) {
        UNDESCRIBED
    } else {
        "outside tasks"
    }
}

fn is_class_loading(frame: &Frame) -> bool {
    matches!(frame.method.as_str(), "loadClass" | "defineClass")
        && frame.class.contains("ClassLoader")
}

fn begins(text: &str, parts: &[&str]) -> bool {
    parts.iter().any(|part| text.starts_with(part))
}

#[cfg(test)]
mod tests {
    use unfuse_format::NO_CALLERS;

    use super::*;

    fn stack(classes: &[&str]) -> Vec<Frame> {
        classes
            .iter()
            .map(|class| Frame {
                class: (*class).to_owned(),
                ..Frame::default()
            })
            .collect()
    }

    const TASK: Place<'_> = Place {
        task: true,
        planned: true,
        results: false,
        thread: "Executor task launch worker",
    };

    const RUNNER: &str = "org.apache.spark.executor.Executor$TaskRunner";

    #[test]
    fn work_beside_operators_has_headings() {
        let in_task = |classes: &[&str]| of(TASK, &stack(classes));
        assert_eq!(in_task(&[RUNNER]), ("task: other", Rule::CatchAll));
        assert_eq!(
            in_task(&[RUNNER, "java.io.ObjectInputStream"]),
            ("task: deserialization", Rule::Heading)
        );
        assert_eq!(
            in_task(&["java.lang.String"]),
            ("unattributed", Rule::Unattributed)
        );
    }

    #[test]
    fn what_follows_the_run_is_reporting() {
        let mut frames = stack(&[
            RUNNER,
            "org.apache.spark.scheduler.Task",
            "java.lang.Object",
        ]);
        for frame in &mut frames[..2] {
            frame.method = "run".to_owned();
        }
        assert_eq!(of(TASK, &frames).0, "task: other");
        frames[1].method = "collectAccumulatorUpdates".to_owned();
        assert_eq!(of(TASK, &frames), ("task: reporting", Rule::Heading));
        frames[2].class = "java.io.ObjectOutputStream".to_owned();
        assert_eq!(of(TASK, &frames).0, "task: reporting");
    }

    #[test]
    fn work_of_an_unknown_operator_has_no_heading() {
        let rdd = "org.apache.spark.rdd.MapPartitionsRDD";
        for class in [
            "org.apache.spark.sql.execution.FilterExec",
            "org.apache.spark.sql.execution.SomethingNew",
            "org.apache.spark.sql.execution.datasources.FileScanRDD",
        ] {
            let stack = stack(&[RUNNER, rdd, class, "java.lang.String"]);
            assert_eq!(of(TASK, &stack).0, "unattributed", "{class}");
        }
        let mut generated = stack(&[RUNNER, rdd, "GeneratedClass$GeneratedIterator"]);
        generated[2].file = "generated_0123.java".to_owned();
        assert_eq!(of(TASK, &generated).0, "unattributed");
    }

    #[test]
    fn files_are_read_without_a_plan_too() {
        let place = Place {
            planned: false,
            ..TASK
        };
        let footers = "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat$";
        let stack = stack(&[RUNNER, footers]);
        assert_eq!(of(place, &stack).0, "task: reading input");
        assert_eq!(of(TASK, &stack).0, "unattributed");
    }

    #[test]
    fn only_rows_for_the_program_are_results() {
        let packs = stack(&[RUNNER, "org.apache.spark.sql.execution.SparkPlan$$Lambda"]);
        assert_eq!(of(TASK, &packs).0, "task: collected rows");
        let place = Place {
            results: true,
            ..TASK
        };
        assert_eq!(of(place, &packs).0, "task: result rows");
    }

    #[test]
    fn a_job_without_sql_is_told_by_its_innermost_part() {
        let in_task = |classes: &[&str]| of(TASK, &stack(classes)).0;
        let sorter = "org.apache.spark.util.collection.ExternalSorter";
        let iterator = "scala.collection.Iterator$$anon$9";
        assert_eq!(in_task(&[RUNNER, sorter, iterator]), "task: shuffle write");
        assert_eq!(
            in_task(&[RUNNER, sorter, iterator, "my.Job$$Lambda/0x1"]),
            "task: user code"
        );
        let mine = ["my.Job", "java.util.HashMap"];
        assert_eq!(
            in_task(&[&[RUNNER, sorter], &mine[..]].concat()),
            "task: user code"
        );
        assert_eq!(
            in_task(&[RUNNER, "org.apache.spark.rdd.MapPartitionsRDD", iterator]),
            "task: RDD"
        );
    }

    #[test]
    fn outside_tasks_the_thread_and_the_jvm_tell() {
        let of = |thread: &str, frames: &[Frame]| {
            let place = Place {
                task: false,
                planned: false,
                results: false,
                thread,
            };
            super::of(place, frames).0
        };
        let compiler = Frame {
            method: "JIT compilation".to_owned(),
            ..Frame::default()
        };
        assert_eq!(of("C2 CompilerThre", &[compiler]), "jvm: JIT compilation");
        assert_eq!(of("dag-scheduler-event-loop", &[]), "spark: scheduling");
        let plans = stack(&["my.Main", "org.apache.spark.sql.catalyst.trees.TreeNode"]);
        assert_eq!(of("main", &plans), "spark: planning");
        assert_eq!(of("main", &stack(&["my.Main"])), "outside tasks");
        let mut cut = stack(&["", "my.Main"]);
        (cut[0].kind, cut[0].method) = ("unknown".to_owned(), NO_CALLERS.to_owned());
        assert_eq!(of("main", &cut), UNDESCRIBED);
    }
}
