//! Opening a page in the browser of the user.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::libc::O_NOFOLLOW;
use nix::unistd::geteuid;

/// The program that opens a file with the application of the user's desktop.
const OPENER: &str = "xdg-open";
/// How long it may take to fail. It may run on while the browser does.
const PATIENCE: Duration = Duration::from_secs(3);

/// The user who ran `sudo`.
#[derive(Debug, Clone, Copy)]
struct Invoker {
    uid: u32,
    gid: u32,
}

impl Invoker {
    /// None where this process is not root by `sudo`.
    fn find() -> Option<Self> {
        let number = |name: &str| std::env::var(name).ok()?.parse::<u32>().ok();
        let (uid, gid) = (number("SUDO_UID")?, number("SUDO_GID")?);
        (geteuid().is_root() && uid != 0).then_some(Self { uid, gid })
    }

    /// Gives the user the page, which only root can read so far.
    fn own(self, page: &Path) -> io::Result<()> {
        let file: File = OpenOptions::new()
            .read(true)
            .custom_flags(O_NOFOLLOW)
            .open(page)?;
        let about = file.metadata()?;
        // Other names of it could stand for a file of the system.
        if !about.is_file() || about.uid() != 0 || about.nlink() != 1 {
            return Err(io::Error::other("not a page that unfuse wrote"));
        }
        fchown(&file, Some(self.uid), Some(self.gid))
    }
}

/// Opens a page in the browser, and prints where it is. A browser never runs as root where `sudo` says who the user is.
pub fn page(page: &Path) {
    let shown = page.display();
    match start(page) {
        Ok(()) => crate::say!("unfuse: wrote {shown}, and opened it in the browser"),
        Err(error) => crate::say!(
            "unfuse: wrote {shown}, but could not open a browser ({error}); open it in one"
        ),
    }
}

fn start(page: &Path) -> io::Result<()> {
    let mut command = Command::new(OPENER);
    command
        .arg(std::path::absolute(page)?)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Ctrl-C in the terminal does not end the browser.
        .process_group(0);
    if let Some(invoker) = Invoker::find() {
        invoker.own(page)?;
        command.uid(invoker.uid).gid(invoker.gid);
    }
    let mut child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => io::Error::other(format!("{OPENER} is not installed")),
        _ => error,
    })?;
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        match child.try_wait()? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(io::Error::other(format!("{OPENER}: {status}"))),
            None => sleep(Duration::from_millis(20)),
        }
    }
    Ok(())
}
