//! Checks whether root may use a file that another user has named.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// Writable by the group, by others.
const BY_GROUP: u32 = 0o020;
const BY_OTHERS: u32 = 0o002;
/// In such a directory only the owner of a file can rename or delete it.
const STICKY: u32 = 0o1000;

/// Checks that only the users in `trusted` can change or replace
/// a file. Returns its path without links. Use that path.
///
/// # Errors
/// If others can change it; the error names the file or directory.
pub(crate) fn check(file: &Path, trusted: &[u32]) -> Result<PathBuf> {
    let real = fs::canonicalize(file).with_context(|| file.display().to_string())?;
    for path in real.ancestors() {
        let metadata = fs::metadata(path).with_context(|| path.display().to_string())?;
        let (owner, mode) = (metadata.uid(), metadata.mode());
        if !trusted.contains(&owner) {
            bail!(
                "{} belongs to user {owner}, who could change what root lets JVMs load from {}; use a copy \
                 that belongs to root",
                path.display(),
                real.display()
            );
        }
        // Only root is in root's group.
        let by_group = mode & BY_GROUP != 0 && metadata.gid() != 0;
        let is_sticky = metadata.is_dir() && mode & STICKY != 0;
        if (by_group || mode & BY_OTHERS != 0) && !is_sticky {
            bail!(
                "other users can write to {}, and so change what root lets JVMs load from {}; forbid that \
                 (chmod go-w {}) or use a copy that belongs to root",
                path.display(),
                real.display(),
                path.display()
            );
        }
    }
    Ok(real)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use nix::unistd::geteuid;

    use super::*;

    #[test]
    fn what_others_can_change_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("library.so");
        fs::write(&file, "code").unwrap();
        let mode = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        mode(&file, 0o755);
        let own = [0, geteuid().as_raw()];
        check(&file, &own).unwrap();
        let refused = |file: &Path, says: &str| {
            let error = check(file, &own).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        };
        mode(&file, 0o757);
        refused(&file, "other users can write to");
        mode(&file, 0o755);
        mode(home.path(), 0o777);
        refused(&file, "chmod go-w");
        mode(home.path(), 0o1777);
        check(&file, &own).unwrap();
        mode(home.path(), 0o700);
        let error = check(&file, &[u32::MAX]).unwrap_err().to_string();
        assert!(error.contains("belongs to user"), "{error}");
        let link = home.path().join("link.so");
        symlink(&file, &link).unwrap();
        assert_eq!(
            check(&link, &own).unwrap(),
            fs::canonicalize(&file).unwrap()
        );
        if geteuid().is_root() {
            chown(&file, Some(65_534), None).unwrap();
            refused(&link, "belongs to user 65534");
        }
    }
}
