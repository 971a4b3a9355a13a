//! Why a thread waits, by its stack when it left the CPU: the rules in `rules/waits.toml`.

use std::cmp::Reverse;
use std::sync::{Arc, LazyLock};

use serde::Deserialize;
use unfuse_format::{Frame, FrameKind};

use crate::rules::load;

macro_rules! wait_reasons {
    ($($(#[doc = $doc:literal])* $reason:ident $name:literal,)+) => {
        /// The reason of a wait.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
        pub enum WaitReason {
            $($(#[doc = $doc])* #[serde(rename = $name)] $reason,)+
        }

        impl WaitReason {
            /// The words after "waiting for".
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$reason => $name,)+
                }
            }

            /// The reason with this name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$reason),)+
                    _ => None,
                }
            }
        }
    };
}

wait_reasons! {
    /// A CPU.
    RunQueue "run queue",
    /// A file is opened or read.
    DiskRead "disk read",
    /// A file is written.
    DiskWrite "disk write",
    /// Remote blocks of a shuffle.
    ShuffleFetch "shuffle fetch",
    /// A worker process of Python.
    Python "Python worker",
    /// Another machine, or a socket of this one.
    Network "network",
    /// Spark's memory manager: other tasks have the memory.
    Memory "memory manager",
    /// A pause of the JVM, most often for garbage collection, or memory that a collection must free first.
    Safepoint "GC or safepoint",
    /// A lock, a condition or a queue that another thread has to serve.
    Lock "lock",
    /// Time itself.
    Sleep "sleep",
    /// Work.
    Idle "work",
    /// Something else.
    Other "other",
    /// Its stack was not sampled.
    Unknown "unknown",
}

/// The rules, each kind in the order in which they are tried.
#[derive(Deserialize)]
struct WaitRules {
    native: Vec<NativeRule>,
    call: Vec<CallRule>,
    caller: Vec<CallRule>,
}

/// A function or stub of the JVM, by a part of its name.
#[derive(Deserialize)]
#[cfg_attr(test, serde(deny_unknown_fields))]
struct NativeRule {
    reason: WaitReason,
    function: String,
    #[cfg(test)]
    example: Vec<String>,
}

/// A Java method, by prefixes of the names of its class and itself.
#[derive(Deserialize)]
#[cfg_attr(test, serde(deny_unknown_fields))]
struct CallRule {
    reason: WaitReason,
    class: String,
    #[serde(default)]
    method: String,
    /// Whether another thread reads a file for the caller.
    #[serde(default)]
    by_another_thread: bool,
    #[cfg(test)]
    example: Vec<String>,
}

static RULES: LazyLock<WaitRules> = LazyLock::new(|| {
    let mut rules: WaitRules = load(include_str!("../rules/waits.toml"));
    for calls in [&mut rules.call, &mut rules.caller] {
        calls.sort_by_key(|rule| Reverse((rule.class.len(), rule.method.len())));
    }
    rules
});

/// A wait according to its stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StackWait {
    pub(crate) reason: WaitReason,
    /// Whether another thread reads a file for this one, from a disk or from another machine: the stack does not say which.
    pub(crate) by_another_thread: bool,
}

impl From<WaitReason> for StackWait {
    fn from(reason: WaitReason) -> Self {
        Self {
            reason,
            by_another_thread: false,
        }
    }
}

impl StackWait {
    /// The wait for a stack; frames are root first.
    pub(crate) fn from_stack(frames: &[Arc<Frame>]) -> Self {
        match frames.last() {
            None => return WaitReason::Unknown.into(),
            Some(leaf) if leaf.kind != FrameKind::Wait => {}
            Some(leaf) if leaf.method == "[run queue]" => return WaitReason::RunQueue.into(),
            Some(_) => return WaitReason::Unknown.into(),
        }
        let java = frames.iter().rposition(|frame| !frame.class.is_empty());
        let below = &frames[java.map_or(0, |index| index + 1)..];
        let callers = || frames.iter().rev().filter(|frame| !frame.class.is_empty());
        let wait = native(below)
            .map(Self::from)
            .or_else(|| callers().find_map(|frame| call(&RULES.call, frame)))
            .unwrap_or(WaitReason::Other.into());
        // For these two, the caller's purpose decides.
        match wait.reason {
            WaitReason::Lock | WaitReason::Network => callers()
                .find_map(|frame| call(&RULES.caller, frame))
                .unwrap_or(wait),
            _ => wait,
        }
    }

    /// The reason. What the stack does not say is asked only if it matters: whether the application reads files of other machines.
    pub(crate) fn reason(self, reads_other_machines: impl FnOnce() -> bool) -> WaitReason {
        match self.by_another_thread && reads_other_machines() {
            true => WaitReason::Network,
            false => self.reason,
        }
    }
}

/// The reason according to native frames.
fn native(frames: &[Arc<Frame>]) -> Option<WaitReason> {
    let applies = |rule: &&NativeRule| {
        let mut frames = frames.iter();
        frames.any(|frame| frame.method.contains(&rule.function))
    };
    RULES.native.iter().find(applies).map(|rule| rule.reason)
}

/// The wait according to one Java frame.
fn call(rules: &[CallRule], frame: &Frame) -> Option<StackWait> {
    let applies = |rule: &&CallRule| {
        frame.class.starts_with(&rule.class) && frame.method.starts_with(&rule.method)
    };
    rules.iter().find(applies).map(|rule| StackWait {
        reason: rule.reason,
        by_another_thread: rule.by_another_thread,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::frame;
    use WaitReason::{
        DiskRead, DiskWrite, Idle, Lock, Memory, Network, Other, Python, RunQueue, Safepoint,
        ShuffleFetch, Sleep, Unknown,
    };

    fn stack(frames: &[&str]) -> Vec<Arc<Frame>> {
        frames.iter().map(|text| frame(text)).collect()
    }

    fn classify(frames: &[&str]) -> WaitReason {
        StackWait::from_stack(&stack(frames)).reason
    }

    #[test]
    fn examples_find_their_rules() {
        let mut examples: Vec<_> = RULES
            .native
            .iter()
            .map(|rule| (rule.reason, &rule.example))
            .collect();
        for rules in [&RULES.call, &RULES.caller] {
            examples.extend(rules.iter().map(|rule| (rule.reason, &rule.example)));
        }
        for (reason, example) in examples {
            let frames: Vec<_> = example.iter().map(|text| frame(text)).collect();
            assert_eq!(StackWait::from_stack(&frames).reason, reason, "{example:?}");
        }
    }

    /// A second rule for the same prefixes could never apply.
    #[test]
    fn no_rule_is_there_twice() {
        for rules in [&RULES.call, &RULES.caller] {
            for pair in rules.windows(2) {
                let [one, other] = [&pair[0], &pair[1]].map(|rule| (&rule.class, &rule.method));
                assert_ne!(one, other);
            }
        }
    }

    const RUNNER: &str = "org.apache.spark.executor.Executor$TaskRunner.run";
    const PARK: &str = "jdk.internal.misc.Unsafe.park";

    #[test]
    fn the_innermost_call_counts() {
        assert_eq!(
            classify(&[RUNNER, "my.Udf.call", "java.lang.Thread.sleep"]),
            Sleep
        );
        assert_eq!(
            classify(&["my.Main.main", "java.lang.Thread.sleep0", "JVM_SleepNanos"]),
            Sleep
        );
        assert_eq!(
            classify(&["java.io.FileInputStream.readBytes", "read"]),
            DiskRead
        );
        assert_eq!(
            classify(&[
                "sun.nio.ch.FileChannelImpl.write",
                "sun.nio.ch.UnixFileDispatcherImpl.pwrite0"
            ]),
            DiskWrite
        );
        assert_eq!(classify(&["sun.nio.ch.SocketDispatcher.read0"]), Network);
        assert_eq!(classify(&["my.Main.main", "java.lang.Object.wait0"]), Lock);
        assert_eq!(classify(&["my.Main.main"]), Other);
        assert_eq!(classify(&[]), Unknown);
    }

    #[test]
    fn a_park_is_for_whoever_parks() {
        let fetch = "org.apache.spark.storage.ShuffleBlockFetcherIterator.next";
        let take = "java.util.concurrent.LinkedBlockingQueue.take";
        assert_eq!(classify(&[RUNNER, fetch, take, PARK]), ShuffleFetch);
        let memory = "org.apache.spark.memory.ExecutionMemoryPool.acquireMemory";
        assert_eq!(classify(&[RUNNER, memory, "java.lang.Object.wait"]), Memory);
        let python = "org.apache.spark.api.python.BasePythonRunner$ReaderIterator.hasNext";
        let read = "sun.nio.ch.SocketDispatcher.read0";
        assert_eq!(classify(&[RUNNER, python, read]), Python);
        let idle = "java.util.concurrent.ThreadPoolExecutor.getTask";
        assert_eq!(classify(&[idle, take, PARK]), Idle);
        assert_eq!(classify(&["my.Main.main", PARK, "Parker::park"]), Lock);
        // A read of a file is a disk read, whoever calls it.
        let file = "java.io.FileInputStream.readBytes";
        assert_eq!(classify(&[RUNNER, fetch, file]), DiskRead);
    }

    #[test]
    fn native_frames_show_pauses_and_monitors() {
        assert_eq!(
            classify(&[
                "my.Main.main",
                "SafepointBlob",
                "SafepointSynchronize::block"
            ]),
            Safepoint
        );
        assert_eq!(
            classify(&[RUNNER, "java.util.Arrays.copyOf", "VMThread::execute"]),
            Safepoint
        );
        let monitor = ["my.Main.main", "ObjectMonitor::enter", "__futex_wait"];
        assert_eq!(classify(&monitor), Lock);
    }

    #[test]
    fn what_is_no_frame_says_it_itself() {
        let with = |method: &str| {
            let leaf = Frame {
                kind: FrameKind::Wait,
                method: method.to_owned(),
                ..Frame::default()
            };
            [stack(&["java.lang.Thread.sleep"]), vec![Arc::new(leaf)]].concat()
        };
        assert_eq!(StackWait::from_stack(&with("[run queue]")).reason, RunQueue);
        assert_eq!(StackWait::from_stack(&with("[waiting]")).reason, Unknown);
    }

    /// Parquet's vectored reads: the task's thread waits for a future.
    #[test]
    fn another_thread_reads_from_a_disk_or_another_machine() {
        let future = "org.apache.parquet.hadoop.util.wrapped.io.FutureIO.awaitFuture";
        let get = "java.util.concurrent.CompletableFuture.get";
        let wait = StackWait::from_stack(&stack(&[RUNNER, future, get, PARK]));
        assert_eq!(wait.reason(|| false), DiskRead);
        assert_eq!(wait.reason(|| true), Network);
        let own = StackWait::from_stack(&stack(&[RUNNER, "java.io.FileInputStream.readBytes"]));
        assert_eq!(own.reason(|| true), DiskRead);
    }
}
