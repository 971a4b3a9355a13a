//! Numbers about the profiler itself, for Spark's metrics.

use crate::clock::own_cpu_ns;
use crate::pause::RecordingState;
use crate::session::Session;
use crate::status::{Counter, StatusWords};

/// A number about the profiler of a JVM. The jar knows each by its place here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// 1 if samples are taken and written now, 0 in a pause and after a failure.
    Recording,
    /// Samples taken.
    Samples,
    /// Samples lost.
    LostSamples,
    /// CPU time of the JVM's threads that the samples stand for, ns.
    SampledNs,
    /// CPU time of the profiler's own processes, ns.
    OwnNs,
    /// Bytes written to the profile.
    WrittenBytes,
    /// Events of Spark that were lost.
    LostEvents,
    /// CPU time of Python workers that is in the profile, ns.
    PythonNs,
}

impl Metric {
    const ALL: [Self; 8] = [
        Self::Recording,
        Self::Samples,
        Self::LostSamples,
        Self::SampledNs,
        Self::OwnNs,
        Self::WrittenBytes,
        Self::LostEvents,
        Self::PythonNs,
    ];

    /// The metric at a place; none at an unknown one.
    pub fn at(place: usize) -> Option<Self> {
        Self::ALL.get(place).copied()
    }
}

impl Session {
    /// The present value of a metric. Counts begin with the profiler, and are a few seconds old.
    pub fn metric(&self, metric: Metric) -> u64 {
        let status = self.status();
        let progress = status.progress();
        match metric {
            Metric::Recording => {
                u64::from(status.recording() == RecordingState::On && !self.has_stopped())
            }
            Metric::Samples => progress.samples,
            Metric::LostSamples => progress.lost_samples,
            Metric::SampledNs => progress.sampled_ns,
            Metric::OwnNs => status.count(Counter::OwnNs),
            Metric::WrittenBytes => progress.written_bytes,
            Metric::LostEvents => status.count(Counter::LostEvents),
            Metric::PythonNs => progress.python_ns,
        }
    }
}

/// Adds the CPU time of the calling process to the status words.
#[derive(Debug, Default)]
pub(crate) struct OwnCpu {
    added_ns: u64,
}

impl OwnCpu {
    /// Adds what was used since the last call.
    pub(crate) fn add_to(&mut self, status: StatusWords<'_>) {
        let used = own_cpu_ns();
        status.add(Counter::OwnNs, used.saturating_sub(self.added_ns));
        self.added_ns = used;
    }
}

#[cfg(test)]
mod tests {
    use unfuse_codemap::CodeMap;

    use super::*;

    #[test]
    fn each_metric_has_its_place() {
        for (place, metric) in Metric::ALL.into_iter().enumerate() {
            assert_eq!((metric as usize, Metric::at(place)), (place, Some(metric)));
        }
        assert_eq!(Metric::at(Metric::ALL.len()), None);
    }

    #[test]
    fn cpu_time_is_added_once() {
        let map = CodeMap::create(0).unwrap();
        let status = StatusWords::new(&map);
        let mut own = OwnCpu::default();
        own.add_to(status);
        own.add_to(status);
        let added = status.count(Counter::OwnNs);
        assert!(added > 0 && added <= own_cpu_ns(), "{added}");
    }
}
