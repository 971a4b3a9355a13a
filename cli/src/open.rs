//! Opens a page in the user's browser.

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

/// The program that opens a file with the application that the desktop assigns to it.
const OPENER: &str = "xdg-open";
/// How long the opener may take to fail. It may run as long as the browser does.
const PATIENCE: Duration = Duration::from_secs(3);

/// The user who ran `sudo`.
#[derive(Debug, Clone, Copy)]
struct Invoker {
    uid: u32,
    gid: u32,
}

impl Invoker {
    /// `None` if this process does not run as root through `sudo`.
    fn find() -> Option<Self> {
        let number = |name: &str| std::env::var(name).ok()?.parse::<u32>().ok();
        let (uid, gid) = (number("SUDO_UID")?, number("SUDO_GID")?);
        (geteuid().is_root() && uid != 0).then_some(Self { uid, gid })
    }

    /// Makes the user the owner of the page. Until then only root can read it.
    fn own(self, page: &Path) -> io::Result<()> {
        let file: File = OpenOptions::new()
            .read(true)
            .custom_flags(O_NOFOLLOW)
            .open(page)?;
        let about = file.metadata()?;
        // With more than one name, the file could be a file of the system.
        if !about.is_file() || about.uid() != 0 || about.nlink() != 1 {
            return Err(io::Error::other("not a page that unfuse wrote"));
        }
        fchown(&file, Some(self.uid), Some(self.gid))
    }
}

/// Opens a page in the browser, and prints its path. Under `sudo`, the browser runs as the user, never as root.
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
