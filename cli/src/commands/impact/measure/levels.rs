//! Levels of resources, parsed from `--schemes`.

use std::fmt;

use anyhow::{Context, Result, bail};
use unfuse_format::units;
use unfuse_impact::Scheme;
use unfuse_machine::cpufreq::Cpufreq;

use super::machine::Input;

/// Levels of each resource, the base first.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Levels {
    pub cpu: Cpu,
    pub disk: Vec<Disk>,
    pub network: Vec<Network>,
}

/// How the CPU is made slower.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cpu {
    /// By frequency, GHz.
    Frequency(Vec<f64>),
    /// By bandwidth, CPUs.
    Bandwidth(Vec<f64>),
}

/// The place from which inputs are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Disk {
    /// Their own disk.
    AsIs,
    /// Their own disk, limited to this many bytes per second.
    Rate(u64),
    /// A copy in memory.
    Ram,
}

/// The network of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Network {
    /// This machine's.
    AsIs,
    /// A private loopback, limited to this many bits per second.
    Rate(u64),
    /// A private loopback without a limit.
    Loopback,
}

impl Levels {
    /// Parses `RESOURCE=LEVEL,…`. Resources that are not named get default levels, which depend on
    /// the machine and the inputs.
    pub(super) fn parse(texts: &[String], inputs: &[Input]) -> Result<Self> {
        let mut chosen = ChosenLevels::default();
        for text in texts {
            chosen.add(text)?;
        }
        let cpu = match chosen.cpu {
            Some(cpu) => cpu,
            None => usual_cpu(),
        };
        cpu.check()?;
        let usual = match inputs {
            [] => vec![Disk::AsIs],
            _ => vec![Disk::AsIs, Disk::Ram],
        };
        let levels = Self {
            cpu,
            disk: chosen.disk.unwrap_or(usual),
            network: chosen.network.unwrap_or_else(|| vec![Network::AsIs]),
        };
        levels.check(inputs)?;
        Ok(levels)
    }

    fn check(&self, inputs: &[Input]) -> Result<()> {
        if inputs.is_empty() && self.disk != [Disk::AsIs] {
            bail!("levels of the disk need --input with the files that the command reads");
        }
        let is_host = |network: &Network| *network == Network::AsIs;
        if self.network.len() > 1 && self.network.iter().any(is_host) {
            bail!(
                "network=host cannot be compared with the other levels, which are private loopbacks; the fastest of them is network=loopback"
            );
        }
        for (what, names) in [
            (
                "disk",
                self.disk.iter().map(Disk::to_string).collect::<Vec<_>>(),
            ),
            (
                "network",
                self.network.iter().map(Network::to_string).collect(),
            ),
        ] {
            let mut distinct = names.clone();
            distinct.sort();
            distinct.dedup();
            if distinct.len() < names.len() {
                bail!("{what}={}: one level is given twice", names.join(","));
            }
        }
        Ok(())
    }

    /// All combinations, the base first.
    pub(super) fn schemes(&self) -> Vec<SchemeLevels> {
        let mut all = Vec::new();
        for network in &self.network {
            for disk in &self.disk {
                for cpu in self.cpu.values() {
                    all.push(SchemeLevels {
                        cpu: *cpu,
                        disk: *disk,
                        network: *network,
                    });
                }
            }
        }
        all
    }
}

/// One level of each resource.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SchemeLevels {
    pub cpu: f64,
    pub disk: Disk,
    pub network: Network,
}

impl SchemeLevels {
    pub(super) fn scheme(&self) -> Scheme {
        Scheme {
            cpu: self.cpu,
            disk: self.disk.to_string(),
            network: self.network.to_string(),
        }
    }
}

#[derive(Default)]
struct ChosenLevels {
    cpu: Option<Cpu>,
    disk: Option<Vec<Disk>>,
    network: Option<Vec<Network>>,
}

impl ChosenLevels {
    fn add(&mut self, text: &str) -> Result<()> {
        let known = "the resources are cpu, disk and network, such as cpu=1,2";
        let Some((resource, levels)) = text.split_once('=') else {
            bail!("--schemes {text}: RESOURCE=LEVEL,… is expected; {known}");
        };
        let words: Vec<&str> = levels.split(',').map(str::trim).collect();
        let twice = match resource {
            "cpu" => self.cpu.replace(Cpu::parse(&words)?).is_some(),
            "disk" => self.disk.replace(each(&words, Disk::parse)?).is_some(),
            "network" => self
                .network
                .replace(each(&words, Network::parse)?)
                .is_some(),
            _ => bail!("--schemes {text}: {resource:?} is unknown; {known}"),
        };
        if twice {
            bail!("--schemes {resource}=… is given twice");
        }
        Ok(())
    }
}

fn each<T>(words: &[&str], parse: impl Fn(&str) -> Result<T>) -> Result<Vec<T>> {
    words.iter().map(|word| parse(word)).collect()
}

/// The default levels: half of this machine and all of it.
fn usual_cpu() -> Cpu {
    match Cpufreq::find() {
        Ok(found) => {
            let (low, high) = found.range;
            Cpu::Frequency(vec![low as f64 / 1e6, high as f64 / 1e6])
        }
        Err(_) => {
            let all = std::thread::available_parallelism().map_or(1, usize::from) as f64;
            Cpu::Bandwidth(vec![all / 2.0, all])
        }
    }
}

/// The minimum that the kernel accepts: a quota of 1 ms in our period of 20 ms
/// (cli/machine/src/cgroup.rs).
const LEAST_CPUS: f64 = 0.05;

impl Cpu {
    fn parse(words: &[&str]) -> Result<Self> {
        let frequencies: Vec<&str> = words
            .iter()
            .filter_map(|word| word.strip_suffix("GHz"))
            .collect();
        let number = |word: &str| -> Result<f64> {
            let number: f64 = word.parse().with_context(|| {
                format!("cpu={word}: a number of CPUs such as 0.5 or 2, or a frequency such as 2.4GHz is expected")
            })?;
            if !(0.01..=100_000.0).contains(&number) {
                bail!("cpu={word} is not possible");
            }
            Ok(number)
        };
        if frequencies.is_empty() {
            let values = each(words, number)?;
            if let Some(less) = values.iter().find(|value| **value < LEAST_CPUS) {
                bail!(
                    "cpu={less} is too little: the least that the kernel allows is {LEAST_CPUS} CPUs"
                );
            }
            return Ok(Self::Bandwidth(values));
        }
        if frequencies.len() < words.len() {
            bail!(
                "cpu={}: frequencies and numbers of CPUs cannot be mixed",
                words.join(",")
            );
        }
        Ok(Self::Frequency(each(&frequencies, number)?))
    }

    pub(super) fn values(&self) -> &[f64] {
        match self {
            Self::Frequency(values) | Self::Bandwidth(values) => values,
        }
    }

    fn check(&self) -> Result<()> {
        let values = self.values();
        if values.len() < 2 {
            bail!("at least two levels of the CPU are needed, such as cpu=1,2");
        }
        if values.windows(2).any(|pair| pair[0] >= pair[1]) {
            bail!("levels of the CPU must rise, such as cpu=1,2");
        }
        let all = std::thread::available_parallelism().map_or(1, usize::from) as f64;
        if let (Self::Bandwidth(values), Some(last)) = (self, values.last())
            && *last > all
        {
            bail!(
                "cpu={last}: this machine has {all} CPUs, and no level of {values:?} can be more"
            );
        }
        Ok(())
    }
}

impl Disk {
    fn parse(word: &str) -> Result<Self> {
        match word {
            "disk" => Ok(Self::AsIs),
            "ram" => Ok(Self::Ram),
            rate => rate
                .strip_suffix("ps")
                .and_then(|size| units::parse_size(size).ok())
                .filter(|bytes| *bytes > 0)
                .map(Self::Rate)
                .with_context(|| {
                    format!("disk={word}: disk, ram or a rate such as 50MBps is expected")
                }),
        }
    }
}

impl Network {
    fn parse(word: &str) -> Result<Self> {
        let rate = || {
            let units = [
                ("kbit", 1_000),
                ("mbit", 1_000_000),
                ("gbit", 1_000_000_000),
            ];
            let (number, unit) = units
                .iter()
                .find_map(|(name, unit)| Some((word.strip_suffix(name)?, *unit)))?;
            let bits = number.parse::<f64>().ok()? * f64::from(unit);
            // Below 8 kbit/s no packet gets through; tc cannot express rates above the maximum.
            (8_000.0..=1e12)
                .contains(&bits)
                .then_some(Self::Rate(bits as u64))
        };
        match word {
            "host" => Ok(Self::AsIs),
            "loopback" => Ok(Self::Loopback),
            _ => rate().with_context(|| {
                format!("network={word}: host, loopback or a rate such as 100mbit is expected")
            }),
        }
    }
}

impl fmt::Display for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AsIs => f.write_str("disk"),
            Self::Ram => f.write_str("ram"),
            // In units of 1024, as sizes are parsed: an MB has 1024 KB.
            Self::Rate(bytes) if bytes % (1 << 20) == 0 => write!(f, "{}MBps", bytes >> 20),
            Self::Rate(bytes) => write!(f, "{:.1}KBps", *bytes as f64 / 1024.0),
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AsIs => f.write_str("host"),
            Self::Loopback => f.write_str("loopback"),
            Self::Rate(bits) if bits % 1_000_000 == 0 => write!(f, "{}mbit", bits / 1_000_000),
            Self::Rate(bits) => write!(f, "{bits}bit"),
        }
    }
}
