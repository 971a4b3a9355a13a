//! Access to the machine for `unfuse` and `unfuse-bench`: the agent, JDKs, the
//! cache directory, other programs; limits for a program ([`cgroup`], [`cpufreq`],
//! [`confine`], [`storage`]) and for threads of a running one ([`priority`]); a [`guardian`] that restores settings; [`signals`].
//!
//! ```
//! use std::process::Command;
//! unfuse_machine::run(&mut Command::new("true")).unwrap();
//! let failed = unfuse_machine::run(Command::new("sh").args(["-c", "echo why >&2; false"]));
//! assert_eq!(failed.unwrap_err().to_string(), "sh failed: why");
//! ```

pub mod cgroup;
pub mod confine;
pub mod cpufreq;
pub mod guardian;
mod jdk;
pub mod priority;
pub mod signals;
pub mod storage;
mod trust;

use std::env;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use nix::unistd::geteuid;
use unfuse_files::{Access, Directory};

pub use jdk::java_release;

/// The file name of the agent's library.
const LIBRARY: &str = "libunfuse.so";

/// The advice for a cache directory that cannot be used.
const UNUSABLE: &str = "the cache directory cannot be used; XDG_CACHE_HOME says where another is";

/// The agent's library: `UNFUSE_AGENT`, or `libunfuse.so` beside this program or in `../lib/unfuse`.
///
/// JVMs load this library: also root's JVMs, and those of other users for which root asks. So root accepts it only if
/// nobody can change it except root and the owner of this program.
///
/// # Errors
/// If there is no library, or root must not use it.
pub fn agent_library() -> Result<PathBuf> {
    let program = env::current_exe()?;
    let library = match env::var_os("UNFUSE_AGENT") {
        Some(path) => {
            let path = PathBuf::from(path);
            if !path.is_file() {
                bail!("UNFUSE_AGENT={}: no such file", path.display());
            }
            path
        }
        None => {
            let beside = program.with_file_name(LIBRARY);
            let installed = program.parent().and_then(Path::parent);
            let installed = installed.map(|prefix| prefix.join("lib/unfuse").join(LIBRARY));
            installed
                .filter(|installed| !beside.is_file() && installed.is_file())
                .unwrap_or(beside)
        }
    };
    if library.is_file() {
        if geteuid().is_root() {
            return trust::check(&library, &[0, std::fs::metadata(&program)?.uid()]);
        }
        return Ok(library);
    }
    bail!(
        "{LIBRARY} is neither beside {} nor in ../lib/unfuse; build it (`make build`) or set UNFUSE_AGENT to its path",
        program.display()
    )
}

/// `~/.cache/unfuse`, the directory for Spark, data and copies of remote profiles. It may not exist yet.
///
/// # Errors
/// If no variable names it. Also if another user could have planted files in it: it belongs to another user, or
/// others can write to it.
pub fn cache_dir() -> Result<PathBuf> {
    let base = env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| env::var_os("HOME").map(|home| Path::new(&home).join(".cache")));
    let Some(base) = base else {
        bail!("neither HOME nor XDG_CACHE_HOME is set; set one, Spark and data are kept there");
    };
    let cache = base.join("unfuse");
    match Directory::open(&cache) {
        Ok(there) => {
            there.check(Access::Readable).context(UNUSABLE)?;
        }
        Err(e) if e.kind() == ErrorKind::NotFound => {}
        Err(e) => return Err(e).with_context(|| format!("cannot open {}", cache.display())),
    }
    Ok(cache)
}

/// Creates a folder of the cache directory, with mode 0700. `access` limits the rights of other users in a folder
/// that already exists.
///
/// # Errors
/// Those of [`cache_dir`], and if the folder cannot be created.
pub fn cache_folder(name: &str, access: Access) -> Result<Directory> {
    let cache = Directory::create(&cache_dir()?, Access::Readable).context(UNUSABLE)?;
    cache.create_folder(name, access).context(UNUSABLE)
}

/// A JDK or JRE on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Java {
    /// Its java program.
    pub program: PathBuf,
    /// Feature release, such as 17.
    pub release: u32,
    /// The version that `java -version` prints.
    pub version: String,
}

/// Every Java found: JAVA_HOME, the PATH, and the usual directories; the newest release last.
pub fn javas() -> Vec<Java> {
    let mut homes: Vec<PathBuf> = env::var_os("JAVA_HOME")
        .map(PathBuf::from)
        .into_iter()
        .collect();
    for root in ["/usr/lib/jvm", "/opt/java", "/opt/jdk"] {
        homes.push(PathBuf::from(root));
        homes.extend(
            std::fs::read_dir(root)
                .into_iter()
                .flatten()
                .flatten()
                .map(|e| e.path()),
        );
    }
    let on_path = env::var_os("PATH").unwrap_or_default();
    let candidates = env::split_paths(&on_path)
        .map(|dir| dir.join("java"))
        .chain(homes.iter().map(|home| home.join("bin/java")));
    let mut programs: Vec<PathBuf> = Vec::new();
    for candidate in candidates {
        if let Ok(real) = std::fs::canonicalize(candidate)
            && !programs.contains(&real)
        {
            programs.push(real);
        }
    }
    let mut javas: Vec<Java> = programs.into_iter().filter_map(ask).collect();
    javas.sort_by_key(|java| java.release);
    javas
}

fn ask(program: PathBuf) -> Option<Java> {
    let output = Command::new(&program).arg("-version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    // `openjdk version "17.0.15" 2025-04-15`; before 9 it was "1.8.0_372".
    let version = text.split('"').nth(1)?.to_owned();
    let mut numbers = version
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|n| n.parse().ok());
    let release = match numbers.next()? {
        1 => numbers.next()?,
        release => release,
    };
    Some(Java {
        program,
        release,
        version,
    })
}

/// The local time now in a strftime format.
pub fn local_time(format: &str) -> String {
    date(&[format!("+{format}")]).unwrap_or_else(|| "profile".to_owned())
}

/// The local time of a moment, s since the epoch, in a strftime format.
pub fn local_time_at(seconds: i64, format: &str) -> Option<String> {
    date(&[format!("--date=@{seconds}"), format!("+{format}")])
}

/// Converts a local time such as `2026-11-25 14:30:05`, or a time with its offset from UTC, to s since the epoch.
pub fn moment(local_time: &str) -> Option<i64> {
    date(&[format!("--date={local_time}"), "+%s".to_owned()])?
        .parse()
        .ok()
}

/// The output of the program `date`, which knows the time zone.
fn date(arguments: &[String]) -> Option<String> {
    let output = Command::new("date").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// Runs a command to its end, and discards its output.
///
/// # Errors
/// If it fails; the error has the last lines of its output.
pub fn run(command: &mut Command) -> Result<()> {
    said(command).map(drop)
}

/// Runs a command to its end, and returns its standard output.
///
/// # Errors
/// If it fails; the error has the last lines of its output.
pub fn said(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .with_context(|| format!("cannot run {name}"))?;
    if !output.status.success() {
        let mut text = String::from_utf8_lossy(&output.stderr);
        if text.is_empty() {
            // Maven prints its errors to standard output.
            text = String::from_utf8_lossy(&output.stdout);
        }
        let last: Vec<_> = text.lines().rev().take(3).collect();
        bail!(
            "{name} failed: {}",
            last.into_iter().rev().collect::<Vec<_>>().join(" / ")
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
