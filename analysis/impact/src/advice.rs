//! The paper's suggestions for an indicator that does not match a utilisation (sections 5.1 to 5.4).

use schemars::JsonSchema;
use serde::Serialize;

use crate::{Indicator, Resource, Utilisation};

/// Limits of high and low values. The paper describes them in words; only 0.5 and 0.4 for CRI are its own numbers
/// (sections 5.1 and 6). The others are between its high and low values in table 1 and section 5.3.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// CRI of a CPU-intensive job.
    pub high_cri: f64,
    /// CRI of other jobs.
    pub low_cri: f64,
    /// Other indicators are high from this value on, and low below it.
    pub high_impact: f64,
    /// Utilisation is high from this value on.
    pub high_utilisation: f64,
    /// Utilisation is low up to this value.
    pub low_utilisation: f64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            high_cri: 0.5,
            low_cri: 0.4,
            high_impact: 0.2,
            high_utilisation: 0.7,
            low_utilisation: 0.3,
        }
    }
}

/// A suggestion: what to do, or what not to.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Suggestion {
    /// The resource.
    pub resource: Resource,
    /// The section of the paper.
    pub section: &'static str,
    /// The text for users.
    pub text: &'static str,
}

/// Suggestions only for indicators whose whole interval is high or low; without an interval, the value decides.
pub(crate) fn suggestions(
    indicators: &[Indicator],
    utilisation: Utilisation,
    thresholds: &Thresholds,
) -> Vec<Suggestion> {
    let mut found = Vec::new();
    for indicator in indicators {
        let resource = indicator.resource;
        let used = match resource {
            Resource::Cpu => utilisation.cpu,
            Resource::Disk => utilisation.disk,
            Resource::Network => utilisation.network,
            Resource::Memory => None,
        };
        let busy = used.is_some_and(|used| used >= thresholds.high_utilisation);
        let idle = used.is_some_and(|used| used <= thresholds.low_utilisation);
        let (low, high) = levels(indicator, thresholds);
        let (section, text) = match (resource, high, low) {
            (Resource::Cpu, true, _) if idle => (
                "5.1",
                "low CPU utilisation and high CRI: CPU cores are not fully used. Give the job more tasks, or more even ones",
            ),
            (Resource::Cpu, true, _) => (
                "6",
                "CRI is above 0.5: according to the paper, faster disks or networks need not be tried. Only a measurement rules them out",
            ),
            (Resource::Cpu, _, true) if busy => (
                "5.1",
                "high CPU utilisation and low CRI: CPUs stall for memory. Look at how data is kept and moved in memory",
            ),
            (Resource::Disk, true, _) if idle => (
                "5.3",
                "low disk utilisation and high DRI: weak I/O. Make tasks longer or merge requests, so that computing \
                 overlaps them",
            ),
            (Resource::Disk, _, true) if busy => (
                "5.3",
                "high disk utilisation and low DRI: I/O overlaps with computing well. A faster disk will not help",
            ),
            (Resource::Network, true, _) => (
                "5.4",
                "high NRI: look at the network before the CPU; data read from memory makes a job depend on it more",
            ),
            (Resource::Memory, true, _) => (
                "5.2",
                "high MRI: look at what is cached; turning cached columns into rows costs locality",
            ),
            _ => continue,
        };
        found.push(Suggestion {
            resource,
            section,
            text,
        });
    }
    found
}

/// Whether an indicator is certainly low, and certainly high.
fn levels(indicator: &Indicator, thresholds: &Thresholds) -> (bool, bool) {
    let (from, to) = match indicator.interval {
        Some(interval) => (interval.low, interval.high),
        None => (indicator.value, indicator.value),
    };
    match indicator.resource {
        Resource::Cpu => (to <= thresholds.low_cri, from >= thresholds.high_cri),
        _ => (to < thresholds.high_impact, from >= thresholds.high_impact),
    }
}
