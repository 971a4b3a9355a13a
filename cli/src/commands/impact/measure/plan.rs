//! The runs, their order, and the settings that they change.

use std::ffi::OsString;
use std::fmt::Write;
use std::path::PathBuf;

use anyhow::Result;
use unfuse_format::counted;
use unfuse_machine::cgroup::Setting;
use unfuse_profiler::perf_event;

use super::levels::{Cpu, Disk, Levels, SchemeLevels};
use super::machine::{Machine, loopback};

/// What `unfuse impact measure` will do.
#[derive(Debug)]
pub(super) struct Plan {
    pub levels: Levels,
    pub schemes: Vec<SchemeLevels>,
    pub repeat: u32,
    pub warm_up: u32,
    pub profile: bool,
    pub out: PathBuf,
    pub command: Vec<OsString>,
}

impl Plan {
    /// The schemes of the warm-up runs: always the fastest, because their times do not count.
    pub(super) fn warm_ups(&self) -> Vec<SchemeLevels> {
        let fastest = self.schemes.last().copied();
        (0..self.warm_up).filter_map(|_| fastest).collect()
    }

    /// The order of the runs that count. Each round runs every scheme once and begins with another one. Every second
    /// round runs backwards. So neither a drift over time nor the influence of the previous run looks like an effect.
    pub(super) fn order(&self) -> Vec<SchemeLevels> {
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

    /// Describes the plan as text.
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
            "{} ({} to warm up, {} × {}) of this command:\n  {}",
            counted(order.len() + self.warm_up as usize, "run"),
            self.warm_up,
            counted(self.schemes.len(), "scheme"),
            self.repeat,
            words.join(" ")
        );
        if self.profile {
            text.push_str("  each with the profiler; its overhead is part of the times\n");
        }
        let names: Vec<String> = order
            .iter()
            .map(|chosen| chosen.scheme().to_string())
            .collect();
        let _ = writeln!(
            text,
            "in this order (cpu/disk/network), with the base {}:\n  {}",
            names[0],
            names.join("  ")
        );
        let _ = writeln!(text, "results: {0}/runs.csv, {0}/logs", self.out.display());
        text.push_str("\nbefore the first run; undone after the last:\n");
        for dir in machine.group.iter().flat_map(|group| group.dirs()) {
            let _ = writeln!(text, "  create the control group {}", dir.display());
        }
        let ram = self.levels.disk.contains(&Disk::Ram);
        for (index, input) in machine.inputs.iter().enumerate().filter(|_| ram) {
            let _ = writeln!(
                text,
                "  copy {} ({} MiB) to {}/{index}, in memory",
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

    fn tell_scheme(
        &self,
        text: &mut String,
        chosen: &SchemeLevels,
        machine: &Machine,
    ) -> Result<()> {
        for Setting { path, text: value } in machine.settings(chosen)? {
            let _ = writeln!(text, "  write {value:?} to {}", path.display());
        }
        let confinement = machine.confinement(chosen);
        for (what, place) in &confinement.mounts {
            let _ = writeln!(
                text,
                "  the command sees {} at {} (in its own mount namespace)",
                what.display(),
                place.display()
            );
        }
        if chosen.disk != Disk::Ram {
            for input in &machine.inputs {
                let _ = writeln!(
                    text,
                    "  drop cached pages of {} before each run",
                    input.path.display()
                );
            }
        }
        if let Some(loopback) = loopback(chosen.network) {
            let tc = loopback.shaping().map_or_else(
                || "without a limit".to_owned(),
                |words| format!("tc {}", words.join(" ")),
            );
            let _ = writeln!(
                text,
                "  the command has only a loopback (in its own network namespace): {tc}; SPARK_LOCAL_IP=127.0.0.1"
            );
        }
        Ok(())
    }
}

/// Why the counters of the processor are not available, if they are not.
pub(super) fn uncounted() -> Option<String> {
    let error = perf_event::Counters::open(0).err()?;
    Some(format!(
        "instructions per cycle and stalls are not counted: the counters of the processor (PMU) are not available ({error})"
    ))
}

/// What a level of the CPU means for the indicators.
pub(super) fn caveat(levels: &Levels) -> &'static str {
    match levels.cpu {
        Cpu::Frequency(_) => {
            "the CPU level is a frequency, as in the paper; it holds for all programs of this machine"
        }
        Cpu::Bandwidth(_) => {
            "the CPU level is a bandwidth, not a frequency. Stalls for memory slow down as much as computing does, so MRI \
             shows little of them. The limit holds for all threads together: if fewer threads run than CPUs are left, \
             nothing is slower, and CRI is too small"
        }
    }
}
