//! Input files of a program: their device and size, evicting
//! them from the page cache, copying them to memory.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
use nix::sys::statfs::{TMPFS_MAGIC, statfs};

use crate::run;

/// Linux mounts a file system in memory here.
pub const MEMORY: &str = "/dev/shm";

/// The file that a path names, or all files in the directory. Follows links.
///
/// # Errors
/// If something cannot be read.
pub fn files(path: &Path) -> Result<Vec<PathBuf>> {
    let failed = || format!("cannot read {}", path.display());
    if !fs::metadata(path).with_context(failed)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut all = Vec::new();
    for entry in fs::read_dir(path).with_context(failed)? {
        all.extend(files(&entry.with_context(failed)?.path())?);
    }
    Ok(all)
}

/// Total size of files, bytes.
///
/// # Errors
/// If one cannot be read.
pub fn bytes(files: &[PathBuf]) -> Result<u64> {
    let sizes = files.iter().map(|file| {
        let metadata = fs::metadata(file);
        Ok(metadata
            .with_context(|| format!("cannot read {}", file.display()))?
            .len())
    });
    sizes.sum()
}

/// Writes files to their disk and evicts them from the
/// page cache, so that the next reader waits for the disk.
///
/// # Errors
/// If a file cannot be opened or written to its disk.
pub fn forget(files: &[PathBuf]) -> Result<()> {
    for path in files {
        let failed = || format!("cannot give up the cached pages of {}", path.display());
        let file = File::open(path).with_context(failed)?;
        // The kernel cannot evict pages that are not on the disk yet.
        file.sync_all().with_context(failed)?;
        posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED).with_context(failed)?;
    }
    Ok(())
}

/// Checks that this many bytes can be copied to memory.
///
/// # Errors
/// If they do not fit, with the reason.
pub fn check_memory(needed: u64) -> Result<()> {
    let there = statfs(MEMORY).with_context(|| format!("{MEMORY} is not there"))?;
    if there.filesystem_type() != TMPFS_MAGIC {
        bail!("{MEMORY} is no file system in memory (tmpfs)");
    }
    let free = there
        .blocks_available()
        .saturating_mul(there.block_size().cast_unsigned());
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let available = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))
        .and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok())
        .map_or(0, |kib| kib << 10);
    // The program needs memory too.
    let most = free.min(available / 2);
    if needed > most {
        bail!(
            "inputs of {} MiB do not go into memory: {MEMORY} has {} MiB free and half of the available memory is {} MiB",
            needed >> 20,
            free >> 20,
            available >> 21
        );
    }
    Ok(())
}

/// Copies a file or directory. Follows links.
///
/// # Errors
/// If it cannot be read, or there is no room for the copy.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    run(Command::new("cp").args(["-rL", "--"]).arg(from).arg(to))
        .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))
}

/// A disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// `major:minor` of the whole disk.
    pub number: String,
    /// The kernel's name of the disk.
    pub name: String,
}

impl Device {
    /// The disk that holds a file.
    ///
    /// # Errors
    /// If there is no such disk: the file is on a network, in memory or on several disks.
    pub fn holding(path: &Path) -> Result<Self> {
        let metadata =
            fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?;
        let number = (
            nix::sys::stat::major(metadata.dev()),
            nix::sys::stat::minor(metadata.dev()),
        );
        let link = format!("/sys/dev/block/{}:{}", number.0, number.1);
        let Ok(mut dir) = fs::canonicalize(&link) else {
            bail!("{} is on no disk of this machine", path.display());
        };
        if dir.join("partition").exists() {
            dir.pop();
        }
        let number = fs::read_to_string(dir.join("dev"));
        let number = number.with_context(|| format!("cannot read {}", dir.display()))?;
        Ok(Self {
            number: number.trim().to_owned(),
            name: dir
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
        })
    }

    /// How long the disk has been busy since the machine started, for any process.
    pub fn busy(&self) -> Option<Duration> {
        let text = fs::read_to_string("/proc/diskstats").ok()?;
        let mut rows = text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>());
        let row = rows.find(|row| row.get(2) == Some(&self.name.as_str()))?;
        row.get(12)?.parse().ok().map(Duration::from_millis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_are_counted_and_copied_with_links_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (tree, copied) = (dir.path().join("tree"), dir.path().join("copied"));
        fs::create_dir_all(tree.join("in")).unwrap();
        fs::write(tree.join("in/a"), "12345").unwrap();
        fs::write(dir.path().join("outside"), "678").unwrap();
        std::os::unix::fs::symlink("../outside", tree.join("b")).unwrap();
        copy(&tree, &copied).unwrap();
        for tree in [&tree, &copied] {
            assert_eq!(bytes(&files(tree).unwrap()).unwrap(), 8);
        }
        assert!(!fs::symlink_metadata(copied.join("b")).unwrap().is_symlink());
        forget(&files(&tree).unwrap()).unwrap();
        assert!(
            files(&dir.path().join("none"))
                .unwrap_err()
                .to_string()
                .contains("none")
        );
    }

    #[test]
    fn more_than_there_is_does_not_go_into_memory() {
        let refused = check_memory(u64::MAX).unwrap_err().to_string();
        assert!(refused.contains("MiB"), "{refused}");
    }
}
