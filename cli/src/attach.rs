//! Loading a library into a running HotSpot JVM, by the protocol that `jcmd` uses.
//!
//! A file `.attach_pidN` in the JVM's working directory and a SIGQUIT make it listen on a socket
//! `/tmp/.java_pidN`; a command on that socket loads the library. Whoever does not listen for SIGQUIT dies of
//! it, so it is sent to JVMs only that say they take it.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};

/// How long the JVM may take to listen; it does at its next safepoint.
const LISTENS: Duration = Duration::from_secs(10);
/// How long it may take to load the library.
const LOADS: Duration = Duration::from_secs(30);

/// A JVM that can be attached to.
#[derive(Debug)]
pub struct Jvm {
    pid: u32,
    root: PathBuf,
}

impl Jvm {
    /// Looks at the process.
    ///
    /// # Errors
    /// Says why it cannot be attached to.
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
        let owner = fs::metadata(&proc)?.uid();
        let (own, effective) = (
            geteuid(),
            field("Uid").and_then(|ids| ids.split_whitespace().nth(1)),
        );
        if !own.is_root() && effective != Some(&own.to_string()) {
            bail!(
                "process {pid} belongs to user {}; run `unfuse record` as that user or as root",
                nix::unistd::User::from_uid(owner.into())
                    .ok()
                    .flatten()
                    .map_or_else(|| owner.to_string(), |user| user.name)
            );
        }
        let maps = fs::read_to_string(proc.join("maps"))
            .with_context(|| format!("process {pid} cannot be looked at"))?;
        if !maps.lines().any(|line| line.ends_with("/libjvm.so")) {
            bail!("process {pid} is not a HotSpot JVM (it has not loaded libjvm.so)");
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
        let jvm = Self {
            pid,
            root: proc.join("root"),
        };
        if jvm.attach_is_disabled(&proc) {
            bail!(
                "JVM {pid} runs with -XX:+DisableAttachMechanism; start it without, or use `unfuse run`"
            );
        }
        // Bit N-1 for signal N.
        let caught = field("SigCgt").and_then(|mask| u64::from_str_radix(mask, 16).ok());
        let takes_quit = caught.is_some_and(|mask| mask >> (Signal::SIGQUIT as u32 - 1) & 1 != 0);
        if !takes_quit && UnixStream::connect(jvm.socket()).is_err() {
            bail!("JVM {pid} does not listen for tools yet; try again in a moment");
        }
        Ok(jvm)
    }

    /// As the JVM says in its performance data, else by its command line. To ask it would make it print a
    /// thread dump.
    fn attach_is_disabled(&self, proc: &Path) -> bool {
        let told = fs::read_dir(self.root.join("tmp"))
            .into_iter()
            .flatten()
            .flatten()
            .filter(|entry| {
                entry
                    .file_name()
                    .to_string_lossy()
                    .starts_with("hsperfdata_")
            })
            .find_map(|entry| fs::read(entry.path().join(self.pid.to_string())).ok())
            .and_then(|data| can_attach(&data));
        told.map_or_else(
            || {
                ["cmdline", "environ"].iter().any(|file| {
                    let bytes = fs::read(proc.join(file)).unwrap_or_default();
                    String::from_utf8_lossy(&bytes).contains("+DisableAttachMechanism")
                })
            },
            |can| !can,
        )
    }

    fn socket(&self) -> PathBuf {
        self.root.join(format!("tmp/.java_pid{}", self.pid))
    }

    /// Loads a library with options.
    ///
    /// # Errors
    /// Where the JVM does not listen, or says that it did not load it.
    pub fn load(&self, library: &Path, options: &str) -> Result<()> {
        let file = |path: &Path| fs::metadata(path).ok().map(|m| (m.dev(), m.ino()));
        let inside = self.root.join(library.strip_prefix("/").unwrap_or(library));
        if file(&inside).is_none() || file(&inside) != file(library) {
            bail!(
                "JVM {} has another file system, without {}; install unfuse where both see it",
                self.pid,
                library.display()
            );
        }
        let mut stream = self.connect()?;
        stream.set_read_timeout(Some(LOADS))?;
        let command = format!("1\0load\0{}\0true\0{options}\0", library.display());
        stream.write_all(command.as_bytes())?;
        let mut answer = String::new();
        stream
            .read_to_string(&mut answer)
            .with_context(|| format!("JVM {} does not answer", self.pid))?;
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
            text.trim()
        )
    }

    fn connect(&self) -> Result<UnixStream> {
        if let Ok(stream) = UnixStream::connect(self.socket()) {
            return Ok(stream);
        }
        let _trigger = Trigger::new(self)?;
        let until = Instant::now() + LISTENS;
        let mut wait = Duration::from_millis(10);
        while Instant::now() < until {
            kill(Pid::from_raw(self.pid as i32), Signal::SIGQUIT)
                .with_context(|| format!("JVM {} cannot be asked to listen", self.pid))?;
            // A second SIGQUIT before the first is served would make it print a thread dump.
            let served = Instant::now() + LISTENS.min(wait * 100);
            while Instant::now() < served.min(until) {
                std::thread::sleep(wait);
                match UnixStream::connect(self.socket()) {
                    Ok(stream) => return Ok(stream),
                    Err(e) if e.kind() == ErrorKind::PermissionDenied => return Err(e.into()),
                    Err(_) => {}
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

/// The file that tells the JVM that a SIGQUIT is not for a thread dump.
struct Trigger(PathBuf);

impl Trigger {
    fn new(jvm: &Jvm) -> io::Result<Self> {
        let name = format!(".attach_pid{}", jvm.pid);
        let beside = PathBuf::from(format!("/proc/{}/cwd", jvm.pid)).join(&name);
        for path in [beside, jvm.root.join("tmp").join(&name)] {
            if File::create(&path).is_ok() {
                return Ok(Self(path));
            }
        }
        Err(io::Error::other(
            "neither the JVM's working directory nor /tmp can be written",
        ))
    }
}

impl Drop for Trigger {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// The first of `sun.rt.jvmCapabilities`: the value stands behind the name.
fn can_attach(data: &[u8]) -> Option<bool> {
    let name = b"sun.rt.jvmCapabilities\0";
    let at = data.windows(name.len()).position(|window| window == name)?;
    match data[at + name.len()..].iter().find(|byte| **byte != 0)? {
        b'1' => Some(true),
        b'0' => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_read_from_performance_data() {
        assert_eq!(
            can_attach(b"..sun.rt.jvmCapabilities\0\0\x0010100"),
            Some(true)
        );
        assert_eq!(
            can_attach(b"sun.rt.jvmCapabilities\0\x0001000"),
            Some(false)
        );
        assert_eq!(can_attach(b"sun.rt.jvmCapabilities\0"), None);
        assert_eq!(can_attach(b"else"), None);
    }

    #[test]
    fn this_process_is_no_jvm() {
        let error = Jvm::find(std::process::id()).unwrap_err().to_string();
        assert!(error.contains("not a HotSpot JVM"), "{error}");
    }
}
