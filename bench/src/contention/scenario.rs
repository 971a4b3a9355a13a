//! What the users run: random queries of TPC-DS, one victim among them, and a culprit that is put beside it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use unfuse_contention::Resource;

use super::server::{Statement, User};
use crate::random::Random;

/// Users at the same time, as in the paper.
pub const USERS: usize = 6;
/// The victim's name.
pub const VICTIM: &str = "victim";
/// The culprit's.
pub const CULPRIT: &str = "culprit";

/// Table 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    /// A CPU-intensive query after the victim starts.
    CpuInternal,
    /// A large file is read outside Spark after the victim starts.
    IoExternal,
    /// A table is cached before the victim starts.
    MemInternal,
}

impl Case {
    /// All.
    pub const ALL: [Self; 3] = [Self::CpuInternal, Self::IoExternal, Self::MemInternal];

    /// As the paper calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::CpuInternal => "CPU-Internal",
            Self::IoExternal => "IO-External",
            Self::MemInternal => "Mem-Internal",
        }
    }

    /// What is contended for.
    pub fn resource(self) -> Resource {
        match self {
            Self::CpuInternal => Resource::Cpu,
            Self::IoExternal => Resource::Io,
            Self::MemInternal => Resource::Memory,
        }
    }
}

/// The culprit's join has as many tasks as it had in Spark 2, not one that all its shuffle's partitions are put into.
const ALL_TASKS: &str = "SET spark.sql.adaptive.coalescePartitions.enabled=false";
/// Listing 1, with the larger of two texts in place of the sum of them, which Spark 4 refuses to take for numbers; the
/// hint keeps the join from being done without a shuffle, as it was in Spark 2.
const CPU: &str = "SELECT max(longest) FROM (SELECT /*+ MERGE(c2) */ c1.c_first_name, \
    max(sha2(repeat(c1.c_last_name, 45000), 512)) AS longest FROM customer c1, customer c2 \
    WHERE c1.c_customer_sk = c2.c_customer_sk AND c1.c_customer_sk % 4 = 0 GROUP BY c1.c_first_name)";
/// Three times, as once does not fill the memory.
const MEMORY: &str = "CACHE TABLE cached OPTIONS ('storageLevel' 'MEMORY_ONLY') \
    SELECT web_sales.* FROM web_sales CROSS JOIN range(3)";

/// Each user's statements, before each of which the user thinks for a while (the mean is `think`, s). The victim is the
/// first user's, when it has run one query.
pub fn users(
    queries: &BTreeMap<String, String>,
    victim: &str,
    each: usize,
    think: f64,
    seed: u64,
    culprit: Option<Case>,
) -> Result<Vec<User>> {
    let (mut random, mut pauses) = (Random(seed), Random(!seed));
    let mut pause_ms = move || pauses.below((2e3 * think) as u64 + 1);
    let names: Vec<&String> = queries.keys().filter(|name| *name != victim).collect();
    let mut users: Vec<User> = (0..USERS)
        .map(|user| User {
            name: format!("user{user}"),
            statements: (0..each)
                .map(|number| {
                    let name = names[random.below(names.len() as u64) as usize];
                    Statement::new(&format!("user{user}-{number}-{name}"), &queries[name])
                        .delayed(pause_ms())
                })
                .collect(),
        })
        .collect();
    let text = queries
        .get(victim)
        .with_context(|| format!("no query {victim}"))?;
    let mut victim = Statement::new(VICTIM, text);
    let induced = match culprit {
        Some(Case::CpuInternal) => vec![
            Statement::new("settings", ALL_TASKS),
            Statement::new(CULPRIT, CPU).after(VICTIM, 0),
        ],
        Some(Case::MemInternal) => {
            // The culprit comes when the victim's user is done with what is before it.
            let before = users[0].statements[0].name.clone();
            victim = victim.after(CULPRIT, 500);
            vec![Statement::new(CULPRIT, MEMORY).after_end_of(&before)]
        }
        Some(Case::IoExternal) | None => Vec::new(),
    };
    users[0].statements.insert(1, victim);
    if !induced.is_empty() {
        users.push(User {
            name: CULPRIT.to_owned(),
            statements: induced,
        });
    }
    Ok(users)
}

/// A process group that reads a file over and over, not through the page cache (listing 2).
pub struct Reader(Child);

impl Reader {
    /// Starts it.
    pub fn start(file: &Path) -> Result<Self> {
        let child = Command::new("sh")
            .args([
                "-c",
                "while dd if=\"$0\" of=/dev/null bs=16M iflag=direct; do :; done",
            ])
            .arg(file)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .context("cannot run sh")?;
        Ok(Self(child))
    }

    /// Ends it.
    ///
    /// # Errors
    /// If it had ended before: then nothing was read.
    pub fn stop(mut self) -> Result<()> {
        match self.0.try_wait()? {
            Some(status) => bail!("dd cannot read without the page cache here ({status})"),
            None => Ok(()),
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let group = Pid::from_raw(self.0.id().cast_signed());
        let _ = killpg(group, Signal::SIGKILL);
        let _ = self.0.wait();
    }
}

/// A file to read, of 2 GiB that are no holes.
pub fn large_file(dir: &Path) -> Result<PathBuf> {
    let path = dir.join("large");
    if !path.exists() {
        let status = Command::new("dd")
            .args(["if=/dev/urandom", "bs=16M", "count=128", "conv=fsync"])
            .arg(format!("of={}", path.display()))
            .stderr(Stdio::null())
            .status()?;
        anyhow::ensure!(status.success(), "cannot write {}", path.display());
    }
    Ok(path)
}

/// Has the kernel forget what it has of the data's files, so that queries read them from the disk.
pub fn forget(data: &Path) -> Result<()> {
    for entry in fs::read_dir(data)? {
        let path = entry?.path();
        if path.is_dir() {
            forget(&path)?;
        } else {
            let file = File::open(&path)?;
            nix::fcntl::posix_fadvise(
                &file,
                0,
                0,
                nix::fcntl::PosixFadviseAdvice::POSIX_FADV_DONTNEED,
            )?;
        }
    }
    Ok(())
}
