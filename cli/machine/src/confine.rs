//! Entering a control group and private namespaces, before a program is run in them. Namespaces end with the last
//! process in them, so they need not be undone.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use serde::{Deserialize, Serialize};

use crate::run;

/// What a program is confined to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// Directories of control groups to enter.
    pub groups: Vec<PathBuf>,
    /// What is seen at other places instead of what is there: (what, where).
    pub mounts: Vec<(PathBuf, PathBuf)>,
    /// A network with nothing but a loopback.
    pub loopback: Option<Loopback>,
}

/// How fast the private loopback is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loopback {
    /// Bits a second; none for as fast as it goes.
    pub bits: Option<u64>,
}

impl Loopback {
    /// What `tc` is asked for, if it is.
    pub fn shaping(&self) -> Option<Vec<String>> {
        let bits = self.bits?;
        // A bucket of 2 ms, and never below the largest packet of a loopback.
        let burst = (bits / 8 / 500).max(128 << 10);
        let words = format!("qdisc add dev lo root tbf rate {bits}bit burst {burst} latency 100ms");
        Some(words.split(' ').map(str::to_owned).collect())
    }
}

impl Confinement {
    /// Confines this process, and what it starts.
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
