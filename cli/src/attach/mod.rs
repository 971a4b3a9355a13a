//! Loading a library into a running HotSpot JVM, by the protocol that `jcmd` uses.
//!
//! A file `.attach_pidN` in the JVM's working directory and a SIGQUIT make it listen on a socket
//! `/tmp/.java_pidN`. A command on that socket loads the library. SIGQUIT kills a process that does not
//! handle it, so it is sent only to JVMs whose process status shows a handler.
//!
//! A process that has taken the identity of the JVM's user does all of this, within a time limit.

mod files;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use unfuse_profiler::attach::one_line;
use unfuse_profiler::identity::Identity;

use files::JvmFiles;

/// How long the JVM may take to start listening; it does so at its next safepoint.
const LISTENS: Duration = Duration::from_secs(10);
/// How long the JVM may take to load the library.
const LOADS: Duration = Duration::from_secs(30);
/// How long checking the JVM's files may take.
const LOOKS: Duration = Duration::from_secs(10);
/// Longest answer to a command, bytes.
const MOST_ANSWER: u64 = 64 << 10;
/// Longest command line or environment, bytes.
const MOST_ARGUMENTS: u64 = 4 << 20;
/// Longest line of a list of mappings that is read at once, bytes.
const LONGEST_LINE: u64 = 16 << 10;

/// A JVM that can be attached to.
#[derive(Debug)]
pub struct Jvm {
    pid: u32,
    owner: Identity,
    files: JvmFiles,
}

impl Jvm {
    /// Checks that the process is a JVM that can be attached to.
    ///
    /// # Errors
    /// If it is not, with the reason.
    pub fn find(pid: u32) -> Result<Self> {
        let proc = PathBuf::from(format!("/proc/{pid}"));
        let status = match fs::read_to_string(proc.join("status")) {
            Ok(status) => status,
            Err(e) if e.kind() == ErrorKind::NotFound => bail!("there is no process {pid}"),
            Err(e) => return Err(e).with_context(|| format!("process {pid} cannot be looked at")),
        };
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            Some(line.trim_start_matches(':').trim())
        };
        if field("Tgid") != Some(&pid.to_string()) {
            bail!(
                "{pid} is a thread of process {}; use that number",
                field("Tgid").unwrap_or("?")
            );
        }
        let owner = Identity::from_process(pid)
            .with_context(|| format!("process {pid} cannot be looked at"))?;
        if !owner.is_available() {
            bail!(
                "process {pid} belongs to {owner} (group {}); run `unfuse record` as that user or as root",
                owner.gid()
            );
        }
        let libraries = File::open(proc.join("maps")).and_then(Libraries::from_maps);
        let libraries = libraries.with_context(|| format!("process {pid} cannot be looked at"))?;
        if !libraries.has_jvm {
            bail!("process {pid} is not a HotSpot JVM (it has not loaded libjvm.so)");
        }
        if libraries.has_musl {
            bail!(
                "JVM {pid} uses musl (Alpine Linux), and unfuse needs glibc; run Spark in an image with glibc"
            );
        }
        for space in ["pid", "net"] {
            let of = |path: &Path| fs::read_link(path.join("ns").join(space)).ok();
            if of(&proc) != of(Path::new("/proc/self")) {
                bail!(
                    "process {pid} runs in a container (it has another {space} namespace); run `unfuse \
                     record` inside it"
                );
            }
        }
        if field("State").is_some_and(|state| state.starts_with(['T', 't'])) {
            bail!("process {pid} is stopped; let it go on first (kill -CONT {pid})");
        }
        // Bit N-1 for signal N.
        let caught = field("SigCgt").and_then(|mask| u64::from_str_radix(mask, 16).ok());
        let takes_quit = caught.is_some_and(|mask| mask >> (Signal::SIGQUIT as u32 - 1) & 1 != 0);
        let jvm = Self {
            pid,
            owner,
            files: JvmFiles::open(pid, owner)?,
        };
        jvm.as_owner(LOOKS, || jvm.check(&proc, takes_quit))?;
        Ok(jvm)
    }

    /// The owner of the process.
    pub fn owner(&self) -> Identity {
        self.owner
    }

    /// Does work with the rights of the JVM's owner. The time is limited because the owner can delay it.
    fn as_owner(&self, patience: Duration, work: impl FnOnce() -> Result<()>) -> Result<()> {
        // Only the texts of the causes reach this process, not the errors themselves.
        let worked = self
            .owner
            .run(patience, || work().map_err(|e| format!("{e:#}")));
        match worked {
            Ok(done) => done.map_err(|reason| anyhow!(reason)),
            Err(e) if e.kind() == ErrorKind::TimedOut => bail!(
                "JVM {}, or a file of its user, did not answer within {} s",
                self.pid,
                patience.as_secs()
            ),
            Err(e) => Err(e).with_context(|| format!("cannot act as {}", self.owner)),
        }
    }

    /// Reads from the performance data whether attaching is disabled, else from the command line and the
    /// environment. Asking the JVM instead would make it print a thread dump.
    fn check(&self, proc: &Path, takes_quit: bool) -> Result<()> {
        let pid = self.pid;
        let is_disabled = self.files.attach_is_disabled().unwrap_or_else(|| {
            ["cmdline", "environ"].iter().any(|file| {
                let mut bytes = Vec::new();
                let file = File::open(proc.join(file));
                let read = file.map(|file| file.take(MOST_ARGUMENTS).read_to_end(&mut bytes));
                let text = String::from_utf8_lossy(&bytes);
                read.is_ok() && text.contains("+DisableAttachMechanism")
            })
        });
        if is_disabled {
            bail!(
                "JVM {pid} runs with -XX:+DisableAttachMechanism; start it without, or use `unfuse run`"
            );
        }
        if self.files.connect()?.is_none() && !takes_quit {
            bail!("JVM {pid} does not listen for tools yet; try again in a moment");
        }
        Ok(())
    }

    /// Loads a library with options.
    ///
    /// # Errors
    /// If the JVM does not listen, or reports that it did not load the library.
    pub fn load(&self, library: &Path, options: &str) -> Result<()> {
        self.as_owner(LISTENS + LOADS, || {
            self.files.check_library(library)?;
            self.ask_to_load(library, options)
        })
    }

    fn ask_to_load(&self, library: &Path, options: &str) -> Result<()> {
        let mut stream = self.connect()?;
        stream.set_read_timeout(Some(LOADS))?;
        let command = format!("1\0load\0{}\0true\0{options}\0", library.display());
        stream.write_all(command.as_bytes())?;
        let mut answer = Vec::new();
        stream
            .take(MOST_ANSWER)
            .read_to_end(&mut answer)
            .with_context(|| format!("JVM {} does not answer", self.pid))?;
        let answer = String::from_utf8_lossy(&answer);
        // "0", then "return code: 0", or "0" alone in some releases.
        let (status, text) = answer.split_once('\n').unwrap_or((&answer, ""));
        let code = text.trim().rsplit(' ').next().unwrap_or_default();
        if status.trim() == "0" && (code.is_empty() || code == "0") {
            return Ok(());
        }
        bail!(
            "JVM {} did not load {}: {}",
            self.pid,
            library.display(),
            one_line(text)
        )
    }

    fn connect(&self) -> Result<UnixStream> {
        if let Some(stream) = self.files.connect()? {
            return Ok(stream);
        }
        let _trigger = self.files.trigger()?;
        let until = Instant::now() + LISTENS;
        let mut wait = Duration::from_millis(10);
        while Instant::now() < until {
            kill(Pid::from_raw(self.pid as i32), Signal::SIGQUIT)
                .with_context(|| format!("JVM {} cannot be asked to listen", self.pid))?;
            // A second SIGQUIT before the first is served would make it print a thread dump.
            let served = Instant::now() + LISTENS.min(wait * 100);
            while Instant::now() < served.min(until) {
                std::thread::sleep(wait);
                if let Some(stream) = self.files.connect()? {
                    return Ok(stream);
                }
            }
            wait = LISTENS;
        }
        bail!(
            "JVM {} does not listen for tools; is it stopped, or very busy?",
            self.pid
        )
    }
}

/// The libraries of a process that decide whether it can be recorded.
#[derive(Debug, Default, PartialEq, Eq)]
struct Libraries {
    /// HotSpot.
    has_jvm: bool,
    /// musl instead of glibc.
    has_musl: bool,
}

impl Libraries {
    /// Reads a process's list of mappings, line by line: the process can make it as long as it likes.
    fn from_maps(maps: impl Read) -> std::io::Result<Self> {
        let mut maps = BufReader::new(maps);
        let mut line = Vec::new();
        let mut libraries = Self::default();
        while !(libraries.has_jvm && libraries.has_musl) {
            line.clear();
            if maps
                .by_ref()
                .take(LONGEST_LINE)
                .read_until(b'\n', &mut line)?
                == 0
            {
                break;
            }
            let name = line.trim_ascii_end().rsplit(|byte| *byte == b'/').next();
            let name = name.unwrap_or_default();
            libraries.has_jvm |= name == b"libjvm.so";
            libraries.has_musl |= name.starts_with(b"ld-musl-");
        }
        Ok(libraries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_no_jvm() {
        let error = Jvm::find(std::process::id()).unwrap_err().to_string();
        assert!(error.contains("not a HotSpot JVM"), "{error}");
    }

    #[test]
    fn libraries_are_known_by_their_names() {
        let libraries = |maps: &str| Libraries::from_maps(maps.as_bytes()).unwrap();
        let line = |path: &str| format!("7f00-7f10 r-xp 00000000 fe:00 12 {path}\n");
        let jvm = line("/usr/lib/jvm/lib/server/libjvm.so");
        let found = libraries(&jvm);
        assert!(found.has_jvm && !found.has_musl);
        let found = libraries(&(jvm + &line("/lib/ld-musl-x86_64.so.1")));
        assert!(found.has_jvm && found.has_musl);
        assert_eq!(
            libraries(&line("/tmp/ld-musl-x/not-libjvm.so")),
            Libraries::default()
        );
    }
}
