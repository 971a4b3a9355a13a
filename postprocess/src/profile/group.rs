//! Samples in groups, and the selection of groups.

use std::sync::Arc;

use unfuse_format::{SampleKind, StackId};

/// Which threads' time is selected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Time {
    /// Threads that run.
    #[default]
    Cpu,
    /// Threads that wait.
    OffCpu,
    /// Both.
    Wall,
}

impl Time {
    fn holds(self, kind: SampleKind) -> bool {
        match self {
            Self::Cpu => kind == SampleKind::Cpu,
            Self::OffCpu => kind == SampleKind::OffCpu,
            Self::Wall => true,
        }
    }
}

/// Samples that share everything that matters for attribution.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Group {
    /// Spark application id; empty outside Spark.
    pub app: Arc<str>,
    /// SQL execution id.
    pub query: Option<i64>,
    /// Stage id.
    pub stage: Option<i32>,
    /// Stage attempt number.
    pub attempt: Option<i32>,
    /// Thread name.
    pub thread: Arc<str>,
    /// Stack id.
    pub stack: StackId,
    /// Whether the thread ran or waited.
    pub kind: SampleKind,
}

/// Samples or waits, and the time they stand for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Weight {
    /// Number of samples, or of waits.
    pub samples: u64,
    /// CPU time, or time that was waited, ns.
    pub ns: u64,
    /// The unit of shares: samples, or time in µs where samples stand for different times.
    pub value: u64,
}

impl Weight {
    /// The weight of a row: its samples or waits, and their time.
    pub(super) fn new(kind: SampleKind, samples: u64, ns: u64, by_time: bool) -> Self {
        let by_time = by_time || kind == SampleKind::OffCpu;
        Self {
            samples,
            ns,
            value: if by_time { ns / 1000 } else { samples },
        }
    }

    /// The same weight for shares of time.
    pub(crate) fn by_time(self) -> Self {
        Self {
            value: self.ns / 1000,
            ..self
        }
    }

    /// Saturates: a damaged row may contain any number.
    pub fn add(&mut self, other: Self) {
        self.samples = self.samples.saturating_add(other.samples);
        self.ns = self.ns.saturating_add(other.ns);
        self.value = self.value.saturating_add(other.value);
    }
}

/// A thread of one profiled process.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ThreadKey {
    pub(crate) host: Arc<str>,
    pub(crate) pid: u32,
    pub(crate) tid: u32,
}

/// Samples of a group in one thread and one time window.
#[derive(Debug)]
pub(crate) struct Slice {
    pub(crate) thread: ThreadKey,
    /// Time of the first sample, ns since the epoch.
    pub(crate) start_ns: i64,
    /// Time of the last sample, ns since the epoch.
    pub(crate) end_ns: i64,
    pub(crate) weight: Weight,
    pub(crate) group: Group,
}

/// A part of a profile's time: from `start_ns` to before `end_ns`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    /// The first moment, ns since the epoch.
    pub start_ns: i64,
    /// The first moment after it, ns since the epoch.
    pub end_ns: i64,
}

impl Period {
    /// All time.
    pub const ALL: Self = Self {
        start_ns: i64::MIN,
        end_ns: i64::MAX,
    };

    /// Whether something that lasted from `start_ms` to `end_ms` (ms since the epoch) overlaps it. Without a start or
    /// an end it may overlap.
    pub fn overlaps_ms(self, start_ms: Option<i64>, end_ms: Option<i64>) -> bool {
        let ns = |ms: i64| ms.saturating_mul(1_000_000);
        start_ms.is_none_or(|ms| ns(ms) < self.end_ns)
            && end_ms.is_none_or(|ms| ns(ms) >= self.start_ns)
    }
}

impl Default for Period {
    fn default() -> Self {
        Self::ALL
    }
}

/// The selected part of a profile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Selection {
    /// Only this SQL execution.
    pub query: Option<i64>,
    /// Only this stage.
    pub stage: Option<i32>,
    /// The time of threads that run, that wait, or both.
    pub time: Time,
    /// Only samples of this time. It applies when a profile is read: samples in memory have no times.
    pub period: Period,
}

impl Selection {
    pub(super) fn holds(self, group: &Group) -> bool {
        self.query.is_none_or(|query| group.query == Some(query))
            && self.stage.is_none_or(|stage| group.stage == Some(stage))
            && self.time.holds(group.kind)
    }
}
