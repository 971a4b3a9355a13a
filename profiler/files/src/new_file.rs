//! Files that appear under their names when they are complete.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};

use crate::Directory;

/// A file that has a temporary name until it is complete. Dropping it removes it.
#[derive(Debug)]
pub struct NewFile {
    directory: Directory,
    /// Empty once it has its name.
    temporary: String,
    file: File,
}

impl NewFile {
    pub(crate) fn new(directory: Directory, temporary: String, file: File) -> Self {
        Self {
            directory,
            temporary,
            file,
        }
    }

    /// Gives the file its name. Something else of that name, also a link, is replaced.
    ///
    /// # Errors
    /// The system's; the file is removed then.
    pub fn commit(mut self, name: impl AsRef<OsStr>) -> io::Result<()> {
        self.directory.rename(&self.temporary, name)?;
        self.temporary.clear();
        Ok(())
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.temporary.is_empty() {
            let _ = self.directory.remove(&self.temporary);
        }
    }
}
