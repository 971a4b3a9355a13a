//! The result of a command, for standard output or a file. A file is written completely or not at all.
//!
//! A file has mode 0600 from its first byte, because a result contains parts of a profile: statements, source, records.
//! It replaces an existing file of its name. unfuse writes to a link, a pipe or a device only if it belongs to root or
//! to the user: another user could have planted it.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use nix::sys::statfs::{PROC_SUPER_MAGIC, fstatfs};
use nix::unistd::Uid;
use schemars::JsonSchema;
use serde::Serialize;
use unfuse_files::{Directory, Kind, is_trusted};
use unfuse_postprocess::plain::{Form, Plain};

/// Prints a line on standard error, see [`crate::say!`]. Removes
/// control characters, because the line can quote foreign text.
pub fn say(line: std::fmt::Arguments<'_>) {
    // If standard error is closed, the line has no reader.
    let _ = writeln!(Plain::new(io::stderr().lock(), Form::Text), "{line}");
}

/// Prints a line on standard error, like `eprintln!`.
#[macro_export]
macro_rules! say {
    ($($line:tt)*) => { $crate::output::say(format_args!($($line)*)) };
}

/// The output form of an answer in JSON or text.
pub fn form(json: bool) -> Form {
    if json { Form::Json } else { Form::Text }
}

/// The same as [`write_to`] for text and JSON: removes characters that control a terminal.
pub fn write_plain_to(
    path: Option<&Path>,
    form: Form,
    write: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<()> {
    write_to(path, |out| write(&mut Plain::new(out, form)))
}

/// Prints an answer as JSON or as text, to a file, or to standard output if no file is given.
pub fn print(
    path: Option<&Path>,
    json: bool,
    answer: &(impl Serialize + JsonSchema),
    text: impl FnOnce() -> String,
) -> Result<()> {
    write_plain_to(path, form(json), |out| {
        if json {
            serde_json::to_writer_pretty(&mut *out, answer)?;
            return Ok(writeln!(out)?);
        }
        Ok(out.write_all(text().as_bytes())?)
    })
}

/// Maximum number of links to follow.
const MOST_LINKS: usize = 16;

/// Names of standard output. Only the user who started unfuse may be able to open such a file by its name.
const STDOUT: [&str; 4] = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];

/// Whether a path stands for standard output.
pub fn is_stdout(path: &Path) -> bool {
    STDOUT.iter().any(|name| path == Path::new(name))
}

/// Writes to a file, or to standard output if `path` is missing
/// or names it. Renames a temporary file to the path at the end.
pub fn write_to(
    path: Option<&Path>,
    write: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<()> {
    let Some(path) = path.filter(|path| !is_stdout(path)) else {
        let mut out = BufWriter::new(io::stdout().lock());
        write(&mut out)?;
        return Ok(out.flush()?);
    };
    let advice = || {
        format!(
            "cannot write {}; choose another place with -o",
            path.display()
        )
    };
    match Place::find(path).with_context(advice)? {
        Place::Open(file) => {
            let mut out = BufWriter::new(file);
            write(&mut out)?;
            out.flush().with_context(advice)
        }
        Place::Name(directory, name) => {
            let mut out = BufWriter::new(directory.new_file().with_context(advice)?);
            write(&mut out).with_context(advice)?;
            let file = out.into_inner().map_err(|e| e.into_error());
            file.and_then(|file| file.commit(name)).with_context(advice)
        }
    }
}

/// The target that a path stands for.
enum Place {
    /// A name in a directory, for a regular file.
    Name(Directory, PathBuf),
    /// A pipe, a device, or an open file of this process.
    Open(File),
}

impl Place {
    /// Follows links if their owner is trusted.
    fn find(path: &Path) -> Result<Self> {
        let mut path = path.to_owned();
        for _ in 0..MOST_LINKS {
            let Some(name) = path.file_name().map(PathBuf::from) else {
                bail!("Is a directory");
            };
            let directory = Directory::open(path.parent().unwrap_or(Path::new("")))?;
            let about = match directory.about(&name) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => {
                    return Ok(Self::Name(directory, name));
                }
                other => other?,
            };
            let is_ours = is_trusted(about.owner);
            match about.kind {
                Kind::File => return Ok(Self::Name(directory, name)),
                Kind::Directory => bail!("Is a directory"),
                Kind::Link | Kind::Special if !is_ours => bail!(
                    "it is a {} of another user (uid {}); unfuse does not write to it",
                    if about.kind == Kind::Link {
                        "link"
                    } else {
                        "pipe or device"
                    },
                    about.owner
                ),
                // A link such as /dev/fd/3 in /proc: no path leads to its target.
                Kind::Link if fstatfs(&directory)?.filesystem_type() == PROC_SUPER_MAGIC => {
                    return open(&path, 0);
                }
                Kind::Link => path = directory.path().join(directory.read_link(&name)?),
                Kind::Special => return open(&path, nix::libc::O_NOFOLLOW),
            }
        }
        bail!("too many links")
    }
}

/// Opens a target that is no file to replace. Checks its owner again, because the target may have changed.
fn open(path: &Path, flags: i32) -> Result<Place> {
    let file = OpenOptions::new()
        .append(true)
        .custom_flags(flags)
        .open(path)?;
    if !is_trusted(Uid::from_raw(file.metadata()?.uid())) {
        bail!("it belongs to another user; unfuse does not write to it");
    }
    Ok(Place::Open(file))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn a_file_is_replaced_whole_or_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        fs::write(&path, "others may read this").unwrap();
        write_to(Some(&path), |out| {
            out.write_all(b"first")?;
            out.flush()?;
            let temporary = fs::read_dir(dir.path())
                .unwrap()
                .flatten()
                .map(|e| e.path());
            let modes: Vec<u32> = temporary.filter(|p| *p != path).map(|p| mode(&p)).collect();
            assert_eq!(modes, [0o600]);
            Ok(())
        })
        .unwrap();
        assert_eq!(mode(&path), 0o600);
        let failed = write_to(Some(&path), |out| {
            out.write_all(b"sec")?;
            anyhow::bail!("no more")
        });
        assert!(failed.is_err());
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_of_ones_own_stays_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        fs::write(&file, "old").unwrap();
        symlink("file", &link).unwrap();
        write_to(Some(&link), |out| Ok(out.write_all(b"new")?)).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        symlink("loop", dir.path().join("loop")).unwrap();
        assert!(write_to(Some(&dir.path().join("loop")), |_| Ok(())).is_err());
    }

    #[test]
    fn a_device_and_an_open_file_are_written_to() {
        write_to(Some(Path::new("/dev/null")), |out| Ok(out.write_all(b"x")?)).unwrap();
        assert!(Path::new("/dev/null").exists());
        let file = tempfile::NamedTempFile::new().unwrap();
        let descriptor = std::os::fd::AsRawFd::as_raw_fd(file.as_file());
        let place = PathBuf::from(format!("/dev/fd/{descriptor}"));
        write_to(Some(&place), |out| Ok(out.write_all(b"text")?)).unwrap();
        assert_eq!(fs::read(file.path()).unwrap(), b"text");
    }
}
