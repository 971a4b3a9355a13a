//! The resources of a run.

use std::cmp::Ordering;
use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

/// A resource scheme ⟨c, m, d, n⟩ (section 3.1). Memory never varies, so it has no field.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Scheme {
    /// c: speed of the CPUs in any unit, more than 0; only ratios matter.
    pub cpu: f64,
    /// d: name of the disk.
    pub disk: String,
    /// n: name of the network.
    pub network: String,
}

impl Scheme {
    /// The resources other than the CPU.
    pub(crate) fn io(&self) -> (&str, &str) {
        (&self.disk, &self.network)
    }

    /// The same with another CPU.
    pub(crate) fn with_cpu(&self, cpu: f64) -> Scheme {
        Scheme {
            cpu,
            ..self.clone()
        }
    }
}

/// Ordered by disk, network, speed of the CPUs.
impl Ord for Scheme {
    fn cmp(&self, other: &Self) -> Ordering {
        self.io()
            .cmp(&other.io())
            .then(self.cpu.total_cmp(&other.cpu))
    }
}

impl PartialOrd for Scheme {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Scheme {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Scheme {}

/// `2.4/SSD/1Gbps`
impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.cpu, self.disk, self.network)
    }
}

/// The four major resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Resource {
    /// CPUs with their caches.
    Cpu,
    /// Disks.
    Disk,
    /// The network.
    Network,
    /// Main memory.
    Memory,
}

impl Resource {
    /// All, in the order of the equations.
    pub const ALL: [Self; 4] = [Self::Cpu, Self::Disk, Self::Network, Self::Memory];

    /// Its name for users.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "CPU",
            Self::Disk => "disk",
            Self::Network => "network",
            Self::Memory => "memory",
        }
    }

    /// The paper's name of its indicator.
    pub fn indicator(self) -> &'static str {
        match self {
            Self::Cpu => "CRI",
            Self::Disk => "DRI",
            Self::Network => "NRI",
            Self::Memory => "MRI",
        }
    }
}
