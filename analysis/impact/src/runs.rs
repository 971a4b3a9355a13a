//! The checked runs of one workload, by scheme.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::{InputError, Scheme};

/// The longest possible time, s: thirty thousand years. Beyond it, ratios could overflow.
const LONGEST: f64 = 1e12;
/// The shortest possible time, s.
const SHORTEST: f64 = 1e-9;

/// One run.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Its resources.
    pub scheme: Scheme,
    /// Its running time, s.
    pub seconds: f64,
    /// Utilisation of resources, as far as known.
    pub utilisation: Utilisation,
    /// The processor's counters, as far as known.
    pub counted: CpuCounters,
}

/// The processor's counters, which can confirm CRI and MRI: if memory is the limit, a faster CPU has fewer instructions
/// for each cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct CpuCounters {
    /// Instructions for each cycle.
    pub ipc: Option<f64>,
    /// The part of stalled cycles, 0 to 1.
    pub stalled: Option<f64>,
}

/// Utilisation of resources, 0 to 1 (section 5: CPU over all cores, bandwidths of disk and network).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Utilisation {
    /// All CPUs.
    pub cpu: Option<f64>,
    /// The disk.
    pub disk: Option<f64>,
    /// The network.
    pub network: Option<f64>,
}

impl Utilisation {
    fn parts(self) -> [(&'static str, Option<f64>); 3] {
        [
            ("CPU", self.cpu),
            ("disk", self.disk),
            ("network", self.network),
        ]
    }
}

/// Possible runs of one workload, with a base scheme for comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Runs {
    base: Scheme,
    runs: BTreeMap<Scheme, Vec<Run>>,
}

impl Runs {
    /// Checks runs. Several at one scheme are repetitions; their order does not matter.
    ///
    /// # Errors
    /// An [`InputError`]: impossible times, speeds or utilisations, no run at the base scheme, a base without the
    /// slowest CPU, no faster CPU with the base's disk and network.
    pub fn new(base: Scheme, runs: Vec<Run>) -> Result<Runs, InputError> {
        let mut by_scheme: BTreeMap<Scheme, Vec<Run>> = BTreeMap::new();
        for run in runs {
            check(&run)?;
            by_scheme.entry(run.scheme.clone()).or_default().push(run);
        }
        for runs in by_scheme.values_mut() {
            runs.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        }
        if !by_scheme.contains_key(&base) {
            let there: Vec<String> = by_scheme.keys().map(Scheme::to_string).collect();
            return Err(InputError::NoBase {
                base,
                there: if there.is_empty() {
                    "none".to_owned()
                } else {
                    there.join(", ")
                },
            });
        }
        let runs = Runs {
            base,
            runs: by_scheme,
        };
        let speeds = || runs.schemes().map(|scheme| scheme.cpu);
        if let Some(slower) = speeds().find(|cpu| *cpu < runs.base.cpu) {
            return Err(InputError::BaseNotSlowest {
                base: runs.base.cpu,
                slower,
            });
        }
        if runs.speeds_at(&runs.base).next().is_none() {
            return Err(InputError::NoFaster { base: runs.base });
        }
        Ok(runs)
    }

    /// R_b.
    pub fn base(&self) -> &Scheme {
        &self.base
    }

    /// Schemes with runs.
    pub fn schemes(&self) -> impl Iterator<Item = &Scheme> {
        self.runs.keys()
    }

    /// Times of the runs at a scheme, s; empty if there are none.
    pub fn seconds_at(&self, scheme: &Scheme) -> Vec<f64> {
        self.runs_at(scheme).iter().map(|run| run.seconds).collect()
    }

    /// Mean utilisations at the base scheme.
    pub fn utilisation(&self) -> Utilisation {
        Utilisation {
            cpu: self.mean(&self.base, |run| run.utilisation.cpu),
            disk: self.mean(&self.base, |run| run.utilisation.disk),
            network: self.mean(&self.base, |run| run.utilisation.network),
        }
    }

    /// Means of the processor's counters at a scheme.
    pub(crate) fn counted(&self, scheme: &Scheme) -> CpuCounters {
        CpuCounters {
            ipc: self.mean(scheme, |run| run.counted.ipc),
            stalled: self.mean(scheme, |run| run.counted.stalled),
        }
    }

    /// Mean over the runs at a scheme that have the value.
    fn mean(&self, scheme: &Scheme, of: fn(&Run) -> Option<f64>) -> Option<f64> {
        let known: Vec<f64> = self.runs_at(scheme).iter().filter_map(of).collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    }

    /// CF with a scheme's other resources: the faster CPUs, slowest first.
    pub(crate) fn speeds_at<'a>(&'a self, like: &'a Scheme) -> impl Iterator<Item = f64> + 'a {
        self.schemes()
            .filter(|scheme| scheme.io() == like.io() && scheme.cpu > self.base.cpu)
            .map(|scheme| scheme.cpu)
    }

    /// Pairs of disk and network with runs, as schemes with the base's CPU.
    pub(crate) fn io_schemes(&self) -> Vec<Scheme> {
        let mut schemes: Vec<Scheme> = self
            .schemes()
            .map(|scheme| scheme.with_cpu(self.base.cpu))
            .collect();
        schemes.dedup();
        schemes
    }

    fn runs_at(&self, scheme: &Scheme) -> &[Run] {
        self.runs.get(scheme).map_or(&[], Vec::as_slice)
    }
}

fn check(run: &Run) -> Result<(), InputError> {
    let scheme = || run.scheme.clone();
    if !(SHORTEST..=LONGEST).contains(&run.scheme.cpu) {
        return Err(InputError::Speed(run.scheme.cpu));
    }
    if !(SHORTEST..=LONGEST).contains(&run.seconds) {
        return Err(InputError::Time {
            scheme: scheme(),
            seconds: run.seconds,
        });
    }
    let ipc = run.counted.ipc.filter(|ipc| !(0.0..=100.0).contains(ipc));
    if let Some(ipc) = ipc {
        return Err(InputError::InstructionsPerCycle(ipc));
    }
    let stalled = ("stalled", run.counted.stalled);
    for (what, value) in run.utilisation.parts().into_iter().chain([stalled]) {
        if let Some(value) = value.filter(|value| !(0.0..=1.0).contains(value)) {
            return Err(InputError::Utilisation {
                scheme: scheme(),
                what,
                value,
            });
        }
    }
    Ok(())
}
