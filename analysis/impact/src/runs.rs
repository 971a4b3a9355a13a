//! Runs of one workload that were checked, by scheme.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{InputError, Scheme};

/// The longest time that is believed: thirty thousand years. Beyond, ratios could overflow.
const LONGEST: f64 = 1e12;
/// The shortest, a nanosecond.
const SHORTEST: f64 = 1e-9;

/// One run.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// What it was given.
    pub scheme: Scheme,
    /// How long it took, s.
    pub seconds: f64,
    /// How busy resources were, as far as known.
    pub utilisation: Utilisation,
    /// What the processor counted, as far as known.
    pub counted: Counted,
}

/// What the processor counted, to check CRI and MRI by: where memory is what counts, a faster CPU has fewer instructions
/// for each cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Counted {
    /// Instructions for each cycle.
    pub ipc: Option<f64>,
    /// The part of cycles that were stalled, 0 to 1.
    pub stalled: Option<f64>,
}

/// How busy resources were, 0 to 1 (section 5: CPU over all cores, bandwidths of disk and network).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Utilisation {
    /// Of all CPUs.
    pub cpu: Option<f64>,
    /// Of the disk.
    pub disk: Option<f64>,
    /// Of the network.
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

/// Runs of one workload, possible in themselves, with a base scheme to compare with.
#[derive(Clone, Debug, PartialEq)]
pub struct Runs {
    base: Scheme,
    runs: BTreeMap<Scheme, Vec<Run>>,
}

impl Runs {
    /// Checks runs. Several at one scheme are repetitions; their order never matters.
    ///
    /// # Errors
    /// An [`InputError`]: times, speeds and utilisations that cannot be, no run at the base scheme, a base that has
    /// not the slowest CPU, no faster CPU at the base's disk and network.
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

    /// Repetitions at a scheme, s; empty where there are none.
    pub fn seconds_at(&self, scheme: &Scheme) -> Vec<f64> {
        self.at(scheme).iter().map(|run| run.seconds).collect()
    }

    /// Mean utilisations at the base scheme.
    pub fn utilisation(&self) -> Utilisation {
        Utilisation {
            cpu: self.mean(&self.base, |run| run.utilisation.cpu),
            disk: self.mean(&self.base, |run| run.utilisation.disk),
            network: self.mean(&self.base, |run| run.utilisation.network),
        }
    }

    /// Means of what the processor counted at a scheme.
    pub(crate) fn counted(&self, scheme: &Scheme) -> Counted {
        Counted {
            ipc: self.mean(scheme, |run| run.counted.ipc),
            stalled: self.mean(scheme, |run| run.counted.stalled),
        }
    }

    /// Of the runs at a scheme where it is known.
    fn mean(&self, scheme: &Scheme, of: fn(&Run) -> Option<f64>) -> Option<f64> {
        let known: Vec<f64> = self.at(scheme).iter().filter_map(of).collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    }

    /// CF where the other resources are those of a scheme: the faster CPUs, slowest first.
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

    fn at(&self, scheme: &Scheme) -> &[Run] {
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
