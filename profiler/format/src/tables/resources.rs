//! What tasks and hosts used of each resource.

table! {
    /// What one task used of one resource in one span of time. With `hosts` it is the input of contention analysis, whatever the
    /// engine that writes it.
    pub struct IntervalRow in Intervals {
        /// Application id.
        pub app: String,
        /// Host name, as in `hosts`.
        pub host: String,
        /// Executor id.
        pub executor: String,
        /// Stage id.
        pub stage: i32,
        /// Attempt number of the stage.
        pub attempt: i32,
        /// Task attempt id (unique in the application).
        pub task: i64,
        /// What was used or waited for: `cpu`, `io-read`, `io-write`, `network`, `execution-memory` or `allocation`.
        pub kind: String,
        /// Begin, ns since the epoch.
        pub start_ns: i64,
        /// End, ns since the epoch.
        pub end_ns: i64,
        /// What the task got: CPU seconds, bytes, or of memory the bytes it held times the seconds it held them; of
        /// `allocation` its part of what all threads of the JVM allocated, 0 to 1, times the seconds in which they did. Of
        /// `io-read` only bytes that came from a disk count, where Linux counts them for each thread: those that are read twice
        /// count twice. In profiles of earlier versions those from the page cache count, too.
        pub units: f64,
        /// Time in which the task waited for the resource, as far as Spark measures it, ns.
        pub blocked_ns: i64,
    }
}

table! {
    /// Resources of a host that were used in one span of time, by all processes and by the profiled JVM.
    pub struct HostRow in Hosts {
        /// Application id.
        pub app: String,
        /// Host name.
        pub host: String,
        /// Process id of the profiled JVM; each JVM of a host writes rows.
        pub pid: u32,
        /// Begin, ns since the epoch.
        pub start_ns: i64,
        /// End, ns since the epoch.
        pub end_ns: i64,
        /// CPUs of the host.
        pub cpus: u32,
        /// CPU time of all processes, s.
        pub cpu_s: f64,
        /// CPU time of the JVM and its children, s.
        pub jvm_cpu_s: f64,
        /// CPU time of garbage collection in the JVM, s.
        pub gc_cpu_s: f64,
        /// CPU time of just-in-time compilation in the JVM, s; null with `rate=0`, and in profiles of earlier versions.
        pub jit_cpu_s: Option<f64>,
        /// CPUs that the tightest limit (CFS quota) of the JVM's control groups allows; null without a limit.
        pub cpu_limit: Option<f64>,
        /// Directory of the control group with that limit, `#`, and its inode.
        pub cpu_group: Option<String>,
        /// CPU time of all processes of that group, s.
        pub group_cpu_s: Option<f64>,
        /// Share of the periods in which that limit was used up, 0 to 1.
        pub throttled_part: Option<f64>,
        /// Time in which the kernel held that group's processes back because the limit was used up, summed over CPUs, s.
        pub throttled_s: Option<f64>,
        /// Time in which the hypervisor ran something else while a CPU of the host had work (steal), summed over CPUs, s;
        /// null in profiles of earlier versions.
        pub stolen_cpu_s: Option<f64>,
        /// CPUs on which the JVM may run (CPU set or affinity), such as `0-3,8`; null if it may run on all CPUs of the host, if
        /// the set has changed since the last row, and in profiles of earlier versions.
        pub cpu_set: Option<String>,
        /// Number of CPUs of that set; null as above.
        pub set_cpus: Option<u32>,
        /// CPU time of all processes on the CPUs of that set, s; null as above.
        pub set_cpu_s: Option<f64>,
        /// Time in which the hypervisor ran something else while one of these CPUs had work, summed over CPUs, s; null as above.
        pub set_stolen_cpu_s: Option<f64>,
        /// Bytes read from disks.
        pub disk_read_bytes: u64,
        /// Bytes written to disks.
        pub disk_write_bytes: u64,
        /// Bytes that the JVM and its children caused to be read from disks.
        pub jvm_disk_read_bytes: u64,
        /// Bytes that they caused to be written to disks.
        pub jvm_disk_write_bytes: u64,
        /// Time in which the busiest disk had requests, s.
        pub disk_busy_s: f64,
        /// Bytes received from other machines.
        pub network_in_bytes: u64,
        /// Bytes sent to other machines.
        pub network_out_bytes: u64,
        /// Speed that the network cards report, bytes a second in each direction; null if they report none.
        pub network_bytes_per_s: Option<u64>,
        /// Time in which some process of the host waited for a CPU (pressure stall information), s; null if the kernel has none.
        pub cpu_pressure_s: Option<f64>,
        /// Time in which some process waited for a disk, s; null as above.
        pub io_pressure_s: Option<f64>,
        /// Time in which some process waited for memory, s; null as above.
        pub memory_pressure_s: Option<f64>,
        /// Memory that Spark manages in this JVM, bytes; null where no tasks run.
        pub memory_bytes: Option<u64>,
        /// Maximum size of the JVM's heap, bytes; null before the first task, and in profiles of earlier versions.
        pub heap_bytes: Option<u64>,
        /// Bytes of the heap that were in use after the last collection of each of its parts; null as above, and before the
        /// first collection.
        pub live_bytes: Option<u64>,
    }
}

impl HostRow {
    /// CPUs of the host on which the JVM may run.
    pub fn usable_cpus(&self) -> u32 {
        self.set_cpus.unwrap_or(self.cpus)
    }

    /// CPU time of all processes on these CPUs, s.
    pub fn usable_cpu_s(&self) -> f64 {
        self.set_cpu_s.unwrap_or(self.cpu_s)
    }

    /// Time stolen from these CPUs, s.
    pub fn usable_stolen_cpu_s(&self) -> Option<f64> {
        match self.set_cpus {
            Some(_) => self.set_stolen_cpu_s,
            None => self.stolen_cpu_s,
        }
    }
}

table! {
    /// What processes beside a profiled JVM used of its host in one span of time, by control group, command and user. Only the
    /// largest users of each resource have rows, and only processes that the JVM's user may look at have bytes.
    pub struct OutsideRow in Outside {
        /// Application id.
        pub app: String,
        /// Host name, as in `hosts`.
        pub host: String,
        /// Process id of the profiled JVM that the row was written beside; each JVM of a host writes rows.
        pub pid: u32,
        /// Begin, ns since the epoch.
        pub start_ns: i64,
        /// End, ns since the epoch.
        pub end_ns: i64,
        /// Name of the program, at most 15 bytes, as the kernel has it. Any process can choose its own.
        pub command: String,
        /// Name of the user, or its number.
        pub user: String,
        /// Path of the control group; null for the root group.
        pub cgroup: Option<String>,
        /// What a process in a container calls its host (`HOSTNAME`; in Kubernetes the name of the pod); null elsewhere, and
        /// where it cannot be read.
        pub container: Option<String>,
        /// Process id of the nearest `java` process among a process and its ancestors; null if there is none. Such a process has
        /// rows of its own, because it may be another profiled JVM.
        pub jvm: Option<u32>,
        /// Number of processes.
        pub processes: u32,
        /// CPU time, also of those that have ended, s.
        pub cpu_s: f64,
        /// The part of it of processes that may run on a CPU of the JVM's CPU set; null if the JVM has none, and in profiles of
        /// earlier versions.
        pub set_cpu_s: Option<f64>,
        /// Bytes that they caused to be read from disks; null if the writer may not read that.
        pub read_bytes: Option<u64>,
        /// Bytes that they caused to be written to disks; null as above.
        pub write_bytes: Option<u64>,
        /// Growth of their resident memory, bytes; negative if it shrank.
        pub resident_growth_bytes: i64,
    }
}

table! {
    /// Users of a CPU while a task of the profiled JVM waited for it (option `switches`). The task was preempted there, and did not run
    /// in that time. The kernel reports each context switch, so the time is counted and not estimated.
    pub struct CpuWaitRow in CpuWaits {
        /// Application id.
        pub app: String,
        /// Host name, as in `hosts`.
        pub host: String,
        /// Executor id.
        pub executor: String,
        /// Stage id of the task that waited.
        pub stage: i32,
        /// Attempt number of its stage.
        pub attempt: i32,
        /// Its task attempt id.
        pub task: i64,
        /// When it waited first in this time between two heartbeats, ns since the epoch.
        pub start_ns: i64,
        /// When it waited last, ns since the epoch.
        pub end_ns: i64,
        /// How long it waited while the CPU ran what the next columns name, ns.
        pub waited_ns: i64,
        /// The user of the CPU: `task` (of the same JVM), `gc`, `jit`, `jvm` (another thread of the JVM) or `process`. With `rate=0`,
        /// `jvm` in place of `gc` and `jit`.
        pub behind: String,
        /// Stage id of the task that had it; null for other things.
        pub behind_stage: Option<i32>,
        /// Attempt number of that stage; null as above.
        pub behind_attempt: Option<i32>,
        /// Task attempt id; null as above.
        pub behind_task: Option<i64>,
        /// Name of the process that had it, as in `outside`; null for threads of the JVM.
        pub command: Option<String>,
        /// Its user, as in `outside`; null as above.
        pub user: Option<String>,
        /// Its control group, as in `outside`.
        pub cgroup: Option<String>,
        /// Its container, as in `outside`.
        pub container: Option<String>,
        /// The `java` process to which it belongs, as `jvm` in `outside`.
        pub behind_jvm: Option<u32>,
    }
}

table! {
    /// Threads that held a monitor or a lock (of `java.util.concurrent`, with an owner) while a task waited for it. The JVM looks at
    /// its tasks at random times, about 50 times a second, and each look stands for the time since the one before.
    pub struct LockWaitRow in LockWaits {
        /// Application id.
        pub app: String,
        /// Host name, as in `hosts`.
        pub host: String,
        /// Executor id.
        pub executor: String,
        /// Stage id of the task that waited.
        pub stage: i32,
        /// Attempt number of its stage.
        pub attempt: i32,
        /// Its task attempt id.
        pub task: i64,
        /// When it waited first in this time between two heartbeats, ns since the epoch.
        pub start_ns: i64,
        /// When it waited last, ns since the epoch.
        pub end_ns: i64,
        /// How long it waited while the thread in the next columns held the lock, ns.
        pub waited_ns: i64,
        /// Class of the monitor's object or of the lock that it waited for, in one of the looks.
        pub lock: String,
        /// The holder: `task` (of the same JVM) or `thread` (without a task). If the holder waited for a lock itself, the holder of
        /// that lock, and so on.
        pub holder: String,
        /// Stage id of the task that held it; null for other threads.
        pub holder_stage: Option<i32>,
        /// Attempt number of that stage; null as above.
        pub holder_attempt: Option<i32>,
        /// Task attempt id; null as above.
        pub holder_task: Option<i64>,
        /// Name of the holder's thread.
        pub holder_thread: Option<String>,
        /// Maximum number of threads between the task and the holder, each of which held the lock that the one before waited for.
        pub between: u32,
    }
}

table! {
    /// Memory that the blocks of a cached RDD hold on an executor, until the next row of the same RDD and executor.
    pub struct CachedRow in Cached {
        /// Spark application id.
        pub app: String,
        /// Executor id.
        pub executor: String,
        /// RDD id.
        pub rdd: i32,
        /// The stage that filled the cache.
        pub stage: Option<i32>,
        /// Start, ms since the epoch.
        pub since_ms: i64,
        /// Bytes in memory.
        pub memory_bytes: u64,
    }
}
