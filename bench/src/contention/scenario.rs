//! The users' statements: random queries of TPC-DS, one of them the victim, and a culprit that runs beside it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use unfuse_contention::Resource;

use super::server::{Statement, User};
use crate::random::Random;

/// Users at the same time, as in the paper.
pub const USERS: usize = 6;
/// The victim's name.
pub const VICTIM: &str = "victim";
/// The culprit's name.
pub const CULPRIT: &str = "culprit";

/// The cases of table 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
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

    /// The paper's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::CpuInternal => "CPU-Internal",
            Self::IoExternal => "IO-External",
            Self::MemInternal => "Mem-Internal",
        }
    }

    /// The resource under contention.
    pub fn resource(self) -> Resource {
        match self {
            Self::CpuInternal => Resource::Cpu,
            Self::IoExternal => Resource::Io,
            Self::MemInternal => Resource::Memory,
        }
    }
}

/// Keeps the tasks of the culprit's join as in Spark 2. Otherwise Spark would put all
/// partitions of its shuffle into one task.
const ALL_TASKS: &str = "SET spark.sql.adaptive.coalescePartitions.enabled=false";
/// Listing 1 with `max` in place of `sum`, because Spark 4 does not convert these texts to numbers. The hint makes
/// Spark shuffle for the join, as Spark 2 did.
const CPU: &str = "SELECT max(longest) FROM (SELECT /*+ MERGE(c2) */ c1.c_first_name, \
    max(sha2(repeat(c1.c_last_name, 45000), 512)) AS longest FROM customer c1, customer c2 \
    WHERE c1.c_customer_sk = c2.c_customer_sk AND c1.c_customer_sk % 4 = 0 GROUP BY c1.c_first_name)";
/// Caches the table three times over, because once does not fill the memory.
const MEMORY: &str = "CACHE TABLE cached OPTIONS ('storageLevel' 'MEMORY_ONLY') \
    SELECT web_sales.* FROM web_sales CROSS JOIN range(3)";

/// The statements of each user, who waits before each of them (`think` is the mean, s). The
/// victim is the second query of the first user.
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
            // The culprit starts when the query before the victim has ended.
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

/// How often the victim runs before its time counts.
pub const VICTIMS_BEFORE: usize = 3;

/// A user who runs every query of others once, and then the victim. Otherwise the JVM would compile their code at the
/// same time, which does not happen on a server that has run for a while, and would be the main culprit.
pub fn warm_up(queries: &BTreeMap<String, String>, victim: &str, users: &[User]) -> User {
    let names = users.iter().flat_map(|user| &user.statements);
    let names = names.filter_map(|statement| statement.name.rsplit_once('-'));
    let names: BTreeSet<&str> = names.map(|(_, name)| name).collect();
    let names = names.into_iter().chain([victim; VICTIMS_BEFORE]);
    let texts = names.filter_map(|name| queries.get(name));
    let statement =
        |(number, text): (usize, &String)| Statement::new(&format!("warm-up-{number}"), text);
    User {
        name: "warm-up".to_owned(),
        statements: texts.enumerate().map(statement).collect(),
    }
}

/// A process group that reads a file again and again without the page cache (listing 2).
pub struct Reader(Child);

impl Reader {
    /// Starts the process group.
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

    /// Ends the process group.
    ///
    /// # Errors
    /// If it has already ended, because then it did not read all the time.
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

/// Creates a file of 2 GiB to read. It has no holes.
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

/// Evicts the data's files from the page cache, so that queries read them from the disk.
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
