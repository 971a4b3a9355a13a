//! The frequency of CPUs, on machines that allow setting it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::cgroup::Setting;
use crate::guardian::{Guardian, Undo};

const ROOT: &str = "/sys/devices/system/cpu/cpufreq";
const LOWER: &str = "scaling_min_freq";
const UPPER: &str = "scaling_max_freq";

/// All CPUs, in groups that share a frequency.
#[derive(Debug)]
pub struct Cpufreq {
    policies: Vec<PathBuf>,
    /// The range of the hardware, kHz.
    pub range: (u64, u64),
}

impl Cpufreq {
    /// Reads the frequency policies of this machine.
    ///
    /// # Errors
    /// If the frequency cannot be set, with the reason. Most often the machine is a virtual one.
    pub fn find() -> Result<Self> {
        Self::find_in(Path::new(ROOT))
    }

    fn find_in(root: &Path) -> Result<Self> {
        let mut policies: Vec<PathBuf> = fs::read_dir(root)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.join(UPPER).exists())
            .collect();
        policies.sort();
        let mut range = (0, u64::MAX);
        for policy in &policies {
            range.0 = range.0.max(number(&policy.join("cpuinfo_min_freq"))?);
            range.1 = range.1.min(number(&policy.join("cpuinfo_max_freq"))?);
        }
        if policies.is_empty() {
            bail!(
                "this machine does not let the CPU's frequency be set: {} has no policy",
                root.display()
            );
        }
        if range.0 >= range.1 {
            bail!("this machine's CPUs have no range of frequencies in common");
        }
        Ok(Self { policies, range })
    }

    /// Has the guardian restore the limits at the end.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn keep(&self, guardian: &mut Guardian) -> Result<()> {
        for policy in &self.policies {
            for file in [LOWER, UPPER] {
                let path = policy.join(file);
                let text = number(&path)?.to_string();
                guardian.will(&Undo::Write { path, text })?;
            }
        }
        Ok(())
    }

    /// Settings that fix all CPUs at a frequency, kHz. Their order keeps the lower limit below the
    /// upper one at every step.
    ///
    /// # Errors
    /// If the frequency is outside the range of the hardware.
    pub fn settings_at(&self, khz: u64) -> Result<Vec<Setting>> {
        if !(self.range.0..=self.range.1).contains(&khz) {
            bail!(
                "{khz} kHz is not between {} and {} kHz, what these CPUs can do",
                self.range.0,
                self.range.1
            );
        }
        let mut settings = Vec::new();
        for policy in &self.policies {
            let rises = number(&policy.join(UPPER))? < khz;
            let order = if rises {
                [UPPER, LOWER]
            } else {
                [LOWER, UPPER]
            };
            settings.extend(order.map(|file| Setting {
                path: policy.join(file),
                text: khz.to_string(),
            }));
        }
        Ok(settings)
    }
}

fn number(path: &Path) -> Result<u64> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    text.trim()
        .parse()
        .with_context(|| format!("{} holds no number", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_never_cross() {
        let dir = tempfile::tempdir().unwrap();
        let policy = dir.path().join("policy0");
        fs::create_dir(&policy).unwrap();
        for (file, khz) in [
            ("cpuinfo_min_freq", 800),
            ("cpuinfo_max_freq", 3600),
            (LOWER, 800),
            (UPPER, 1200),
        ] {
            fs::write(policy.join(file), format!("{khz}\n")).unwrap();
        }
        let cpufreq = Cpufreq::find_in(dir.path()).unwrap();
        assert_eq!(cpufreq.range, (800, 3600));
        let files = |khz| -> Vec<String> {
            let settings = cpufreq.settings_at(khz).unwrap().into_iter();
            settings
                .map(|s| s.path.file_name().unwrap().to_string_lossy().into_owned())
                .collect()
        };
        assert_eq!(files(2400), [UPPER, LOWER]);
        assert_eq!(files(800), [LOWER, UPPER]);
        assert!(
            cpufreq
                .settings_at(4000)
                .unwrap_err()
                .to_string()
                .contains("between 800 and 3600")
        );
    }

    #[test]
    fn a_virtual_machine_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let refused = Cpufreq::find_in(dir.path()).unwrap_err().to_string();
        assert!(refused.contains("does not let the CPU's frequency be set"));
    }
}
