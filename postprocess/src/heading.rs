//! Headings for work of no plan node, by the frames and, outside tasks, by the thread: the rules in
//! `rules/headings.toml`, and those that look at several frames.

use std::sync::{Arc, LazyLock};

use serde::Deserialize;
use unfuse_format::{Frame, FrameKind};

use crate::boundary::{self, Boundary};
use crate::generated::generated_hash;
use crate::landmarks::Landmarks;
use crate::rule::Rule;
use crate::rules::{ClassRule, begins, load};

/// The heading of work whose operator is unknown.
pub(crate) const UNATTRIBUTED: &str = "unattributed";

/// The rules; `rules/headings.toml` explains each kind.
#[derive(Deserialize)]
struct HeadingRules {
    anywhere: Vec<Group<ClassRule>>,
    innermost: Vec<Group<ClassRule>>,
    catch_all: Vec<Group<ClassRule>>,
    thread: Vec<Group<ThreadRule>>,
    jvm: Vec<JvmRule>,
    task: TaskMethods,
    class_loading: ClassLoading,
    reading: Classes,
    planning: Classes,
    operators: Classes,
    shared: Classes,
    libraries: Classes,
}

/// Rules with one heading.
#[derive(Deserialize)]
struct Group<R> {
    heading: String,
    rules: Vec<R>,
}

/// A rule for threads by the prefix of their names.
#[derive(Deserialize)]
#[cfg_attr(test, serde(deny_unknown_fields))]
struct ThreadRule {
    name: String,
    #[cfg(test)]
    example: String,
}

/// A rule for the JVM's own threads, by the frame that the writer adds.
#[derive(Deserialize)]
struct JvmRule {
    heading: String,
    work: String,
}

/// The methods that run a task, and in it the task's stage.
#[derive(Deserialize)]
struct TaskMethods {
    runner: Method,
    stage: Method,
}

#[derive(Deserialize)]
struct Method {
    class: String,
    method: String,
}

impl Method {
    fn is_in(&self, frames: &[Arc<Frame>]) -> bool {
        let is = |frame: &Arc<Frame>| frame.class == self.class && frame.method == self.method;
        frames.iter().any(is)
    }
}

/// How class loaders are recognized.
#[derive(Deserialize)]
struct ClassLoading {
    class: String,
    methods: Vec<String>,
}

/// Prefixes of class names.
#[derive(Deserialize)]
struct Classes {
    classes: Vec<String>,
}

impl Classes {
    fn have(&self, class: &str) -> bool {
        self.classes.iter().any(|begin| class.starts_with(begin))
    }
}

static RULES: LazyLock<HeadingRules> =
    LazyLock::new(|| load(include_str!("../rules/headings.toml")));

/// The heading of the first group with a rule that applies.
fn first<R>(groups: &'static [Group<R>], applies: impl Fn(&R) -> bool) -> Option<&'static str> {
    let mut groups = groups.iter();
    groups
        .find(|group| group.rules.iter().any(&applies))
        .map(|group| group.heading.as_str())
}

const SERIALIZATION: &str = "task: serialization";

const OTHER: &str = "task: other";

/// After its work a task serializes its result and collects its metrics. Spark does not count this CPU time for the
/// task.
const REPORTING: &str = "task: reporting";

/// Reading a source outside plans.
const READING: &str = "task: reading input";

/// Rows packed for the driver, for an unknown purpose.
const COLLECTED: &str = "task: collected rows";

/// Rows packed for the program that runs the query.
const RESULT: &str = "task: result rows";

/// Samples whose code or callers the JVM had not described (yet).
const UNDESCRIBED: &str = "jvm: code not described";

/// What decides a sample's heading, besides its frames.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    /// Whether its thread ran a task.
    pub(crate) task: bool,
    /// Whether its stage has a plan, which accounts for the work of operators' classes.
    pub(crate) planned: bool,
    /// Whether the rows that the task collects are known to be results.
    pub(crate) results: bool,
    /// Name of the thread.
    pub(crate) thread: &'a str,
}

/// The heading for a sample that belongs to no plan node, with the rule that found it.
pub(crate) fn classify(
    place: Place<'_>,
    frames: &[Arc<Frame>],
    landmarks: &Landmarks,
) -> (&'static str, Rule) {
    if !place.task {
        return (outside_tasks(place.thread, frames), Rule::OutsideTasks);
    }
    match landmarks.heading(frames, place.planned) {
        (COLLECTED, rule) if place.results => (RESULT, rule),
        found => found,
    }
}

/// Whether the frames are not an operator's work: operators' classes further towards the leaf are being deserialized or
/// compiled.
pub(crate) fn is_beside_operators(frames: &[Arc<Frame>]) -> bool {
    anywhere(frames).is_some()
}

/// Whether the task has finished running its stage: `TaskRunner.run` has left `Task.run`.
fn is_after_run(frames: &[Arc<Frame>]) -> bool {
    RULES.task.runner.is_in(frames) && !RULES.task.stage.is_in(frames)
}

/// The heading in a task, whatever the task collects.
pub(crate) fn in_task(frames: &[Arc<Frame>], planned: bool) -> (&'static str, Rule) {
    match innermost(frames, planned) {
        (OTHER | SERIALIZATION, _) if is_after_run(frames) => (REPORTING, Rule::Heading),
        found => found,
    }
}

fn innermost(frames: &[Arc<Frame>], planned: bool) -> (&'static str, Rule) {
    if let [only] = frames
        && only.kind == FrameKind::Wait
    {
        return ("task: waiting", Rule::Heading);
    }
    if let Some(heading) = anywhere(frames) {
        return (heading, Rule::Heading);
    }
    // User code that Spark calls is nearer to the leaf than Spark is.
    for frame in frames.iter().rev().filter(|frame| !frame.class.is_empty()) {
        let class = frame.class.as_str();
        for (groups, rule) in [
            (&RULES.innermost, Rule::Heading),
            (&RULES.catch_all, Rule::CatchAll),
        ] {
            if let Some(heading) = first(groups, |rule| begins(frame, &rule.class)) {
                return (heading, rule);
            }
        }
        let reads = || {
            RULES.reading.have(class) || matches!(boundary::find(frame), Some(Boundary::Source(_)))
        };
        if !planned && reads() {
            // Files are also read before there is a plan.
            return (READING, Rule::Heading);
        }
        if is_operators(frame) {
            break;
        }
        if !RULES.libraries.have(class) {
            return ("task: user code", Rule::Heading);
        }
    }
    (UNATTRIBUTED, Rule::Unattributed)
}

/// Whether a frame is the work of an unknown operator: its callers then have no effect.
fn is_operators(frame: &Frame) -> bool {
    generated_hash(&frame.file).is_some()
        || (RULES.operators.have(&frame.class) && !RULES.shared.have(&frame.class))
        || boundary::find(frame).is_some()
}

fn anywhere(frames: &[Arc<Frame>]) -> Option<&'static str> {
    first(&RULES.anywhere, |rule| {
        let mut frames = frames.iter();
        frames.any(|frame| frame.class.contains(&rule.class))
    })
}

fn outside_tasks(thread: &str, frames: &[Arc<Frame>]) -> &'static str {
    if let [only] = frames
        && let Some(rule) = RULES.jvm.iter().find(|rule| rule.work == only.method)
    {
        return &rule.heading;
    }
    if frames.iter().any(|frame| is_class_loading(frame)) {
        return "jvm: class loading";
    }
    if let Some(heading) = first(&RULES.thread, |rule| thread.starts_with(&rule.name)) {
        return heading;
    }
    let compiles = anywhere(frames) == Some("task: compiling generated code");
    if compiles {
        "spark: compiling generated code"
    } else if frames.iter().any(|frame| RULES.planning.have(&frame.class)) {
        "spark: planning"
    } else if frames.iter().any(|frame| frame.is_undescribed()) {
        UNDESCRIBED
    } else {
        "outside tasks"
    }
}

fn is_class_loading(frame: &Frame) -> bool {
    let ClassLoading { class, methods } = &RULES.class_loading;
    methods.contains(&frame.method) && frame.class.contains(class)
}

#[cfg(test)]
mod tests {
    use unfuse_format::NO_CALLERS;

    use super::*;
    use crate::rules::frame;

    fn classify(place: Place<'_>, frames: &[Arc<Frame>]) -> (&'static str, Rule) {
        super::classify(place, frames, &Landmarks::default())
    }

    fn stack(classes: &[&str]) -> Vec<Arc<Frame>> {
        classes
            .iter()
            .map(|class| {
                Arc::new(Frame {
                    class: (*class).to_owned(),
                    ..Frame::default()
                })
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
    fn examples_find_their_rules() {
        let without_plan = Place {
            planned: false,
            ..TASK
        };
        let heading = |text: &str| classify(without_plan, &[frame(text)]).0;
        for group in &RULES.anywhere {
            for rule in &group.rules {
                assert_eq!(heading(&rule.example), group.heading, "{}", rule.class);
            }
        }
        for group in RULES.innermost.iter().chain(&RULES.catch_all) {
            for rule in &group.rules {
                let example = format!("{}{}", rule.class, rule.example);
                assert_eq!(heading(&example), group.heading, "{example}");
            }
        }
        for group in &RULES.thread {
            for rule in &group.rules {
                let thread = format!("{}{}", rule.name, rule.example);
                assert_eq!(outside_tasks(&thread, &[]), group.heading, "{thread}");
            }
        }
        for rule in &RULES.jvm {
            assert_eq!(outside_tasks("", &[frame(&rule.work)]), rule.heading);
        }
    }

    #[test]
    fn work_beside_operators_has_headings() {
        let in_task = |classes: &[&str]| classify(TASK, &stack(classes));
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
            Arc::make_mut(frame).method = "run".to_owned();
        }
        assert_eq!(classify(TASK, &frames).0, "task: other");
        Arc::make_mut(&mut frames[1]).method = "collectAccumulatorUpdates".to_owned();
        assert_eq!(classify(TASK, &frames), ("task: reporting", Rule::Heading));
        Arc::make_mut(&mut frames[2]).class = "java.io.ObjectOutputStream".to_owned();
        assert_eq!(classify(TASK, &frames).0, "task: reporting");
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
            assert_eq!(classify(TASK, &stack).0, "unattributed", "{class}");
        }
        let mut generated = stack(&[RUNNER, rdd, "GeneratedClass$GeneratedIterator"]);
        Arc::make_mut(&mut generated[2]).file = "generated_0123.java".to_owned();
        assert_eq!(classify(TASK, &generated).0, "unattributed");
    }

    #[test]
    fn files_are_read_without_a_plan_too() {
        let place = Place {
            planned: false,
            ..TASK
        };
        let footers = "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat$";
        let stack = stack(&[RUNNER, footers]);
        assert_eq!(classify(place, &stack).0, "task: reading input");
        assert_eq!(classify(TASK, &stack).0, "unattributed");
    }

    #[test]
    fn only_rows_for_the_program_are_results() {
        let packs = stack(&[RUNNER, "org.apache.spark.sql.execution.SparkPlan$$Lambda"]);
        assert_eq!(classify(TASK, &packs).0, "task: collected rows");
        let place = Place {
            results: true,
            ..TASK
        };
        assert_eq!(classify(place, &packs).0, "task: result rows");
    }

    #[test]
    fn a_job_without_sql_is_told_by_its_innermost_part() {
        let in_task = |classes: &[&str]| classify(TASK, &stack(classes)).0;
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
        let of = |thread: &str, frames: &[Arc<Frame>]| {
            let place = Place {
                task: false,
                planned: false,
                results: false,
                thread,
            };
            classify(place, frames).0
        };
        let compiler = Frame {
            method: "JIT compilation".to_owned(),
            ..Frame::default()
        };
        assert_eq!(
            of("C2 CompilerThre", &[Arc::new(compiler)]),
            "jvm: JIT compilation"
        );
        assert_eq!(of("dag-scheduler-event-loop", &[]), "spark: scheduling");
        let plans = stack(&["my.Main", "org.apache.spark.sql.catalyst.trees.TreeNode"]);
        assert_eq!(of("main", &plans), "spark: planning");
        assert_eq!(of("main", &stack(&["my.Main"])), "outside tasks");
        let mut cut = stack(&["", "my.Main"]);
        let root = Arc::make_mut(&mut cut[0]);
        (root.kind, root.method) = (FrameKind::Unknown, NO_CALLERS.to_owned());
        assert_eq!(of("main", &cut), UNDESCRIBED);
    }
}
