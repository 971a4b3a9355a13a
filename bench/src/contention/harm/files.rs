//! Text files, some of which the page cache never keeps.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle, sleep};
use std::time::Duration;

use anyhow::{Context, Result};
use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};

/// Directories by the names that statements have for them, with the size of their file in MB, how many names it has there, and
/// whether it stays in the page cache.
const DIRECTORIES: [(&str, u64, u32, bool); 3] = [
    ("victim", 1024, 1, false),
    ("disk", 1024, 50, false),
    ("cache", 256, 200, true),
];
/// How often pages are dropped. Each time, Linux must read again what it has read ahead and no task has used yet: a few MB.
const DROP: Duration = Duration::from_secs(1);

/// The files, and a thread that drops the pages of some from the page cache until this is dropped.
pub(super) struct Files {
    dir: PathBuf,
    ended: Arc<AtomicBool>,
    drops: Option<JoinHandle<()>>,
}

impl Files {
    /// Writes the files below a directory.
    ///
    /// # Errors
    /// If they cannot be written.
    pub(super) fn new(scratch: &Path) -> Result<Self> {
        let dir = tempfile::Builder::new()
            .prefix("files-")
            .tempdir_in(scratch)?
            .keep();
        let mut uncached = Vec::new();
        for (name, megabytes, names, stays) in DIRECTORIES {
            let own = dir.join(name);
            fs::create_dir(&own)?;
            let first = own.join("0.txt");
            write(&first, megabytes << 20)
                .with_context(|| format!("writing {}", first.display()))?;
            for number in 1..names {
                fs::hard_link(&first, own.join(format!("{number}.txt")))?;
            }
            if !stays {
                uncached.push(File::open(&first)?);
            }
        }
        let ended = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&ended);
        let drops = thread::spawn(move || {
            while !until.load(Ordering::Relaxed) {
                for file in &uncached {
                    // Pages that are being read stay.
                    let _ = posix_fadvise(file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED);
                }
                sleep(DROP);
            }
        });
        Ok(Self {
            dir,
            ended,
            drops: Some(drops),
        })
    }

    /// The directory that has them.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// A statement with the paths of directories for their names in braces.
    pub(super) fn fill(&self, sql: &str) -> String {
        let mut sql = sql.to_owned();
        for (name, ..) in DIRECTORIES {
            let path = self.dir.join(name).display().to_string();
            sql = sql.replace(&format!("{{{name}}}"), &path);
        }
        sql
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(drops) = self.drops.take() {
            let _ = drops.join();
        }
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Writes lines with numbers, to the disk.
fn write(path: &Path, bytes: u64) -> Result<()> {
    let file = File::create(path)?;
    let mut to = BufWriter::new(&file);
    let mut written = 0;
    for number in 0u64.. {
        if written >= bytes {
            break;
        }
        let line = format!("{number} a line of some text of no use {}\n", number * 7919);
        to.write_all(line.as_bytes())?;
        written += line.len() as u64;
    }
    to.flush()?;
    drop(to);
    // Only pages that are on the disk can be dropped.
    Ok(file.sync_all()?)
}
