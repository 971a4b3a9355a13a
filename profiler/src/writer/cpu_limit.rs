//! The CPU limit (CFS quota) of a process's control group, as containers have one.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use procfs::process::Process;

/// The group with the tightest limit among those of a process, with its counters. In a container with its own
/// namespace, only the container's group is visible.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CpuLimit {
    /// The group's directory, and after a # its inode: several containers may have the same path.
    pub(super) group: String,
    /// CPU seconds a second that all its processes may use together.
    pub(super) cpus: f64,
    /// CPU time used by them, µs.
    pub(super) used_us: u64,
    /// Periods in which the quota was exhausted.
    pub(super) throttled: u64,
    /// Time in which they were held back, summed over CPUs, µs.
    pub(super) throttled_us: u64,
    pub(super) periods: u64,
}

/// The groups of a process. They are looked up again after the process has moved.
#[derive(Debug, Default)]
pub(super) struct Groups {
    /// Content of /proc/PID/cgroup at the look-up.
    text: String,
    found: Option<Hierarchy>,
}

#[derive(Debug, Clone, PartialEq)]
enum Hierarchy {
    /// Version 1: the group in the hierarchy of the CPU controller, the mount point of that hierarchy, and that of CPU
    /// accounting.
    V1 {
        group: PathBuf,
        mount: PathBuf,
        accounting: PathBuf,
    },
    /// Version 2: the group, and the mount point.
    V2 { group: PathBuf, mount: PathBuf },
}

impl Groups {
    /// The tightest limit on a process, if it has any.
    pub(super) fn limit(&mut self, pid: u32) -> Option<CpuLimit> {
        let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
        if text != self.text {
            let mounts = mounts(pid).unwrap_or_default();
            self.found = Hierarchy::find(&text, &mounts);
            self.text = text;
        }
        self.found.as_ref()?.limit()
    }
}

/// A mounted hierarchy of control groups.
#[derive(Debug)]
struct Mount {
    /// The controllers of version 1; in version 2 there is one hierarchy for all.
    controllers: Option<Vec<String>>,
    /// The mounted part of the hierarchy.
    root: String,
    at: PathBuf,
}

fn mounts(pid: u32) -> Option<Vec<Mount>> {
    let mounts = Process::new(pid.cast_signed()).ok()?.mountinfo().ok()?;
    let of_groups = mounts.0.into_iter().filter_map(|mount| {
        let controllers = match mount.fs_type.as_str() {
            "cgroup" => Some(mount.super_options.into_keys().collect()),
            "cgroup2" => None,
            _ => return None,
        };
        Some(Mount {
            controllers,
            root: mount.root,
            at: mount.mount_point,
        })
    });
    Some(of_groups.collect())
}

impl Mount {
    /// The directory of a group; if it is not mounted here (a container's, seen from inside), that of the mount.
    fn dir(&self, path: &str) -> PathBuf {
        match Path::new(path).strip_prefix(&self.root) {
            Ok(below) if below != Path::new("") && self.at.join(below).is_dir() => {
                self.at.join(below)
            }
            _ => self.at.clone(),
        }
    }
}

impl Hierarchy {
    /// Finds the groups in the text of /proc/PID/cgroup.
    fn find(text: &str, mounts: &[Mount]) -> Option<Self> {
        let v1 = |controller: &str| {
            mounts.iter().find(|mount| {
                let all = mount.controllers.iter().flatten();
                all.into_iter().any(|name| name == controller)
            })
        };
        let path = |of: &str| {
            text.lines().find_map(|line| {
                let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
                controllers
                    .split(',')
                    .any(|name| name == of)
                    .then_some(path)
            })
        };
        if let (Some(cpu), Some(group)) = (v1("cpu"), path("cpu")) {
            // Otherwise the use of the limited group is not counted.
            path("cpuacct").filter(|accounted| *accounted == group)?;
            return Some(Self::V1 {
                group: cpu.dir(group),
                mount: cpu.at.clone(),
                accounting: v1("cpuacct")?.at.clone(),
            });
        }
        let unified = mounts.iter().find(|mount| mount.controllers.is_none())?;
        Some(Self::V2 {
            group: unified.dir(path("")?),
            mount: unified.at.clone(),
        })
    }

    fn limit(&self) -> Option<CpuLimit> {
        let (group, mount) = match self {
            Self::V1 { group, mount, .. } | Self::V2 { group, mount } => (group, mount),
        };
        let limits = group
            .ancestors()
            .take_while(|dir| dir.starts_with(mount))
            .filter_map(|dir| Some((self.cpus(dir)?, dir)));
        let (cpus, dir) = limits.min_by(|a, b| a.0.total_cmp(&b.0))?;
        let stat = CpuStat::read(dir)?;
        let (used_us, throttled_us) = match self {
            Self::V1 { accounting, .. } => {
                let dir = accounting.join(dir.strip_prefix(mount).ok()?);
                let used = number(&dir.join("cpuacct.usage"))? / 1000;
                (used, stat.get("throttled_time")? / 1000)
            }
            Self::V2 { .. } => (stat.get("usage_usec")?, stat.get("throttled_usec")?),
        };
        Some(CpuLimit {
            group: format!("{}#{}", dir.display(), fs::metadata(dir).ok()?.ino()),
            cpus,
            used_us,
            throttled: stat.get("nr_throttled")?,
            throttled_us,
            periods: stat.get("nr_periods")?,
        })
    }

    /// The quota of the group itself, if it has one.
    fn cpus(&self, dir: &Path) -> Option<f64> {
        let (quota, period) = match self {
            // -1 without a quota.
            Self::V1 { .. } => (
                number(&dir.join("cpu.cfs_quota_us"))?,
                number(&dir.join("cpu.cfs_period_us"))?,
            ),
            // "max 100000" without a quota.
            Self::V2 { .. } => {
                let text = fs::read_to_string(dir.join("cpu.max")).ok()?;
                let (quota, period) = text.trim().split_once(' ')?;
                (quota.parse().ok()?, period.parse().ok()?)
            }
        };
        (quota > 0 && period > 0).then(|| quota as f64 / period as f64)
    }
}

fn number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// A group's `cpu.stat`.
struct CpuStat(String);

impl CpuStat {
    fn read(dir: &Path) -> Option<Self> {
        fs::read_to_string(dir.join("cpu.stat")).ok().map(Self)
    }

    fn get(&self, name: &str) -> Option<u64> {
        let mut words = self.0.lines().filter_map(|line| line.split_once(' '));
        words.find(|(key, _)| *key == name)?.1.trim().parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(dir: &Path, root: &str, controllers: &[&str]) -> Mount {
        let names = controllers.iter().map(|&name| name.to_owned()).collect();
        Mount {
            controllers: (!controllers.is_empty()).then_some(names),
            root: root.to_owned(),
            at: dir.to_owned(),
        }
    }

    fn write(dir: &Path, files: &[(&str, &str)]) {
        fs::create_dir_all(dir).unwrap();
        for (name, text) in files {
            fs::write(dir.join(name), text).unwrap();
        }
    }

    #[test]
    fn the_tightest_limit_of_version_2_counts() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path();
        let stat = "usage_usec 5000\nnr_periods 10\nnr_throttled 4\nthrottled_usec 7\n";
        write(
            &dir.join("pod"),
            &[("cpu.max", "150000 100000\n"), ("cpu.stat", stat)],
        );
        write(&dir.join("pod/container"), &[("cpu.max", "max 100000\n")]);
        let mounts = [mount(dir, "/", &[])];
        let found = Hierarchy::find("0::/pod/container\n", &mounts).unwrap();
        let limit = found.limit().unwrap();
        let inode = fs::metadata(dir.join("pod")).unwrap().ino();
        let expected = CpuLimit {
            group: format!("{}#{}", dir.join("pod").display(), inode),
            cpus: 1.5,
            used_us: 5000,
            throttled: 4,
            throttled_us: 7,
            periods: 10,
        };
        assert_eq!(limit, expected);
        write(&dir.join("pod"), &[("cpu.max", "max 100000\n")]);
        assert_eq!(found.limit(), None);
    }

    #[test]
    fn version_1_as_a_container_shows_it() {
        let root = tempfile::tempdir().unwrap();
        let (cpu, accounting) = (root.path().join("cpu"), root.path().join("cpuacct"));
        let stat = "nr_periods 10\nnr_throttled 4\nthrottled_time 7000\n";
        let quota = [
            ("cpu.cfs_quota_us", "50000\n"),
            ("cpu.cfs_period_us", "100000\n"),
        ];
        write(&cpu, &quota);
        write(&cpu, &[("cpu.stat", stat)]);
        write(&accounting, &[("cpuacct.usage", "9000000\n")]);
        // The container's own group is mounted, without its parents.
        let mounts = [
            mount(&cpu, "/docker/1", &["rw", "cpu"]),
            mount(&accounting, "/docker/1", &["rw", "cpuacct"]),
            mount(&root.path().join("unified"), "/", &[]),
        ];
        for text in [
            "2:cpuacct:/docker/1\n1:cpu:/docker/1\n0::/\n",
            "2:cpuacct:/\n1:cpu:/\n0::/\n",
        ] {
            let limit = Hierarchy::find(text, &mounts).unwrap().limit().unwrap();
            assert_eq!((limit.cpus, limit.used_us, limit.periods), (0.5, 9000, 10));
            assert_eq!(limit.throttled_us, 7);
        }
        write(&cpu, &[("cpu.cfs_quota_us", "-1\n")]);
        let found = Hierarchy::find("2:cpuacct:/\n1:cpu:/\n", &mounts).unwrap();
        assert_eq!(found.limit(), None);
        // The limited group's CPU time is not counted.
        assert_eq!(
            Hierarchy::find("2:cpuacct:/\n1:cpu:/docker/1\n", &mounts),
            None
        );
    }
}
