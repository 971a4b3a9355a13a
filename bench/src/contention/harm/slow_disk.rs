//! A limit for what a process reads from a disk, so that its threads compete for the disk and not for CPUs.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use unfuse_machine::cgroup::{ControlGroup, Setting};
use unfuse_machine::storage::Device;

/// A control group with the limit. The directory is removed when this is dropped, if its processes have ended.
pub(super) struct SlowDisk {
    dir: PathBuf,
}

impl SlowDisk {
    /// Makes a control group that reads at most `bytes_a_second` from the disk of a file, and moves a process into it. CPUs
    /// are scheduled as before, where the disk has a hierarchy of its own.
    ///
    /// # Errors
    /// If this machine has no such controller, or it is not allowed.
    pub(super) fn new(file: &Path, process: u32, bytes_a_second: u64) -> Result<Self> {
        let disk = Device::holding(file)?;
        let group = ControlGroup::find(&format!("unfuse-bench-{process}"))?;
        let limit = group.read_rate(&disk.number, Some(bytes_a_second))?;
        let dir = limit.path.parent().context("a control group")?.to_owned();
        fs::create_dir(&dir).with_context(|| {
            format!(
                "this experiment limits what a server reads; creating {}",
                dir.display()
            )
        })?;
        let slow = Self { dir };
        limit.apply()?;
        let enter = Setting {
            path: slow.dir.join("cgroup.procs"),
            text: process.to_string(),
        };
        enter.apply()?;
        Ok(slow)
    }
}

impl Drop for SlowDisk {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.dir);
    }
}
