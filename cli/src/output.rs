//! Where a command's result goes: standard output, or a file that is written whole or not at all.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Writes to a file, or to standard output where none is given. A file is written beside its place and
/// then renamed.
pub fn write_to(
    path: Option<&Path>,
    write: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<()> {
    let Some(path) = path else {
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
    // Through a link to what it leads to. A pipe or a device is no file to replace.
    let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let replaced = fs::metadata(&place).map_or(true, |metadata| metadata.is_file());
    if !replaced {
        let mut out = BufWriter::new(File::create(&place).with_context(advice)?);
        write(&mut out)?;
        return out.flush().with_context(advice);
    }
    let aside = Aside::beside(&place);
    let mut out = BufWriter::new(File::create(&aside.0).with_context(advice)?);
    write(&mut out).with_context(advice)?;
    out.flush().with_context(advice)?;
    fs::rename(&aside.0, &place).with_context(advice)
}

/// A file that is gone when this is dropped, unless it was renamed before.
struct Aside(PathBuf);

impl Aside {
    fn beside(place: &Path) -> Self {
        let mut name = OsString::from(".");
        name.push(place.file_name().unwrap_or_default());
        name.push(format!(".{}.tmp", std::process::id()));
        Self(place.with_file_name(name))
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_or_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        write_to(Some(&path), |out| Ok(out.write_all(b"first")?)).unwrap();
        let failed = write_to(Some(&path), |out| {
            out.write_all(b"sec")?;
            anyhow::bail!("no more")
        });
        assert!(failed.is_err());
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_stays_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write_to(Some(&link), |out| Ok(out.write_all(b"new")?)).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    #[test]
    fn a_device_is_written_to() {
        write_to(Some(Path::new("/dev/null")), |out| Ok(out.write_all(b"x")?)).unwrap();
        assert!(Path::new("/dev/null").exists());
    }
}
