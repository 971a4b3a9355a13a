//! The paper's figures, and properties of any runs.

mod paper;
mod properties;
mod refusals;

use crate::*;

fn scheme(cpu: f64, disk: &str, network: &str) -> Scheme {
    Scheme {
        cpu,
        disk: disk.into(),
        network: network.into(),
    }
}

fn run(scheme: Scheme, seconds: f64) -> Run {
    Run {
        scheme,
        seconds,
        utilisation: Utilisation::default(),
        counted: CpuCounters::default(),
    }
}

/// A job that does one thing at a time: the parts of its time at the base scheme, which need not sum to 1.
#[derive(Clone, Copy, Debug)]
struct Job {
    cpu: f64,
    memory: f64,
    disk: f64,
    network: f64,
}

impl Job {
    /// Its time if the CPU is `speed` times as fast, and the disk or network infinitely fast.
    fn seconds(self, speed: f64, ssd: bool, fast: bool) -> f64 {
        let part = |time: f64, gone: bool| if gone { 0.0 } else { time };
        100.0 * (self.cpu / speed + self.memory + part(self.disk, ssd) + part(self.network, fast))
    }

    /// Runs at every scheme of section 4.1: CPUs of 1.2, 2.4 and 3.6 GHz, HDD and SSD, 1 and 10 Gbps.
    fn runs(self, noise: impl Fn(usize) -> f64, repetitions: usize) -> Vec<Run> {
        let mut runs = Vec::new();
        for cpu in [1.2, 2.4, 3.6] {
            for (disk, ssd) in [("HDD", false), ("SSD", true)] {
                for (network, fast) in [("1Gbps", false), ("10Gbps", true)] {
                    for _ in 0..repetitions {
                        let seconds = self.seconds(cpu / 1.2, ssd, fast) * noise(runs.len());
                        runs.push(run(scheme(cpu, disk, network), seconds));
                    }
                }
            }
        }
        runs
    }

    fn analysis(self) -> Analysis {
        let base = scheme(1.2, "HDD", "1Gbps");
        Analysis::new(&Runs::new(base, self.runs(|_| 1.0, 1)).expect("runs"))
    }
}

fn value(analysis: &Analysis, resource: Resource) -> f64 {
    analysis.indicator(resource).expect("an indicator").value
}
