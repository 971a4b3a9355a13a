//! Equations 1 and 3 to 6. Equation 2 only motivates them and is not computed.

use schemars::JsonSchema;
use serde::Serialize;

use crate::estimate::{Estimate, Interval, Sample};
use crate::{Resource, Runs, Scheme};

/// The relative impact of a resource.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Indicator {
    /// The resource.
    pub resource: Resource,
    /// The value by the equations. It is between 0 and 1 unless `outside` gives a reason.
    pub value: f64,
    /// Its interval at [`CONFIDENCE`](crate::CONFIDENCE); none if a scheme has a single run.
    pub interval: Option<Interval>,
    /// The upgrade of the value: the disk and network of equations 4 to 6. For CRI the base scheme.
    pub at: Scheme,
    /// Why the value is below 0 or above 1, if it is.
    pub outside: Option<String>,
    #[serde(skip)]
    pub(crate) candidates: Candidates,
}

/// Candidates for a maximum or minimum.
#[derive(Clone, Debug)]
pub(crate) struct Candidates {
    pub(crate) extreme: Extreme,
    pub(crate) of: Vec<Estimate>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extreme {
    Largest,
    Smallest,
}

/// Computes indicators from the means of runs.
pub(crate) struct Means<'a> {
    runs: &'a Runs,
    schemes: Vec<&'a Scheme>,
    pub(crate) samples: Vec<Sample>,
}

impl<'a> Means<'a> {
    pub(crate) fn from_runs(runs: &'a Runs) -> Self {
        let schemes: Vec<&Scheme> = runs.schemes().collect();
        let seconds = schemes.iter().map(|scheme| runs.seconds_at(scheme));
        Self {
            runs,
            samples: seconds.map(|values| Sample::from_values(&values)).collect(),
            schemes,
        }
    }

    /// RT(c, d, n): the mean of its repetitions.
    pub(crate) fn time(&self, scheme: &Scheme) -> Option<Estimate> {
        let position = self.schemes.iter().position(|known| *known == scheme)?;
        Some(Estimate::mean(&self.samples, position))
    }

    /// CPI (eq. 1): the part of the running time that a faster CPU saves, with the same other resources.
    pub(crate) fn cpi(&self, faster: &Scheme) -> Option<Estimate> {
        self.less(faster, &faster.with_cpu(self.runs.base().cpu))
    }

    /// The part of the base scheme's running time that other resources save.
    pub(crate) fn saved(&self, scheme: &Scheme) -> Option<Estimate> {
        self.less(scheme, self.runs.base())
    }

    fn less(&self, scheme: &Scheme, than: &Scheme) -> Option<Estimate> {
        let one = Estimate::constant(1.0, self.samples.len());
        Some(one.minus(&self.time(scheme)?.over(&self.time(than)?)))
    }

    /// 1 − c_b / c_i: the maximum that a faster CPU can save.
    pub(crate) fn bound(&self, cpu: f64) -> f64 {
        1.0 - self.runs.base().cpu / cpu
    }

    /// CRI (eq. 3) with a scheme's disk and network, over the CPUs that ran with the base's.
    ///
    /// # Errors
    /// The scheme without runs.
    pub(crate) fn cri(&self, like: &Scheme) -> Result<Estimate, Scheme> {
        let speeds: Vec<f64> = self.runs.speeds_at(self.runs.base()).collect();
        let slow = like.with_cpu(self.runs.base().cpu);
        if self.time(&slow).is_none() {
            return Err(slow);
        }
        let mut sum = Estimate::constant(0.0, self.samples.len());
        for cpu in &speeds {
            let faster = like.with_cpu(*cpu);
            let cpi = self.cpi(&faster).ok_or(faster)?;
            sum = sum.plus(&cpi, 1.0 / self.bound(*cpu) / speeds.len() as f64);
        }
        Ok(sum)
    }

    /// CRI of the base scheme.
    pub(crate) fn cri_of_base(&self) -> Option<Indicator> {
        let base = self.runs.base();
        let cri = self.cri(base).ok()?;
        self.indicator(Resource::Cpu, Extreme::Largest, vec![(base.clone(), cri)])
    }

    /// DRI and NRI (eqs. 4 and 5): the largest rise of CRI by upgrades. `None` without upgrades.
    pub(crate) fn rise(&self, resource: Resource, upgrades: &[Scheme]) -> Option<Indicator> {
        let base = self.cri(self.runs.base()).ok()?;
        let of = |scheme: &Scheme| Some((scheme.clone(), self.cri(scheme).ok()?.minus(&base)));
        self.indicator(
            resource,
            Extreme::Largest,
            upgrades.iter().filter_map(of).collect(),
        )
    }

    /// MRI (eq. 6): 1 minus the CRI with the best upgrades. `None` without upgrades.
    pub(crate) fn mri(&self, upgrades: &[Scheme]) -> Option<Indicator> {
        let one = Estimate::constant(1.0, self.samples.len());
        let of = |scheme: &Scheme| Some((scheme.clone(), one.minus(&self.cri(scheme).ok()?)));
        self.indicator(
            Resource::Memory,
            Extreme::Smallest,
            upgrades.iter().filter_map(of).collect(),
        )
    }

    fn indicator(
        &self,
        resource: Resource,
        extreme: Extreme,
        of: Vec<(Scheme, Estimate)>,
    ) -> Option<Indicator> {
        let better = |a: &&(Scheme, Estimate), b: &&(Scheme, Estimate)| match extreme {
            Extreme::Largest => a.1.value.total_cmp(&b.1.value),
            Extreme::Smallest => b.1.value.total_cmp(&a.1.value),
        };
        let (at, best) = of.iter().max_by(better)?.clone();
        let candidates = Candidates {
            extreme,
            of: of.into_iter().map(|(_, estimate)| estimate).collect(),
        };
        let interval = candidates.interval(&self.samples);
        Some(Indicator {
            resource,
            value: best.value,
            interval,
            at,
            outside: outside(resource, best.value, interval),
            candidates,
        })
    }
}

impl Candidates {
    /// If all candidates are within their intervals at once, their maximum is within the maxima of the ends.
    fn interval(&self, samples: &[Sample]) -> Option<Interval> {
        let all: Option<Vec<Interval>> = self
            .of
            .iter()
            .map(|estimate| estimate.interval(samples, self.of.len()))
            .collect();
        all?.into_iter().reduce(|a, b| match self.extreme {
            Extreme::Largest => Interval {
                low: a.low.max(b.low),
                high: a.high.max(b.high),
            },
            Extreme::Smallest => Interval {
                low: a.low.min(b.low),
                high: a.high.min(b.high),
            },
        })
    }
}

/// Why a value is outside the range that the paper requires.
fn outside(resource: Resource, value: f64, interval: Option<Interval>) -> Option<String> {
    if (0.0..=1.0).contains(&value) {
        return None;
    }
    let bound = if value < 0.0 { 0.0 } else { 1.0 };
    match interval {
        None => {
            return Some("single runs, so it may be chance: repeat them".to_owned());
        }
        Some(interval) if (interval.low..=interval.high).contains(&bound) => {
            return Some(format!(
                "its interval contains {bound}, so it may be chance"
            ));
        }
        Some(_) => {}
    }
    let why = match (resource, value < 0.0) {
        (Resource::Cpu, true) => {
            "more CPU made the job slower: something else changed with it (drift, other jobs on the machine), or its \
             threads slow each other down"
        }
        (Resource::Cpu, false) => {
            "the job gained more than the CPU did: caches or memory became faster too, or something else delayed the slow runs, such as \
             time-outs or other jobs on the machine"
        }
        (Resource::Disk | Resource::Network, true) => {
            "the upgrade made the job depend less on the CPU: it is slower than the base in some way, or takes memory \
             from the job"
        }
        (Resource::Disk | Resource::Network, false) => {
            "it is the difference of two CRI, and one of them is outside 0 to 1"
        }
        (Resource::Memory, true) => {
            "CRI with the best upgrades is above 1: the job gained more than the CPU did"
        }
        (Resource::Memory, false) => {
            "CRI with the best upgrades is below 0: more CPU made the job slower there"
        }
    };
    Some(why.to_owned())
}
