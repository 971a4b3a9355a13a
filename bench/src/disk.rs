//! The size of directories.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

/// Total size of all files below a directory, bytes.
/// Files that vanish meanwhile do not count.
///
/// # Errors
/// If something cannot be read.
pub fn bytes_below(dir: &Path) -> io::Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let bytes = match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => bytes_below(&entry.path()),
            Ok(metadata) => Ok(metadata.len()),
            Err(error) => Err(error),
        };
        sum += match bytes {
            Err(error) if error.kind() == ErrorKind::NotFound => 0,
            bytes => bytes?,
        };
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_folders_count() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        fs::write(dir.path().join("one"), [0; 3])?;
        fs::create_dir(dir.path().join("folder"))?;
        fs::write(dir.path().join("folder/two"), [0; 4])?;
        assert_eq!(bytes_below(dir.path())?, 7);
        Ok(())
    }
}
