//! Where a process belongs: its user, control group and container.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// Bytes of a process's environment in which its host name is looked for.
const MOST_ENVIRONMENT: u64 = 16 << 10;
/// Bytes of /proc/PID/cgroup and of a user list that are read.
pub(super) const MOST_LIST: u64 = 1 << 20;
/// Longest text of a row, bytes.
pub(super) const MOST_TEXT: usize = 256;
/// Words in the paths of containers' control groups.
const CONTAINERS: [&str; 7] = [
    "kubepods",
    "docker",
    "libpod",
    "containerd",
    "crio",
    "lxc",
    "ecs",
];

/// Where a process belongs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Home {
    pub(super) uid: u32,
    pub(super) cgroup: Option<String>,
    pub(super) container: Option<String>,
}

impl Home {
    /// Reads it, as far as it can be read.
    pub(super) fn of(pid: u32) -> Self {
        let dir = PathBuf::from(format!("/proc/{pid}"));
        let text = read_start(&dir.join("cgroup"), MOST_LIST).unwrap_or_default();
        let cgroup = group_path(&text).map(shortened);
        let in_container =
            |path: &String| CONTAINERS.iter().any(|word| path.contains(word)) && is_open(pid);
        let container = cgroup
            .as_ref()
            .filter(|path| in_container(path))
            .and_then(|_| {
                let environment = read_start(&dir.join("environ"), MOST_ENVIRONMENT)?;
                let mut variables = environment.split('\0');
                let name = variables.find_map(|variable| variable.strip_prefix("HOSTNAME="))?;
                Some(shortened(name))
            });
        Self {
            // The directory, unlike the files in it, is its user's in any case.
            uid: fs::metadata(&dir).map_or(u32::MAX, |dir| dir.uid()),
            cgroup,
            container,
        }
    }
}

/// The path of a process's control group: in version 2 its only one, in version 1 that of the CPU controller, or else the
/// longest. None for the root.
pub(super) fn group_path(text: &str) -> Option<&str> {
    let paths = text.lines().filter_map(|line| {
        let (number, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let is_cpu = number == "0" || controllers.split(',').any(|name| name == "cpu");
        (path.len() > 1).then_some((is_cpu, path.len(), path))
    });
    paths.max().map(|(.., path)| path)
}

/// Whether more of a process may be recorded than everyone on the host can see. If root records another user's JVM, that
/// user can read what is written, so capabilities that this process has kept must not count.
pub(super) fn is_open(pid: u32) -> bool {
    let own = nix::unistd::geteuid();
    let owner = || fs::metadata(format!("/proc/{pid}")).map(|dir| dir.uid());
    own.is_root() || owner().is_ok_and(|owner| owner == own.as_raw())
}

/// The first bytes of a file, as text.
pub(super) fn read_start(path: &PathBuf, most: u64) -> Option<String> {
    let mut bytes = Vec::new();
    let file = File::open(path).ok()?;
    file.take(most).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// A text of another user's, not longer than a row may have it.
pub(super) fn shortened(text: &str) -> String {
    text.chars()
        .scan(0, |length, character| {
            *length += character.len_utf8();
            (*length <= MOST_TEXT).then_some(character)
        })
        .collect()
}
