//! The files of the attach protocol. The JVM's user can write
//! to their directories, and everybody can write to /tmp.
//!
//! So they are used only with the rights of the JVM's owner (`Identity::run`), and only relative to directories
//! that are already open. The code checks a file that exists before it uses it, and follows no link.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, OpenHow, ResolveFlag, open, openat, openat2};
use nix::sys::socket::{getsockopt, sockopt};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat};
use nix::unistd::{UnlinkatFlags, unlinkat};
use unfuse_profiler::identity::Identity;

/// Upper bound of the JVM's performance data, bytes. It has 32 KiB unless the JVM's options set another size.
const MOST_PERFORMANCE_DATA: u64 = 4 << 20;
/// Opens a directory only to reach its files.
const PLACE: OFlag = OFlag::O_PATH
    .union(OFlag::O_DIRECTORY)
    .union(OFlag::O_CLOEXEC);
/// Opens the named file itself, not the target of a link.
const ITSELF: OFlag = OFlag::O_NOFOLLOW.union(OFlag::O_CLOEXEC);

/// Open handles of a JVM's directories.
#[derive(Debug)]
pub(super) struct JvmFiles {
    pid: u32,
    owner: Identity,
    root: OwnedFd,
    /// `None` if the directory was deleted.
    cwd: Option<OwnedFd>,
}

impl JvmFiles {
    /// Opens the directories. The caller needs the right to read the process's files in /proc.
    pub(super) fn open(pid: u32, owner: Identity) -> Result<Self> {
        let of_process = |name: &str| {
            let path = format!("/proc/{pid}/{name}");
            open(path.as_str(), PLACE, Mode::empty())
        };
        let root = of_process("root")
            .with_context(|| format!("the file system of process {pid} cannot be looked at"))?;
        Ok(Self {
            pid,
            owner,
            root,
            cwd: of_process("cwd").ok(),
        })
    }

    /// The JVM's /tmp.
    fn tmp(&self) -> Result<OwnedFd> {
        let itself = openat(&self.root, "tmp", PLACE | OFlag::O_NOFOLLOW, Mode::empty());
        let tmp = itself.or_else(|_| {
            // If /tmp is a link, it is resolved in the JVM's file system.
            let how = OpenHow::new()
                .flags(PLACE)
                .resolve(ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_MAGICLINKS);
            openat2(&self.root, "tmp", how)
        });
        tmp.with_context(|| format!("/tmp of JVM {} cannot be opened", self.pid))
    }

    /// The path of this file in a directory of the JVM, for messages.
    fn shown(&self, folder: &str, name: &str) -> String {
        format!("/proc/{}/{folder}/{name}", self.pid)
    }

    fn is_owners(&self, stat: &FileStat) -> bool {
        stat.st_uid == self.owner.uid().as_raw()
    }

    /// Whether attaching is disabled, by the JVM's performance data; `None` if there is no such data.
    pub(super) fn attach_is_disabled(&self) -> Option<bool> {
        let tmp = self.tmp().ok()?;
        let folders = fs::read_dir(handle_path(&tmp)).ok()?.flatten();
        let data = folders
            .filter(|entry| {
                let name = entry.file_name();
                name.to_string_lossy().starts_with("hsperfdata_")
            })
            .find_map(|entry| self.performance_data(&tmp, Path::new(&entry.file_name())))?;
        can_attach(&data).map(|can| !can)
    }

    fn performance_data(&self, tmp: &OwnedFd, folder: &Path) -> Option<Vec<u8>> {
        let folder = openat(tmp, folder, PLACE | ITSELF, Mode::empty()).ok()?;
        if !self.is_owners(&fstat(&folder).ok()?) {
            return None;
        }
        let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | ITSELF;
        let name = self.pid.to_string();
        let file = openat(&folder, name.as_str(), flags, Mode::empty()).ok()?;
        let stat = fstat(&file).ok()?;
        if kind(&stat) != SFlag::S_IFREG || !self.is_owners(&stat) {
            return None;
        }
        let mut data = Vec::new();
        File::from(file)
            .take(MOST_PERFORMANCE_DATA)
            .read_to_end(&mut data)
            .ok()?;
        Some(data)
    }

    /// Connects to the socket on which the JVM listens for tools; `None` if it does not listen yet.
    ///
    /// # Errors
    /// If the file is not the JVM's socket.
    pub(super) fn connect(&self) -> Result<Option<UnixStream>> {
        let name = format!(".java_pid{}", self.pid);
        let shown = || self.shown("root/tmp", &name);
        let socket = match openat(
            self.tmp()?,
            name.as_str(),
            OFlag::O_PATH | ITSELF,
            Mode::empty(),
        ) {
            Ok(socket) => socket,
            Err(Errno::ENOENT) => return Ok(None),
            Err(e) => return Err(e).with_context(shown),
        };
        let stat = fstat(&socket).with_context(shown)?;
        if kind(&stat) != SFlag::S_IFSOCK || !self.is_owners(&stat) {
            bail!(
                "{} is {}, not the socket of JVM {}; remove it",
                shown(),
                self.describe(&stat),
                self.pid
            );
        }
        // Connects through the handle, so that it is the file that was just checked.
        let stream = match UnixStream::connect(handle_path(&socket)) {
            Ok(stream) => stream,
            // The socket is left over from an earlier JVM with this process id.
            Err(e) if e.kind() == ErrorKind::ConnectionRefused => return Ok(None),
            Err(e) => return Err(e).with_context(shown),
        };
        let peer = getsockopt(&stream, sockopt::PeerCredentials)?;
        if peer.pid() as u32 != self.pid || peer.uid() != self.owner.uid().as_raw() {
            bail!(
                "process {} of user {} listens on {}, not JVM {}",
                peer.pid(),
                peer.uid(),
                shown(),
                self.pid
            );
        }
        Ok(Some(stream))
    }

    /// Creates the file that makes the JVM start listening at a SIGQUIT instead of printing a thread dump.
    ///
    /// # Errors
    /// If the file cannot be created, or another file has its name. The JVM would look at that one.
    pub(super) fn trigger(&self) -> Result<Trigger> {
        let name = format!(".attach_pid{}", self.pid);
        let cwd = self.cwd.as_ref().map(|cwd| cwd.try_clone());
        let places = [("cwd", cwd.transpose()?), ("root/tmp", Some(self.tmp()?))];
        let mut refused = Errno::ENOENT;
        for (folder, place) in places {
            let Some(place) = place else { continue };
            let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | ITSELF;
            match openat(&place, name.as_str(), flags, Mode::S_IRUSR | Mode::S_IWUSR) {
                Ok(_) => return Ok(Trigger { place, name }),
                Err(Errno::EEXIST) => {
                    let shown = self.shown(folder, &name);
                    let stat = fstatat(&place, name.as_str(), AtFlags::AT_SYMLINK_NOFOLLOW)
                        .with_context(|| shown.clone())?;
                    // A tool that was killed leaves its file behind.
                    if kind(&stat) == SFlag::S_IFREG && self.is_owners(&stat) {
                        return Ok(Trigger { place, name });
                    }
                    bail!(
                        "{shown} is {}; the file by which a tool announces itself to JVM {} has this name: \
                         remove it",
                        self.describe(&stat),
                        self.pid
                    );
                }
                Err(e) => refused = e,
            }
        }
        Err(anyhow!(refused)).with_context(|| {
            format!(
                "{} can write neither to the working directory of JVM {} nor to its /tmp",
                self.owner, self.pid
            )
        })
    }

    /// Checks that the JVM sees a library at the same path and may read it.
    ///
    /// # Errors
    /// If it cannot; the error gives the reason.
    pub(super) fn check_library(&self, library: &Path) -> Result<()> {
        let path = library.strip_prefix("/").unwrap_or(library);
        let how = OpenHow::new()
            .flags(OFlag::O_PATH | OFlag::O_CLOEXEC)
            .resolve(ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_MAGICLINKS);
        let inside = match openat2(&self.root, path, how) {
            // Before Linux 5.6, or refused by a container's filter.
            Err(Errno::ENOSYS | Errno::EPERM) => {
                openat(&self.root, path, OFlag::O_PATH | ITSELF, Mode::empty())
            }
            opened => opened,
        };
        if inside.as_ref().err() == Some(&Errno::EACCES) || File::open(library).is_err() {
            bail!(
                "{} cannot read {}; install unfuse where that user can",
                self.owner,
                library.display()
            );
        }
        let file = |stat: &FileStat| (stat.st_dev, stat.st_ino);
        let own = nix::sys::stat::stat(library)?;
        let same = inside
            .and_then(fstat)
            .is_ok_and(|inside| file(&inside) == file(&own));
        if !same {
            bail!(
                "JVM {} has another file system, without {}; install unfuse where both see it",
                self.pid,
                library.display()
            );
        }
        Ok(())
    }

    /// The type of a file, for messages.
    fn describe(&self, stat: &FileStat) -> String {
        let what = match kind(stat) {
            SFlag::S_IFLNK => "a symbolic link",
            SFlag::S_IFIFO => "a FIFO",
            SFlag::S_IFDIR => "a directory",
            SFlag::S_IFREG => "a file",
            SFlag::S_IFSOCK => "a socket",
            _ => "a device",
        };
        if self.is_owners(stat) {
            what.to_owned()
        } else {
            format!("{what} of user {}", stat.st_uid)
        }
    }
}

/// The file that makes the JVM start listening at a SIGQUIT instead
/// of printing a thread dump. Dropping it removes the file.
#[derive(Debug)]
pub(super) struct Trigger {
    place: OwnedFd,
    name: String,
}

impl Drop for Trigger {
    fn drop(&mut self) {
        let _ = unlinkat(&self.place, self.name.as_str(), UnlinkatFlags::NoRemoveDir);
    }
}

fn kind(stat: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT
}

/// A path to an open file, even if it was renamed.
fn handle_path(handle: &impl AsFd) -> PathBuf {
    Path::new("/proc/self/fd").join(handle.as_fd().as_raw_fd().to_string())
}

/// The first character of the value of `sun.rt.jvmCapabilities`, which follows the name.
fn can_attach(data: &[u8]) -> Option<bool> {
    let name = b"sun.rt.jvmCapabilities\0";
    let position = data.windows(name.len()).position(|window| window == name)?;
    match data[position + name.len()..]
        .iter()
        .find(|byte| **byte != 0)?
    {
        b'1' => Some(true),
        b'0' => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use nix::sys::stat::{makedev, mknod};
    use nix::unistd::mkfifo;

    use super::super::{Jvm, MOST_ARGUMENTS};
    use super::*;

    /// The files of a process with this process's id, whose root
    /// is `home` and whose working directory is `home/work`.
    fn files(home: &Path) -> JvmFiles {
        for folder in ["tmp", "work"] {
            fs::create_dir(home.join(folder)).unwrap();
        }
        let place = |path: PathBuf| open(&path, PLACE, Mode::empty()).unwrap();
        JvmFiles {
            pid: std::process::id(),
            owner: Identity::current(),
            root: place(home.to_owned()),
            cwd: Some(place(home.join("work"))),
        }
    }

    /// Creates a device: /dev/zero if this process may create it,
    /// else one without a driver, which every user may create.
    fn device(path: &Path) {
        let make = |major, minor| mknod(path, SFlag::S_IFCHR, Mode::S_IRWXU, makedev(major, minor));
        make(1, 5).or_else(|_| make(0, 0)).unwrap();
    }

    /// Creates a link, a FIFO and a device at `path`, one after the other.
    fn plant_each(path: &Path, target: &Path, check: impl Fn(&str)) {
        symlink(target, path).unwrap();
        check("a symbolic link");
        fs::remove_file(path).unwrap();
        mkfifo(path, Mode::S_IRWXU).unwrap();
        check("a FIFO");
        fs::remove_file(path).unwrap();
        device(path);
        check("a device");
    }

    /// Checks the beginning of a message, and that it ends with what to do.
    fn is_refusal(error: &str, begins: &str) {
        assert!(error.starts_with(begins), "{error}");
        assert!(error.ends_with("remove it"), "{error}");
    }

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
    fn performance_data_is_read_and_nothing_else_in_its_place() {
        let home = tempfile::tempdir().unwrap();
        let files = files(home.path());
        assert_eq!(files.attach_is_disabled(), None);
        let folder = home.path().join("tmp/hsperfdata_me");
        fs::create_dir(&folder).unwrap();
        let data = folder.join(files.pid.to_string());
        fs::write(&data, b"sun.rt.jvmCapabilities\0\x0001000").unwrap();
        assert_eq!(files.attach_is_disabled(), Some(true));
        let elsewhere = home.path().join("elsewhere");
        fs::rename(&data, &elsewhere).unwrap();
        symlink(&elsewhere, &data).unwrap();
        assert_eq!(files.attach_is_disabled(), None);
        fs::remove_file(&data).unwrap();
        mkfifo(&data, Mode::S_IRWXU).unwrap();
        assert_eq!(files.attach_is_disabled(), None);
        fs::remove_file(&data).unwrap();
        symlink("/dev/zero", &data).unwrap();
        assert_eq!(files.attach_is_disabled(), None);
        let (tmp, name) = (files.tmp().unwrap(), Path::new("hsperfdata_me"));
        assert_eq!(files.performance_data(&tmp, name), None);
        fs::remove_file(&data).unwrap();
        device(&data);
        assert_eq!(files.performance_data(&tmp, name), None);
        // Of a regular file, only as much is read as a JVM could have written.
        fs::remove_file(&data).unwrap();
        let long = File::create(&data).unwrap();
        long.set_len(2 * MOST_PERFORMANCE_DATA).unwrap();
        let read = files.performance_data(&tmp, name).map(|data| data.len());
        assert_eq!(read, Some(MOST_PERFORMANCE_DATA as usize));
    }

    /// The JVM's user controls the contents and the size of its command line and environment.
    #[test]
    fn of_command_line_and_environment_no_more_is_read_than_a_jvm_has() {
        let home = tempfile::tempdir().unwrap();
        let files = files(home.path());
        let (pid, owner) = (files.pid, files.owner);
        let jvm = Jvm { pid, owner, files };
        // Stands for /proc/PID. Files that do not exist there cannot be read, and decide nothing.
        let proc = home.path().join("proc");
        fs::create_dir(&proc).unwrap();
        jvm.check(&proc, true).unwrap();
        let flag = "-XX:+DisableAttachMechanism";
        for name in ["cmdline", "environ"] {
            let path = proc.join(name);
            fs::create_dir(&path).unwrap();
            jvm.check(&proc, true).unwrap();
            fs::remove_dir(&path).unwrap();
            // The flag is found up to the bound.
            let padded = |before: u64| "x".repeat(before as usize) + flag;
            let before = MOST_ARGUMENTS - flag.len() as u64;
            fs::write(&path, padded(before)).unwrap();
            let error = jvm.check(&proc, true).unwrap_err().to_string();
            assert!(
                error.contains("+DisableAttachMechanism; start it without"),
                "{name}: {error}"
            );
            fs::write(&path, padded(before + 1)).unwrap();
            jvm.check(&proc, true).unwrap();
            // Reading stops at the bound also for an endless file.
            fs::remove_file(&path).unwrap();
            symlink("/dev/zero", &path).unwrap();
            jvm.check(&proc, true).unwrap();
        }
    }

    #[test]
    fn a_trigger_is_made_and_removed() {
        let home = tempfile::tempdir().unwrap();
        let files = files(home.path());
        let path = home.path().join(format!("work/.attach_pid{}", files.pid));
        let trigger = files.trigger().unwrap();
        assert!(path.is_file());
        drop(trigger);
        assert!(!path.exists());
        fs::write(&path, "left by a tool").unwrap();
        drop(files.trigger().unwrap());
        assert!(!path.exists());
    }

    #[test]
    fn a_trigger_in_whose_place_something_is_says_so() {
        let home = tempfile::tempdir().unwrap();
        let files = files(home.path());
        let path = home.path().join(format!("work/.attach_pid{}", files.pid));
        let precious = home.path().join("precious");
        fs::write(&precious, "precious").unwrap();
        let shown = format!("/proc/{0}/cwd/.attach_pid{0}", files.pid);
        plant_each(&path, &precious, |what| {
            let error = files.trigger().unwrap_err().to_string();
            is_refusal(&error, &format!("{shown} is {what}; "));
            assert!(path.symlink_metadata().is_ok(), "what is not ours stays");
            assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
        });
    }

    #[test]
    fn a_socket_is_the_jvms_or_told() {
        let home = tempfile::tempdir().unwrap();
        let files = files(home.path());
        let path = home.path().join(format!("tmp/.java_pid{}", files.pid));
        assert!(files.connect().unwrap().is_none());
        let listener = UnixListener::bind(&path).unwrap();
        assert!(files.connect().unwrap().is_some());
        let other = JvmFiles {
            pid: 1,
            root: files.root.try_clone().unwrap(),
            cwd: None,
            owner: files.owner,
        };
        let moved = home.path().join("tmp/.java_pid1");
        fs::rename(&path, &moved).unwrap();
        let error = other.connect().unwrap_err().to_string();
        assert!(error.contains("not JVM 1"), "{error}");
        let shown = format!("/proc/{0}/root/tmp/.java_pid{0}", files.pid);
        plant_each(&path, &moved, |what| {
            let error = files.connect().unwrap_err().to_string();
            is_refusal(&error, &format!("{shown} is {what}, not the socket"));
            assert!(error.ends_with("; remove it"), "{error}");
        });
        drop(listener);
        assert!(other.connect().unwrap().is_none(), "nobody listens");
    }
}
