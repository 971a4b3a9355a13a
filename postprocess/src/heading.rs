//! Headings for work that no plan node does: told by the frames, and outside tasks also by the thread.

use unfuse_format::Frame;

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
        "task: serialization",
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
        "task: reading input",
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
    // Packed for the driver or for a broadcast.
    (
        "task: result rows",
        &["org.apache.spark.sql.execution.SparkPlan"],
    ),
    ("task: RDD", &["org.apache.spark.rdd."]),
    (
        "task: other",
        &["org.apache.spark.executor.", "org.apache.spark.scheduler."],
    ),
];

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

/// The heading for a sample that belongs to no plan node. `task` tells whether its thread ran a task.
pub(crate) fn of(task: bool, thread: &str, frames: &[Frame]) -> &'static str {
    if task {
        in_task(frames)
    } else {
        outside_tasks(thread, frames)
    }
}

fn in_task(frames: &[Frame]) -> &'static str {
    if let [only] = frames
        && only.kind == "wait"
    {
        return "task: waiting";
    }
    if let Some(heading) = anywhere(frames) {
        return heading;
    }
    // User code that Spark calls is nearer to the leaf than Spark is.
    for frame in frames.iter().rev().filter(|frame| !frame.class.is_empty()) {
        let found = INNERMOST
            .iter()
            .find(|(_, parts)| begins(&frame.class, parts));
        if let Some((heading, _)) = found {
            return heading;
        }
        if !begins(&frame.class, LIBRARIES) {
            return "task: user code";
        }
    }
    "unattributed"
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

    const RUNNER: &str = "org.apache.spark.executor.Executor$TaskRunner";

    #[test]
    fn work_beside_operators_has_headings() {
        let in_task = |classes: &[&str]| of(true, "Executor task launch worker", &stack(classes));
        assert_eq!(in_task(&[RUNNER]), "task: other");
        assert_eq!(
            in_task(&[RUNNER, "java.io.ObjectInputStream"]),
            "task: deserialization"
        );
        let packs = "org.apache.spark.sql.execution.SparkPlan$$Lambda";
        assert_eq!(in_task(&[RUNNER, packs]), "task: result rows");
        assert_eq!(in_task(&["java.lang.String"]), "unattributed");
    }

    #[test]
    fn a_job_without_sql_is_told_by_its_innermost_part() {
        let in_task = |classes: &[&str]| of(true, "", &stack(classes));
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
        let compiler = Frame {
            method: "JIT compilation".to_owned(),
            ..Frame::default()
        };
        assert_eq!(
            of(false, "C2 CompilerThre", &[compiler]),
            "jvm: JIT compilation"
        );
        assert_eq!(
            of(false, "dag-scheduler-event-loop", &[]),
            "spark: scheduling"
        );
        let plans = stack(&["my.Main", "org.apache.spark.sql.catalyst.trees.TreeNode"]);
        assert_eq!(of(false, "main", &plans), "spark: planning");
        assert_eq!(of(false, "main", &stack(&["my.Main"])), "outside tasks");
    }
}
