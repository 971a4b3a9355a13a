//! Which runs are made, in which order, and what they change.

use std::ffi::OsString;
use std::fmt::Write;
use std::path::PathBuf;

use anyhow::Result;
use unfuse_machine::cgroup::Setting;
use unfuse_profiler::perf_event;

use super::levels::{Chosen, Cpu, Disk, Levels};
use super::machine::{Machine, loopback};

/// What is to be done.
#[derive(Debug)]
pub(super) struct Plan {
    pub levels: Levels,
    pub schemes: Vec<Chosen>,
    pub repeat: u32,
    pub warm_up: u32,
    pub profile: bool,
    pub out: PathBuf,
    pub command: Vec<OsString>,
}

impl Plan {
    /// Schemes to warm up with: the fastest, as it is not looked at.
    pub(super) fn warm_ups(&self) -> Vec<Chosen> {
        let fastest = self.schemes.last().copied();
        (0..self.warm_up).filter_map(|_| fastest).collect()
    }

    /// The order of the runs that count. Each round has every scheme once, begins with another one, and every other round
    /// goes backwards: what drifts over time or follows from the run before does not look like an effect.
    pub(super) fn order(&self) -> Vec<Chosen> {
        let mut order = Vec::new();
        for round in 0..self.repeat as usize {
            let mut schemes = self.schemes.clone();
            let first = round % schemes.len();
            schemes.rotate_left(first);
            if round % 2 == 1 {
                schemes.reverse();
            }
            order.extend(schemes);
        }
        order
    }

    /// What would be done, for people.
    pub(super) fn tell(&self, machine: &Machine) -> Result<String> {
        let mut text = String::new();
        let words: Vec<_> = self
            .command
            .iter()
            .map(|word| word.to_string_lossy())
            .collect();
        let order = self.order();
        let _ = writeln!(
            text,
            "would run {} times ({} to warm up, {} schemes × {}):\n  {}",
            order.len() + self.warm_up as usize,
            self.warm_up,
            self.schemes.len(),
            self.repeat,
            words.join(" ")
        );
        if self.profile {
            text.push_str("  each under the profiler, whose own work is in the times\n");
        }
        let names: Vec<String> = order
            .iter()
            .map(|chosen| chosen.scheme().to_string())
            .collect();
        let _ = writeln!(
            text,
            "in this order (cpu/disk/network), the base {}:\n  {}",
            names[0],
            names.join("  ")
        );
        let _ = writeln!(text, "and write {0}/runs.csv, {0}/logs", self.out.display());
        text.push_str("\nbefore the first run, and removed after the last:\n");
        for dir in machine.group.iter().flat_map(|group| group.dirs()) {
            let _ = writeln!(text, "  make the control group {}", dir.display());
        }
        let ram = self.levels.disk.contains(&Disk::Ram);
        for (at, input) in machine.inputs.iter().enumerate().filter(|_| ram) {
            let _ = writeln!(
                text,
                "  copy {} ({} MiB) to {}/{at}, in memory",
                input.path.display(),
                input.bytes >> 20,
                machine.copies.display()
            );
        }
        for chosen in &self.schemes {
            let _ = writeln!(text, "\nat {}:", chosen.scheme());
            self.tell_scheme(&mut text, chosen, machine)?;
        }
        let _ = writeln!(text, "\n{}", caveat(&self.levels));
        if let Some(why) = uncounted() {
            let _ = writeln!(text, "{why}");
        }
        Ok(text)
    }

    fn tell_scheme(&self, text: &mut String, chosen: &Chosen, machine: &Machine) -> Result<()> {
        for Setting { path, text: value } in machine.settings(chosen)? {
            let _ = writeln!(text, "  write {value:?} to {}", path.display());
        }
        let confinement = machine.confinement(chosen);
        for (what, place) in &confinement.mounts {
            let _ = writeln!(
                text,
                "  the command sees {} at {} (mount namespace of its own)",
                what.display(),
                place.display()
            );
        }
        if chosen.disk != Disk::Ram {
            for input in &machine.inputs {
                let _ = writeln!(
                    text,
                    "  give up cached pages of {} before each run",
                    input.path.display()
                );
            }
        }
        if let Some(loopback) = loopback(chosen.network) {
            let tc = loopback.shaping().map_or_else(
                || "as fast as it goes".to_owned(),
                |words| format!("tc {}", words.join(" ")),
            );
            let _ = writeln!(
                text,
                "  the command has no network but a loopback (network namespace of its own): {tc}; SPARK_LOCAL_IP=127.0.0.1"
            );
        }
        Ok(())
    }
}

/// Why the processor will not tell how it got on, if it will not.
pub(super) fn uncounted() -> Option<String> {
    let error = perf_event::Counters::open(0).err()?;
    Some(format!(
        "instructions per cycle and stalls are not counted: the processor's counters (PMU) cannot be had here ({error})"
    ))
}

/// What the way in which the CPU is made slower means.
pub(super) fn caveat(levels: &Levels) -> &'static str {
    match levels.cpu {
        Cpu::Frequency(_) => {
            "the CPU's speed is its frequency, as in the paper; all programs of this machine get it"
        }
        Cpu::Bandwidth(_) => {
            "the CPU's speed is a bandwidth here, not a frequency: stalls for memory take as much longer as computing \
             does, so MRI shows little of them; and it holds for all threads together, so where fewer threads run than \
             CPUs are left, nothing is slower and CRI is too small"
        }
    }
}
