//! Enters a control group and private namespaces before a program runs in them. The kernel removes a namespace
//! with its last process, so nothing has to be undone.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use serde::{Deserialize, Serialize};

use crate::run;

/// The limits of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// Directories of control groups to enter.
    pub groups: Vec<PathBuf>,
    /// Bind mounts, which only this program sees: (source, mount point).
    pub mounts: Vec<(PathBuf, PathBuf)>,
    /// A private network that has only a loopback.
    pub loopback: Option<Loopback>,
}

/// How fast the private loopback is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loopback {
    /// Bits per second; `None` for no limit.
    pub bits: Option<u64>,
}

impl Loopback {
    /// Arguments of `tc` for the limit, if there is one.
    pub fn shaping(&self) -> Option<Vec<String>> {
        let bits = self.bits?;
        // The bucket holds 2 ms of data, but at least the largest packet of a loopback.
        let burst = (bits / 8 / 500).max(128 << 10);
        let words = format!("qdisc add dev lo root tbf rate {bits}bit burst {burst} latency 100ms");
        Some(words.split(' ').map(str::to_owned).collect())
    }
}

impl Confinement {
    /// Confines this process and the programs that it starts.
    ///
    /// # Errors
    /// If the kernel refuses; most often for lack of rights.
    pub fn enter(&self) -> Result<()> {
        for group in &self.groups {
            let file = group.join("cgroup.procs");
            fs::write(&file, std::process::id().to_string())
                .with_context(|| format!("cannot enter {}", file.display()))?;
        }
        if !self.mounts.is_empty() {
            unshare(CloneFlags::CLONE_NEWNS)
                .context("a private view of files (mount namespace) needs root")?;
            let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
            mount(None::<&Path>, "/", None::<&Path>, private, None::<&Path>)
                .context("mounts cannot be made private")?;
        }
        for (what, place) in &self.mounts {
            mount(
                Some(what),
                place,
                None::<&Path>,
                MsFlags::MS_BIND,
                None::<&Path>,
            )
            .with_context(|| format!("cannot show {} at {}", what.display(), place.display()))?;
        }
        if let Some(loopback) = &self.loopback {
            unshare(CloneFlags::CLONE_NEWNET)
                .context("a private network (network namespace) needs root")?;
            run(Command::new("ip").args(["link", "set", "lo", "up"]))
                .context("the private loopback needs `ip` (Debian: apt-get install iproute2)")?;
            if let Some(shaping) = loopback.shaping() {
                run(Command::new("tc").args(shaping)).context(
                    "limiting the loopback needs `tc` (Debian: apt-get install iproute2)",
                )?;
            }
        }
        Ok(())
    }
}
