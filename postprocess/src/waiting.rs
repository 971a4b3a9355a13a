//! What a thread waits for, told by its stack.

use unfuse_format::Frame;

use Waiting::{
    DiskRead, DiskWrite, Idle, Lock, Memory, Network, Other, Python, RunQueue, Safepoint,
    ShuffleFetch, Sleep, Unknown,
};

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Waiting {
    /// A CPU.
    RunQueue,
    /// A file is opened or read.
    DiskRead,
    /// A file is written.
    DiskWrite,
    /// Blocks of a shuffle that come from elsewhere.
    ShuffleFetch,
    /// A worker process of Python.
    Python,
    /// Another machine, or a socket of this one.
    Network,
    /// Spark's memory manager: other tasks have the memory.
    Memory,
    /// A pause of the JVM, most often for garbage collection, or memory that a collection must free first.
    Safepoint,
    /// A lock, a condition or a queue that another thread has to see to.
    Lock,
    /// Time itself.
    Sleep,
    /// Work.
    Idle,
    /// Something else.
    Other,
    /// Its stack was not sampled.
    Unknown,
}

impl Waiting {
    /// What follows "waiting for".
    pub fn name(self) -> &'static str {
        match self {
            RunQueue => "run queue",
            DiskRead => "disk read",
            DiskWrite => "disk write",
            ShuffleFetch => "shuffle fetch",
            Python => "Python worker",
            Network => "network",
            Memory => "memory manager",
            Safepoint => "GC or safepoint",
            Lock => "lock",
            Sleep => "sleep",
            Idle => "work",
            Other => "other",
            Unknown => "unknown",
        }
    }

    /// By the frames of a stack, root first.
    pub(crate) fn of(frames: &[Frame]) -> Self {
        match frames.last() {
            None => return Unknown,
            Some(leaf) if leaf.kind != "wait" => {}
            Some(leaf) if leaf.method == "[run queue]" => return RunQueue,
            Some(_) => return Unknown,
        }
        let java = frames.iter().rposition(|frame| !frame.class.is_empty());
        let below = &frames[java.map_or(0, |at| at + 1)..];
        let calls = |names: &[&str]| {
            let named = |frame: &Frame| names.iter().any(|name| frame.method.contains(name));
            below.iter().any(named)
        };
        let callers = || frames.iter().rev().filter(|frame| !frame.class.is_empty());
        let by_table = || callers().find_map(|frame| find(CALLS, frame));
        let reason = if calls(SAFEPOINTS) {
            Safepoint
        } else if calls(MONITORS) {
            Lock
        } else {
            by_table().unwrap_or(Other)
        };
        // Whoever waits so waits for what its caller wants.
        match reason {
            Lock | Network => callers()
                .find_map(|frame| find(CALLERS, frame))
                .unwrap_or(reason),
            _ => reason,
        }
    }
}

/// The JVM's functions and stubs in which a thread stands still for the JVM.
const SAFEPOINTS: &[&str] = &[
    "SafepointBlob",
    "SafepointSynchronize",
    "SafepointMechanism",
    "ThreadSafepointState",
    "polling_page",
    "VMThread::execute",
    "VMThread::wait_until_executed",
    "attempt_allocation",
    "mem_allocate",
    "MemAllocator",
    "alloc_page_stall",
    "StallingAllocat",
    "GCLocker",
];

/// Those in which it wants a monitor.
const MONITORS: &[&str] = &[
    "ObjectMonitor::enter",
    "ObjectMonitor::EnterI",
    "ObjectSynchronizer::enter",
    "monitor_locking",
    "monitorenter",
];

/// How the names of a class and of its method begin.
type Rule = (&'static str, &'static str, Waiting);

fn find(rules: &[Rule], frame: &Frame) -> Option<Waiting> {
    let fits = |(class, method, _): &&Rule| {
        frame.class.starts_with(class) && frame.method.starts_with(method)
    };
    rules.iter().find(fits).map(|(_, _, waiting)| *waiting)
}

/// Methods that wait; of a stack the innermost counts.
const CALLS: &[Rule] = &[
    ("java.lang.Thread", "sleep", Sleep),
    ("java.io.FileInputStream", "", DiskRead),
    ("java.io.FileOutputStream", "", DiskWrite),
    ("java.io.FileDescriptor", "sync", DiskWrite),
    ("java.io.RandomAccessFile", "write", DiskWrite),
    ("java.io.RandomAccessFile", "", DiskRead),
    ("java.io.UnixFileSystem", "", DiskRead),
    ("sun.nio.fs.", "", DiskRead),
    ("sun.nio.ch.FileDispatcherImpl", "write", DiskWrite),
    ("sun.nio.ch.FileDispatcherImpl", "pwrite", DiskWrite),
    ("sun.nio.ch.FileDispatcherImpl", "force", DiskWrite),
    ("sun.nio.ch.FileDispatcherImpl", "", DiskRead),
    ("sun.nio.ch.UnixFileDispatcherImpl", "write", DiskWrite),
    ("sun.nio.ch.UnixFileDispatcherImpl", "pwrite", DiskWrite),
    ("sun.nio.ch.UnixFileDispatcherImpl", "force", DiskWrite),
    ("sun.nio.ch.UnixFileDispatcherImpl", "", DiskRead),
    ("sun.nio.ch.FileChannelImpl", "write", DiskWrite),
    ("sun.nio.ch.FileChannelImpl", "force", DiskWrite),
    ("sun.nio.ch.FileChannelImpl", "transferFrom", DiskWrite),
    ("sun.nio.ch.FileChannelImpl", "", DiskRead),
    ("sun.nio.ch.", "", Network),
    ("java.net.Socket", "", Network),
    ("java.net.Inet", "", Network),
    ("java.net.Datagram", "", Network),
    ("io.netty.channel.", "", Network),
    ("jdk.internal.misc.Unsafe", "park", Lock),
    ("sun.misc.Unsafe", "park", Lock),
    ("java.util.concurrent.locks.", "", Lock),
    ("java.lang.Object", "wait", Lock),
    (
        "java.lang.ref.Reference",
        "waitForReferencePendingList",
        Idle,
    ),
];

/// Callers for whom threads, locks and sockets are but a means; of a stack the innermost counts.
const CALLERS: &[Rule] = &[
    ("java.util.concurrent.ThreadPoolExecutor", "getTask", Idle),
    ("java.util.concurrent.ForkJoinPool", "awaitWork", Idle),
    ("java.lang.ref.ReferenceQueue", "remove", Idle),
    (
        "org.apache.spark.storage.ShuffleBlockFetcherIterator",
        "",
        ShuffleFetch,
    ),
    ("org.apache.spark.memory.", "", Memory),
    ("org.apache.spark.api.python.", "", Python),
    ("org.apache.spark.sql.execution.python.", "", Python),
    ("org.apache.spark.broadcast.", "", Network),
    ("org.apache.spark.network.", "", Network),
    ("org.apache.spark.rpc.", "", Network),
    ("org.apache.spark.MapOutputTracker", "", Network),
    ("org.apache.hadoop.hdfs.", "", Network),
    ("org.apache.hadoop.ipc.", "", Network),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// `class.method`, or a native function where there is no dot.
    fn stack(frames: &[&str]) -> Vec<Frame> {
        let frame = |text: &&str| {
            let (class, method) = text.rsplit_once('.').unwrap_or(("", text));
            Frame {
                class: class.to_owned(),
                method: method.to_owned(),
                ..Frame::default()
            }
        };
        frames.iter().map(frame).collect()
    }

    fn of(frames: &[&str]) -> Waiting {
        Waiting::of(&stack(frames))
    }

    const RUNNER: &str = "org.apache.spark.executor.Executor$TaskRunner.run";
    const PARK: &str = "jdk.internal.misc.Unsafe.park";

    #[test]
    fn the_innermost_call_tells() {
        assert_eq!(
            of(&[RUNNER, "my.Udf.call", "java.lang.Thread.sleep"]),
            Sleep
        );
        assert_eq!(
            of(&["my.Main.main", "java.lang.Thread.sleep0", "JVM_SleepNanos"]),
            Sleep
        );
        assert_eq!(of(&["java.io.FileInputStream.readBytes", "read"]), DiskRead);
        assert_eq!(
            of(&[
                "sun.nio.ch.FileChannelImpl.write",
                "sun.nio.ch.UnixFileDispatcherImpl.pwrite0"
            ]),
            DiskWrite
        );
        assert_eq!(of(&["sun.nio.ch.SocketDispatcher.read0"]), Network);
        assert_eq!(of(&["my.Main.main", "java.lang.Object.wait0"]), Lock);
        assert_eq!(of(&["my.Main.main"]), Other);
        assert_eq!(of(&[]), Unknown);
    }

    #[test]
    fn a_park_is_for_whoever_parks() {
        let fetch = "org.apache.spark.storage.ShuffleBlockFetcherIterator.next";
        let take = "java.util.concurrent.LinkedBlockingQueue.take";
        assert_eq!(of(&[RUNNER, fetch, take, PARK]), ShuffleFetch);
        let memory = "org.apache.spark.memory.ExecutionMemoryPool.acquireMemory";
        assert_eq!(of(&[RUNNER, memory, "java.lang.Object.wait"]), Memory);
        let python = "org.apache.spark.api.python.BasePythonRunner$ReaderIterator.hasNext";
        let read = "sun.nio.ch.SocketDispatcher.read0";
        assert_eq!(of(&[RUNNER, python, read]), Python);
        let idle = "java.util.concurrent.ThreadPoolExecutor.getTask";
        assert_eq!(of(&[idle, take, PARK]), Idle);
        assert_eq!(of(&["my.Main.main", PARK, "Parker::park"]), Lock);
        // What is read from a file is, whoever reads.
        let file = "java.io.FileInputStream.readBytes";
        assert_eq!(of(&[RUNNER, fetch, file]), DiskRead);
    }

    #[test]
    fn the_jvm_tells_of_pauses_and_monitors() {
        assert_eq!(
            of(&[
                "my.Main.main",
                "SafepointBlob",
                "SafepointSynchronize::block"
            ]),
            Safepoint
        );
        assert_eq!(
            of(&[RUNNER, "java.util.Arrays.copyOf", "VMThread::execute"]),
            Safepoint
        );
        let monitor = ["my.Main.main", "ObjectMonitor::enter", "__futex_wait"];
        assert_eq!(of(&monitor), Lock);
    }

    #[test]
    fn what_is_no_frame_says_it_itself() {
        let with = |method: &str| {
            let leaf = Frame {
                kind: "wait".to_owned(),
                method: method.to_owned(),
                ..Frame::default()
            };
            [stack(&["java.lang.Thread.sleep"]), vec![leaf]].concat()
        };
        assert_eq!(Waiting::of(&with("[run queue]")), RunQueue);
        assert_eq!(Waiting::of(&with("[waiting]")), Unknown);
    }

    #[test]
    fn special_rules_come_before_general_ones() {
        for rules in [CALLS, CALLERS] {
            for (at, (class, method, _)) in rules.iter().enumerate() {
                let shadowed = rules[..at]
                    .iter()
                    .any(|(c, m, _)| class.starts_with(c) && method.starts_with(m));
                assert!(!shadowed, "{class} {method} is never reached");
            }
        }
    }
}
