//! Sets levels on this machine.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use unfuse_files::random_digits;
use unfuse_machine::cgroup::{ControlGroup, Setting};
use unfuse_machine::confine::{Confinement, Loopback};
use unfuse_machine::cpufreq::Cpufreq;
use unfuse_machine::guardian::{Guardian, Undo};
use unfuse_machine::storage::{self, Device};

use super::levels::{Cpu, Disk, Levels, Network, SchemeLevels};

/// An input of the command.
#[derive(Clone, Debug)]
pub(super) struct Input {
    pub path: PathBuf,
    pub files: Vec<PathBuf>,
    pub bytes: u64,
}

/// Finds the files of inputs and their sizes.
pub(super) fn inputs(paths: &[PathBuf]) -> Result<Vec<Input>> {
    let input = |path: &PathBuf| {
        let path = std::fs::canonicalize(path)
            .with_context(|| format!("--input {}: no such file or directory", path.display()))?;
        let files = storage::files(&path)?;
        let bytes = storage::bytes(&files)?;
        if bytes == 0 {
            bail!("--input {}: there is nothing to read in it", path.display());
        }
        Ok(Input { path, files, bytes })
    };
    paths.iter().map(input).collect()
}

/// The parts of this machine that the levels need.
#[derive(Debug)]
pub(super) struct Machine {
    /// `None` if it cannot be created and the levels do not need it.
    pub group: Option<ControlGroup>,
    pub cpufreq: Option<Cpufreq>,
    pub inputs: Vec<Input>,
    /// The disks of the inputs; empty if they are unknown.
    pub devices: Vec<Device>,
    /// Directory for copies of the inputs.
    pub copies: PathBuf,
}

impl Machine {
    /// Finds the parts that the levels need. Changes nothing.
    ///
    /// # Errors
    /// If this machine lacks one; the error names it, and what to do instead.
    pub(super) fn find(levels: &Levels, inputs: Vec<Input>) -> Result<Self> {
        let name = format!("unfuse-impact-{}", std::process::id());
        let rated = levels.disk.iter().any(|disk| matches!(disk, Disk::Rate(_)));
        let group = ControlGroup::find(&name);
        let (group, cpufreq) = match &levels.cpu {
            Cpu::Frequency(_) => (
                if rated { Some(group?) } else { group.ok() },
                Some(Cpufreq::find().context(
                    "the frequency of the CPU cannot be set; give bandwidths instead: --schemes cpu=1,2",
                )?),
            ),
            Cpu::Bandwidth(_) => (
                Some(group.context("the CPU's bandwidth cannot be limited")?),
                None,
            ),
        };
        let devices: Result<Vec<Device>> = inputs
            .iter()
            .map(|input| Device::holding(&input.path))
            .collect();
        let mut devices = match devices {
            Ok(devices) => devices,
            Err(error) if rated => return Err(error.context("reading cannot be limited")),
            Err(_) => Vec::new(),
        };
        devices.dedup();
        let machine = Self {
            group,
            cpufreq,
            inputs,
            devices,
            copies: Path::new(storage::MEMORY).join(format!("{name}-{}", random_digits()?)),
        };
        if levels.disk.contains(&Disk::Ram) {
            storage::check_memory(machine.inputs.iter().map(|input| input.bytes).sum())?;
        }
        for chosen in levels.schemes() {
            machine.settings(&chosen)?;
        }
        machine.try_out(levels)?;
        Ok(machine)
    }

    /// Checks that this user can create the namespaces, by creating them once.
    fn try_out(&self, levels: &Levels) -> Result<()> {
        let memory = PathBuf::from(storage::MEMORY);
        let ram = levels.disk.contains(&Disk::Ram);
        let networks = levels
            .network
            .iter()
            .filter_map(|network| loopback(*network));
        let network = networks.max_by_key(|loopback| loopback.bits);
        if !ram && network.is_none() {
            return Ok(());
        }
        let trial = Confinement {
            groups: Vec::new(),
            mounts: ram.then(|| (memory.clone(), memory)).into_iter().collect(),
            loopback: network,
        };
        let mut command = within(&trial)?;
        unfuse_machine::run(command.arg("true"))
            .context("this machine or user cannot create the namespaces that the schemes need; leave ram and loopbacks out of --schemes")
    }

    /// The settings in kernel files that a scheme needs.
    pub(super) fn settings(&self, chosen: &SchemeLevels) -> Result<Vec<Setting>> {
        let mut settings = match (&self.cpufreq, &self.group) {
            (Some(cpufreq), _) => cpufreq.settings_at((chosen.cpu * 1e6).round() as u64)?,
            (None, Some(group)) => group.cpus(chosen.cpu),
            (None, None) => Vec::new(),
        };
        let rate = match chosen.disk {
            Disk::Rate(bytes) => Some(bytes),
            Disk::AsIs | Disk::Ram => None,
        };
        for device in &self.devices {
            let Some(group) = &self.group else { continue };
            match group.read_rate(&device.number, rate) {
                Ok(setting) => settings.push(setting),
                Err(error) if rate.is_some() => return Err(error),
                // Without a controller there is no limit to remove.
                Err(_) => {}
            }
        }
        Ok(settings)
    }

    /// The confinement of a run.
    pub(super) fn confinement(&self, chosen: &SchemeLevels) -> Confinement {
        let copies = || {
            let inputs = self.inputs.iter().enumerate();
            inputs.map(|(index, input)| (self.copies.join(index.to_string()), input.path.clone()))
        };
        Confinement {
            groups: self
                .group
                .as_ref()
                .map(ControlGroup::dirs)
                .unwrap_or_default(),
            mounts: match chosen.disk {
                Disk::Ram => copies().collect(),
                Disk::AsIs | Disk::Rate(_) => Vec::new(),
            },
            loopback: loopback(chosen.network),
        }
    }

    /// Creates everything that outlives a run; the guardian removes it.
    pub(super) fn prepare(&mut self, levels: &Levels, guardian: &mut Guardian) -> Result<()> {
        if let Some(cpufreq) = &self.cpufreq {
            cpufreq.keep(guardian)?;
        }
        if let Some(group) = &self.group
            && let Err(error) = group.create(guardian)
        {
            let rated = levels.disk.iter().any(|disk| matches!(disk, Disk::Rate(_)));
            if self.cpufreq.is_none() || rated {
                return Err(error);
            }
            self.group = None;
        }
        if levels.disk.contains(&Disk::Ram) {
            guardian.will(&Undo::Remove(self.copies.clone()))?;
            // New and private, because the inputs may be private: other users can neither read the
            // copies nor plant the directory.
            std::fs::DirBuilder::new()
                .mode(0o700)
                .create(&self.copies)
                .with_context(|| format!("cannot create {}", self.copies.display()))?;
            for (index, input) in self.inputs.iter().enumerate() {
                storage::copy(&input.path, &self.copies.join(index.to_string()))?;
            }
        }
        Ok(())
    }
}

/// The private loopback of a level, if it has one.
pub(super) fn loopback(network: Network) -> Option<Loopback> {
    match network {
        Network::AsIs => None,
        Network::Loopback => Some(Loopback { bits: None }),
        Network::Rate(bits) => Some(Loopback { bits: Some(bits) }),
    }
}

/// A command that enters a confinement and then executes the command appended to its arguments.
pub(super) fn within(confinement: &Confinement) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(["impact", "within"])
        .arg(serde_json::to_string(confinement)?)
        .arg("--");
    if confinement.loopback.is_some() {
        // The private network does not have the machine's own address.
        command.env("SPARK_LOCAL_IP", "127.0.0.1");
    }
    Ok(command)
}
