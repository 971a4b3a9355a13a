//! A recorded run as tasks on slots.

use super::Change;

/// A query, or an application, as it was recorded. Times are s since it began.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorded {
    /// From its begin to its end, s.
    pub seconds: f64,
    /// By how much runs of the same differ, as a share of their time (a standard deviation); 0 if unknown.
    pub spread: f64,
    /// Slots that it had.
    pub slots: usize,
    /// Executors that these belong to; 0 if unknown.
    pub executors: usize,
    /// Parts of the tasks' times, in the order in which tasks have them.
    pub parts: Vec<Part>,
    /// Stage attempts with tasks, in order of submission.
    pub stages: Vec<RecordedStage>,
    /// The CPUs that all slots share, also if there are more or fewer slots; none if unknown, or if not all slots are in one JVM.
    pub cpus: Option<SharedCpus>,
}

/// The CPUs of a machine, and who else uses them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SharedCpus {
    /// How many there are, or how many the machine's tasks may use.
    pub count: f64,
    /// How many of them all but the run's own tasks used, on average: the JIT compilers, garbage collection, the driver, other queries
    /// and processes.
    pub others: f64,
}

/// A stage attempt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedStage {
    /// Its number.
    pub stage: i32,
    /// Its attempt.
    pub attempt: i32,
    /// What submitted it.
    pub group: Group,
    /// Whether it belongs to what is asked about. Others only take slots, at their time.
    pub own: bool,
    /// Numbers of the stages that it reads from.
    pub parents: Vec<i32>,
    /// Submission; none if unknown.
    pub submitted: Option<f64>,
    /// The scheduler pool that it was submitted to.
    pub pool: Pool,
    /// Whether it has about as many tasks as there are slots because Spark cuts its input by their number.
    pub splits: bool,
    /// Of a stage that is not of the run: the share of its tasks' time in which they had or waited for a CPU, 0 to 1; none if unknown.
    pub runnable: Option<f64>,
    /// All its task attempts that ended, also those that failed.
    pub tasks: Vec<RecordedTask>,
}

/// A scheduler pool, which gets slots in proportion to its weight. Within a pool the oldest stage comes first.
#[derive(Clone, Debug, PartialEq)]
pub struct Pool {
    /// Its name; empty if all stages are in one.
    pub name: String,
    /// Its weight, above 0.
    pub weight: f64,
}

impl Default for Pool {
    fn default() -> Self {
        Self {
            name: String::new(),
            weight: 1.0,
        }
    }
}

/// What submits stages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// A SQL execution.
    Query(i64),
    /// A job outside SQL executions.
    Job(i64),
    /// Unknown.
    #[default]
    Unknown,
}

/// A task attempt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedTask {
    /// Its launch.
    pub launched: f64,
    /// Its end, as the driver learnt it.
    pub finished: f64,
    /// Seconds of each part of [`Recorded::parts`]; parts that are missing at the end are 0.
    pub parts: Vec<f64>,
}

impl RecordedTask {
    /// From launch to end, s.
    pub fn seconds(&self) -> f64 {
        (self.finished - self.launched).max(0.0)
    }
}

/// Something that takes a part of a task's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartKind {
    /// Garbage collection.
    Gc,
    /// Waits for reads from disk and writes to it.
    Disk,
    /// Waits for shuffle blocks and the network.
    Network,
    /// Waits for a CPU.
    CpuWait,
    /// Waits for Python workers.
    Python,
    /// CPU time of a plan node.
    Operator(i32),
    /// Waits for a CPU of a plan node. They are a part of [`Self::CpuWait`].
    OperatorCpuWait(i32),
    /// Waits of a plan node for its data. They are a part of [`Self::Disk`] or [`Self::Network`].
    ScanWait(i32),
    /// Waits that a query caused.
    Query(i64),
    /// Waits that jobs outside SQL executions caused.
    Jobs,
    /// CPU time of the task, whatever used it. No change is about it.
    Cpu,
    /// Time that no [`Change`] is about, see [`Model::without`](super::Model::without).
    Other,
}

/// A part of the tasks' times, and how well it is known.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// What takes the time.
    pub kind: PartKind,
    /// The least and the most that the wall time becomes shorter, for each second that is taken out: 1 and 1 for waits.
    pub range: (f64, f64),
    /// Of a part that was sampled: the number of samples in each stage of [`Recorded::stages`]; empty for one that was measured.
    pub samples: Vec<u64>,
    /// Of waits that a query caused: whether its slots are free without it, for tasks that can use them. More slots do not help
    /// while the CPUs are busy, unless the query itself keeps them busy.
    pub frees_slots: bool,
    /// Of waits that a neighbour without tasks in the recorded stages caused: CPUs that it used, on average, while what is asked about ran.
    pub cpus: f64,
    /// The share of the driver's time, before the query's own stages and after the last, that goes with it, 0 to 1.
    pub driver: f64,
    /// Whether whole tasks go with it: as large a share of the waits for launches then goes as of the tasks' times.
    pub takes_launches: bool,
}

impl Part {
    /// A part that was measured.
    pub fn new(kind: PartKind) -> Self {
        Self {
            kind,
            range: (1.0, 1.0),
            samples: Vec::new(),
            frees_slots: true,
            cpus: 0.0,
            driver: 0.0,
            takes_launches: false,
        }
    }
}

impl PartKind {
    /// Whether a task does nothing in that time.
    pub(super) fn is_wait(self) -> bool {
        match self {
            Self::Gc | Self::Disk | Self::Network | Self::CpuWait | Self::Python => true,
            Self::Operator(_)
            | Self::OperatorCpuWait(_)
            | Self::ScanWait(_)
            | Self::Query(_)
            | Self::Jobs
            | Self::Cpu
            | Self::Other => false,
        }
    }

    /// Whether a neighbour caused it.
    pub(super) fn is_of_neighbour(self) -> bool {
        matches!(self, Self::Query(_) | Self::Jobs | Self::Other)
    }

    /// The share of this part that remains after a change, more than 1 if it takes longer; none if the change does not concern it.
    pub(super) fn remaining(self, change: &Change) -> Option<f64> {
        match (self, change) {
            (Self::Gc, Change::NoGc)
            | (Self::Disk, Change::EndlessDisk)
            | (Self::Network, Change::EndlessNetwork)
            | (Self::CpuWait, Change::NoCpuWait) => Some(0.0),
            (Self::Python, Change::Python(times)) => Some(1.0 / times),
            (
                Self::Operator(own) | Self::OperatorCpuWait(own),
                Change::Operator { node, times },
            ) if own == *node => Some(1.0 / times),
            (
                Self::Operator(own) | Self::OperatorCpuWait(own),
                Change::CachedScan { node, remaining },
            ) if own == *node => Some(*remaining),
            (Self::ScanWait(own), Change::CachedScan { node, .. }) if own == *node => Some(0.0),
            (Self::Query(own), Change::WithoutQuery(query)) if own == *query => Some(0.0),
            _ => None,
        }
    }
}
