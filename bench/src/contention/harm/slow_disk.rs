//! A limit for what a process reads from a disk, so that its threads compete for the disk and not for CPUs.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Where the controller of block devices is mounted (version 1 of control groups).
const CONTROLLER: &str = "/sys/fs/cgroup/blkio";

/// A control group with the limit. The directory is removed when this is dropped, if its processes have ended.
pub(super) struct SlowDisk {
    group: PathBuf,
}

impl SlowDisk {
    /// Makes a control group that reads at most `bytes_a_second` from the disk of a file, and moves a process into it.
    ///
    /// # Errors
    /// If this machine has no such controller, or it is not allowed.
    pub(super) fn new(file: &Path, process: u32, bytes_a_second: u64) -> Result<Self> {
        let disk = disk(file)?;
        let group = Path::new(CONTROLLER).join(format!("unfuse-bench-{process}"));
        fs::create_dir(&group).with_context(|| {
            format!(
                "this experiment limits what a server reads; creating {}",
                group.display()
            )
        })?;
        let slow = Self { group };
        slow.write(
            "blkio.throttle.read_bps_device",
            &format!("{disk} {bytes_a_second}"),
        )?;
        slow.write("cgroup.procs", &process.to_string())?;
        Ok(slow)
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.group.join(name);
        fs::write(&path, text).with_context(|| format!("writing {text} to {}", path.display()))
    }
}

impl Drop for SlowDisk {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.group);
    }
}

/// The number of the whole disk that has a file: `254:0`.
fn disk(file: &Path) -> Result<String> {
    let device = fs::metadata(file)?.dev();
    let number = format!(
        "{}:{}",
        nix::sys::stat::major(device),
        nix::sys::stat::minor(device)
    );
    let block = fs::canonicalize(Path::new("/sys/dev/block").join(&number))
        .with_context(|| format!("{} is on no block device", file.display()))?;
    if !block.join("partition").exists() {
        return Ok(number);
    }
    let parent = block.parent().context("a disk has the partition")?;
    let whole = fs::read_to_string(parent.join("dev"))?;
    Ok(whole.trim_end().to_owned())
}
