//! A control group for a program: limits its CPUs and its disk reads, and counts its CPU time.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::guardian::{Guardian, Undo};
use crate::priority::is_held_back;

/// Period of the CPU bandwidth limit, µs. It is short so that an unfinished period hardly changes a run's time.
const PERIOD_US: u64 = 20_000;

/// The place of a control group, which may not exist yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlGroup {
    version: Version,
    /// Directory of the CPU controller.
    cpu: PathBuf,
    /// Directory in which the kernel counts CPU time.
    account: Option<PathBuf>,
    /// Directory of the disk controller.
    io: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    V1,
    V2,
}

/// A write to a kernel file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The file.
    pub path: PathBuf,
    /// The text to write.
    pub text: String,
}

impl Setting {
    /// Writes the text.
    ///
    /// # Errors
    /// If the kernel refuses the write; the error names the file.
    pub fn apply(&self) -> Result<()> {
        fs::write(&self.path, &self.text)
            .with_context(|| format!("cannot write {:?} to {}", self.text, self.path.display()))
    }
}

impl ControlGroup {
    /// Finds the place where this machine allows a group of this name. Creates nothing.
    ///
    /// # Errors
    /// If this machine allows none; the error gives the reason.
    pub fn find(name: &str) -> Result<Self> {
        let read =
            |path: &str| fs::read_to_string(path).with_context(|| format!("cannot read {path}"));
        Self::find_in(
            &read("/proc/self/mountinfo")?,
            &read("/proc/self/cgroup")?,
            name,
        )
    }

    fn find_in(mounts: &str, own: &str, name: &str) -> Result<Self> {
        let v1 = |controller: &str| {
            let (mount, _) = hierarchies(mounts).find(|(_, options)| {
                options.is_some_and(|options| options.split(',').any(|o| o == controller))
            })?;
            let path = own.lines().find_map(|line| {
                let mut fields = line.splitn(3, ':').skip(1);
                let named = fields.next()?.split(',').any(|c| c == controller);
                fields.next().filter(|_| named)
            })?;
            Some(nearest(mount, path).join(name))
        };
        if let Some(cpu) = v1("cpu") {
            return Ok(Self {
                version: Version::V1,
                cpu,
                account: v1("cpuacct"),
                io: v1("blkio"),
            });
        }
        let Some((mount, _)) = hierarchies(mounts).find(|(_, options)| options.is_none()) else {
            bail!("no control groups are mounted in /sys/fs/cgroup");
        };
        let path = own.lines().find_map(|line| line.strip_prefix("0::"));
        let start = nearest(mount, path.unwrap_or("/"));
        // cgroup v2 allows controllers only in children of a group
        // without processes, so the new group becomes a sibling.
        let gives = |dir: &Path, controller: &str| {
            fs::read_to_string(dir.join("cgroup.subtree_control"))
                .is_ok_and(|text| text.split_whitespace().any(|c| c == controller))
        };
        let above = || start.ancestors().take_while(|dir| dir.starts_with(mount));
        let Some(parent) = above().find(|dir| gives(dir, "cpu")) else {
            bail!(
                "no control group above {} gives its children the controller cpu; as root: echo +cpu > {mount}/cgroup.subtree_control",
                start.display()
            );
        };
        let dir = parent.join(name);
        Ok(Self {
            version: Version::V2,
            io: gives(parent, "io").then(|| dir.clone()),
            account: Some(dir.clone()),
            cpu: dir,
        })
    }

    /// Creates the group, and has the guardian remove it at the end.
    ///
    /// # Errors
    /// If the group cannot be created; most often for lack of rights.
    pub fn create(&self, guardian: &mut Guardian) -> Result<()> {
        for dir in self.dirs() {
            guardian.will(&Undo::ControlGroup(dir.clone()))?;
            fs::create_dir(&dir).with_context(|| {
                format!(
                    "cannot make the control group {}; it needs root",
                    dir.display()
                )
            })?;
        }
        // The scheduler gives a group normal priority, whatever the priority of its processes is.
        if is_idle()
            && let Err(error) = self.setting("cpu.idle", "1").apply()
        {
            bail!(
                "{error:#}: this program runs at idle priority and its control group could not be given it"
            );
        }
        Ok(())
    }

    /// Its directories, one for each hierarchy.
    pub fn dirs(&self) -> Vec<PathBuf> {
        let mut dirs = vec![self.cpu.clone()];
        for dir in [&self.account, &self.io].into_iter().flatten() {
            if !dirs.contains(dir) {
                dirs.push(dir.clone());
            }
        }
        dirs
    }

    /// Limits the group to this many CPUs, summed over all threads.
    pub fn cpus(&self, cpus: f64) -> Vec<Setting> {
        let quota = (cpus * PERIOD_US as f64).round();
        match self.version {
            Version::V1 => vec![
                self.setting("cpu.cfs_period_us", &PERIOD_US.to_string()),
                self.setting("cpu.cfs_quota_us", &quota.to_string()),
            ],
            Version::V2 => vec![self.setting("cpu.max", &format!("{quota} {PERIOD_US}"))],
        }
    }

    /// Limits reads from a device (`major:minor`) to `bytes` per second; `None` removes the limit.
    ///
    /// # Errors
    /// If the group has no disk controller.
    pub fn read_rate(&self, device: &str, bytes: Option<u64>) -> Result<Setting> {
        let Some(io) = &self.io else {
            bail!(
                "the control group {} has no controller of disks (io, blkio)",
                self.cpu.display()
            );
        };
        Ok(match self.version {
            Version::V1 => Setting {
                path: io.join("blkio.throttle.read_bps_device"),
                text: format!("{device} {}", bytes.unwrap_or(0)),
            },
            Version::V2 => {
                let bytes = bytes.map_or_else(|| "max".to_owned(), |bytes| bytes.to_string());
                Setting {
                    path: io.join("io.max"),
                    text: format!("{device} rbps={bytes}"),
                }
            }
        })
    }

    /// CPU time that the group has used; `None` if the kernel does not count it.
    pub fn used(&self) -> Option<Duration> {
        let dir = self.account.as_ref()?;
        match self.version {
            Version::V1 => {
                let text = fs::read_to_string(dir.join("cpuacct.usage")).ok()?;
                text.trim().parse().ok().map(Duration::from_nanos)
            }
            Version::V2 => stat(dir, "usage_usec").map(Duration::from_micros),
        }
    }

    /// Number of periods in which the group was throttled, and number of all periods, since it was created.
    pub fn throttled(&self) -> Option<(u64, u64)> {
        Some((
            stat(&self.cpu, "nr_throttled")?,
            stat(&self.cpu, "nr_periods")?,
        ))
    }

    fn setting(&self, file: &str, text: &str) -> Setting {
        Setting {
            path: self.cpu.join(file),
            text: text.to_owned(),
        }
    }
}

fn stat(dir: &Path, name: &str) -> Option<u64> {
    let text = fs::read_to_string(dir.join("cpu.stat")).ok()?;
    let mut words = text.lines().filter_map(|line| line.split_once(' '));
    words.find(|(key, _)| *key == name)?.1.trim().parse().ok()
}

/// Mount points of control groups; those of version 1 with their controllers.
fn hierarchies(mounts: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    mounts.lines().filter_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mount = before.split(' ').nth(4)?;
        let mut after = after.split(' ');
        match after.next()? {
            "cgroup" => Some((mount, Some(after.nth(1)?))),
            "cgroup2" => Some((mount, None)),
            _ => None,
        }
    })
}

/// The directory of a group. In a container that shows only a part of the hierarchy, the mount point.
fn nearest(mount: &str, path: &str) -> PathBuf {
    let dir = Path::new(mount).join(path.trim_start_matches('/'));
    if dir.is_dir() {
        dir
    } else {
        PathBuf::from(mount)
    }
}

/// Whether this process runs at idle priority (SCHED_IDLE), that is, only while a CPU has nothing else to do. With
/// autogroup, the kernel schedules each session as a group. The idle priority then applies only within the session,
/// and a new control group has the priority of a session, so the answer is no.
fn is_idle() -> bool {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    if read("/proc/sys/kernel/sched_autogroup_enabled").trim() == "1" {
        return false;
    }
    is_held_back(std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = "\
36 25 0:32 / ROOT/cpu rw,relatime - cgroup cgroup rw,cpu
37 25 0:33 / ROOT/acct rw,relatime shared:9 - cgroup cgroup rw,cpuacct
39 25 0:35 / ROOT/unified rw,relatime - cgroup2 cgroup2 rw
";

    fn root() -> (tempfile::TempDir, String) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().display().to_string();
        (dir, root)
    }

    #[test]
    fn version_1_is_found_beside_version_2() {
        let (dir, root) = root();
        fs::create_dir_all(dir.path().join("cpu/own")).unwrap();
        let own = "2:cpuacct:/hidden\n1:cpu:/own\n0::/\n";
        let group = ControlGroup::find_in(&V1.replace("ROOT", &root), own, "g").unwrap();
        let dirs = [dir.path().join("cpu/own/g"), dir.path().join("acct/g")];
        assert_eq!(
            (group.version, group.dirs().as_slice()),
            (Version::V1, &dirs[..])
        );
        let texts: Vec<String> = group.cpus(0.5).into_iter().map(|s| s.text).collect();
        assert_eq!(texts, ["20000", "10000"]);
        let refused = group.read_rate("254:0", Some(1)).unwrap_err().to_string();
        assert!(refused.contains("no controller of disks"), "{refused}");
    }

    #[test]
    fn version_2_is_made_where_controllers_are_given() {
        let (dir, root) = root();
        let own = dir.path().join("user.slice/session.scope");
        fs::create_dir_all(&own).unwrap();
        fs::write(dir.path().join("cgroup.subtree_control"), "cpu io memory\n").unwrap();
        fs::write(
            dir.path().join("user.slice/cgroup.subtree_control"),
            "memory\n",
        )
        .unwrap();
        let mounts = format!("39 25 0:35 / {root} rw - cgroup2 cgroup2 rw\n");
        let find = || ControlGroup::find_in(&mounts, "0::/user.slice/session.scope\n", "g");
        let group = find().unwrap();
        assert_eq!(group.dirs(), [dir.path().join("g")]);
        assert_eq!(group.cpus(1.5)[0].text, "30000 20000");
        assert_eq!(group.read_rate("8:0", None).unwrap().text, "8:0 rbps=max");
        fs::write(dir.path().join("cgroup.subtree_control"), "memory\n").unwrap();
        let refused = find().unwrap_err().to_string();
        assert!(refused.contains("echo +cpu"), "{refused}");
    }

    #[test]
    fn a_machine_without_control_groups_is_told() {
        let refused = ControlGroup::find_in("1 2 0:1 / / rw - ext4 /dev/vda rw\n", "", "g");
        assert!(
            refused
                .unwrap_err()
                .to_string()
                .contains("no control groups are mounted")
        );
    }
}
