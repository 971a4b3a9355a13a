//! The analysis of a workload's runs.

use schemars::JsonSchema;
use serde::Serialize;

use crate::advice::{self, Suggestion, Thresholds};
use crate::estimate::Interval;
use crate::indicators::{Indicator, Means};
use crate::verdict::verdict;
use crate::{CpuCounters, Resource, Runs, Scheme, Utilisation, Verdict};

/// The analysis of a workload's runs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Analysis {
    /// R_b.
    pub base: Scheme,
    /// Running times.
    pub schemes: Vec<SchemeTime>,
    /// CPI (eq. 1), with its upper bound.
    pub improvements: Vec<Improvement>,
    /// The indicators that the runs allow, in the order of [`Resource::ALL`].
    pub indicators: Vec<Indicator>,
    /// The other indicators.
    pub missing: Vec<MissingIndicator>,
    /// The bottleneck.
    pub verdict: Verdict,
    /// Mean utilisations at the base scheme.
    pub utilisation: Utilisation,
    /// The paper's suggestions for such values.
    pub suggestions: Vec<Suggestion>,
    /// Notes on limits.
    pub notes: Vec<String>,
}

/// Runs at one scheme.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SchemeTime {
    /// The scheme.
    pub scheme: Scheme,
    /// Number of runs.
    pub runs: usize,
    /// RT: their mean, s.
    pub seconds: f64,
    /// Interval of the mean; none for a single run.
    pub interval: Option<Interval>,
    /// Running time at the base scheme ÷ this one.
    pub speedup: f64,
    /// Means of the processor's counters.
    #[serde(flatten)]
    pub counted: CpuCounters,
}

/// The saving by a faster CPU with the same other resources.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Improvement {
    /// The scheme with the faster CPU.
    pub scheme: Scheme,
    /// CPI (eq. 1), a part of the running time, 0 to 1.
    pub cpi: f64,
    /// 1 − c_b / c_i, its upper bound.
    pub bound: f64,
}

/// An indicator that cannot be computed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MissingIndicator {
    /// The resource.
    pub resource: Resource,
    /// The runs that it needs.
    pub why: String,
}

impl Analysis {
    /// Computes everything.
    pub fn new(runs: &Runs) -> Analysis {
        let means = Means::from_runs(runs);
        let base = runs.base();
        let mut notes = Vec::new();
        let upgrades = upgrades(runs, &means, &mut notes);
        let of = |disk: bool, network: bool| -> Vec<Scheme> {
            let wanted = |scheme: &&Scheme| {
                (scheme.disk != base.disk) == disk && (scheme.network != base.network) == network
            };
            upgrades.iter().filter(wanted).cloned().collect()
        };
        let all = [
            means.cri_of_base(),
            means.rise(Resource::Disk, &of(true, false)),
            means.rise(Resource::Network, &of(false, true)),
            means.mri(&of(true, true)),
        ];
        let indicators: Vec<Indicator> = all.into_iter().flatten().collect();
        let verdict = verdict(&indicators, &means.samples);
        if matches!(
            verdict,
            Verdict::Sure(Resource::Memory) | Verdict::OfMeasured(Resource::Memory)
        ) {
            notes.push(
                "MRI is the part that neither CPU, disk nor network explains: waits for locks, timers or other machines count as memory"
                    .to_owned(),
            );
        }
        let alike = |scheme: &&Scheme| {
            let seconds = runs.seconds_at(scheme);
            seconds.len() > 1 && seconds.windows(2).all(|pair| pair[0] == pair[1])
        };
        if let Some(scheme) = runs.schemes().find(alike) {
            notes.push(format!(
                "runs at {scheme} took the same time to the last digit, so intervals are too narrow: give more digits"
            ));
        }
        notes.extend(savings(base, &indicators, &verdict, &means, &upgrades));
        let utilisation = runs.utilisation();
        Analysis {
            base: base.clone(),
            schemes: times(runs, &means),
            improvements: improvements(runs, &means),
            missing: missing(base, &indicators, &means, &upgrades),
            suggestions: advice::suggestions(&indicators, utilisation, &Thresholds::default()),
            indicators,
            verdict,
            utilisation,
            notes,
        }
    }

    /// The indicator of a resource, if there is one.
    pub fn indicator(&self, resource: Resource) -> Option<&Indicator> {
        self.indicators.iter().find(|i| i.resource == resource)
    }
}

/// Disks and networks other than the base's that were run with all CPUs; notes list those that were not.
fn upgrades(runs: &Runs, means: &Means<'_>, notes: &mut Vec<String>) -> Vec<Scheme> {
    let mut upgrades = runs.io_schemes();
    upgrades.retain(|scheme| scheme != runs.base());
    upgrades.retain(|scheme| match means.cri(scheme) {
        Ok(_) => true,
        Err(lacking) => {
            notes.push(format!(
                "runs on disk {} and network {} are left out: there is no run at {lacking}",
                scheme.disk, scheme.network
            ));
            false
        }
    });
    upgrades
}

/// Upgrades that save more time than any indicator shows, for resources that are not the bottleneck. Equations 4 to 6
/// measure an upgrade by its effect on CRI, which is small if the job hardly computes.
fn savings(
    base: &Scheme,
    indicators: &[Indicator],
    verdict: &Verdict,
    means: &Means<'_>,
    upgrades: &[Scheme],
) -> Vec<String> {
    let largest = indicators.iter().map(|i| i.value).fold(0.0, f64::max);
    let saving = |upgrade: &Scheme| {
        let resource = match (upgrade.disk != base.disk, upgrade.network != base.network) {
            (true, false) => Resource::Disk,
            (false, true) => Resource::Network,
            _ => return None,
        };
        let found = match verdict {
            Verdict::Sure(one) | Verdict::OfMeasured(one) | Verdict::Single(one) => {
                *one == resource
            }
            Verdict::Likely(several) => several.contains(&resource),
            Verdict::Nothing => false,
        };
        let saved = means.saved(upgrade)?;
        let interval = saved.interval(&means.samples, 1);
        let least = interval.map_or(saved.value, |interval| interval.low);
        (!found && least > largest).then(|| {
            format!(
                "{} alone saved {:.0}% of the base scheme's time, which is more than any indicator: the job computes so \
                 little that {} hardly shows the {}",
                upgrade_name(upgrade, resource),
                100.0 * saved.value,
                resource.indicator(),
                resource.name(),
            )
        })
    };
    upgrades.iter().filter_map(saving).collect()
}

fn upgrade_name(upgrade: &Scheme, resource: Resource) -> String {
    match resource {
        Resource::Network => format!("the network {}", upgrade.network),
        _ => format!("the disk {}", upgrade.disk),
    }
}

fn times(runs: &Runs, means: &Means<'_>) -> Vec<SchemeTime> {
    let base = means.time(runs.base());
    let of = |scheme: &Scheme| {
        let time = means.time(scheme)?;
        Some(SchemeTime {
            scheme: scheme.clone(),
            runs: runs.seconds_at(scheme).len(),
            seconds: time.value,
            interval: time.interval(&means.samples, 1),
            speedup: base.as_ref()?.value / time.value,
            counted: runs.counted(scheme),
        })
    };
    let mut times: Vec<SchemeTime> = runs.schemes().filter_map(of).collect();
    // The base first, then schemes with the same disk and network.
    times.sort_by_key(|time| {
        (
            time.scheme.disk != runs.base().disk,
            time.scheme.network != runs.base().network,
        )
    });
    times
}

fn improvements(runs: &Runs, means: &Means<'_>) -> Vec<Improvement> {
    let of = |scheme: &Scheme| {
        Some(Improvement {
            scheme: scheme.clone(),
            cpi: means.cpi(scheme)?.value,
            bound: means.bound(scheme.cpu),
        })
    };
    let faster = runs.schemes().filter(|s| s.cpu > runs.base().cpu);
    faster.filter_map(of).collect()
}

fn than(name: &str) -> String {
    match name {
        "" => String::new(),
        name => format!(" than {name}"),
    }
}

fn missing(
    base: &Scheme,
    indicators: &[Indicator],
    means: &Means<'_>,
    upgrades: &[Scheme],
) -> Vec<MissingIndicator> {
    let lacks = |resource: Resource| !indicators.iter().any(|i| i.resource == resource);
    let why = |resource: Resource| match resource {
        Resource::Disk => format!("no runs on another disk{} with all CPUs", than(&base.disk)),
        Resource::Network => {
            format!(
                "no runs on another network{} with all CPUs",
                than(&base.network)
            )
        }
        _ => {
            let mut why = "no runs on another disk and another network at once".to_owned();
            if let Some(rest) = means.mri(upgrades) {
                why += &format!(
                    "; memory and everything unchanged are at most {:.2} together",
                    rest.value
                );
            }
            why
        }
    };
    let all = Resource::ALL
        .into_iter()
        .filter(|resource| lacks(*resource));
    all.map(|resource| MissingIndicator {
        resource,
        why: why(resource),
    })
    .collect()
}
