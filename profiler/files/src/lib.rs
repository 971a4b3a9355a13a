//! Directories and files where other users can write too.
//!
//! A [`Directory`] is open: what is in it is opened, created, renamed and removed relative to its descriptor, by plain
//! names, and a symbolic link in it is never followed. So nobody who may write to a directory above it can redirect what is
//! read or written. [`Directory::create`] refuses a directory of another user, and one that other users can write to.
//! What it creates has mode 0700 or 0600 from the start.
//!
//! ```
//! use std::io::Write;
//! use unfuse_files::{Access, Directory};
//! # let tmp = tempfile::tempdir().unwrap();
//! let directory = Directory::create(&tmp.path().join("out"), Access::Private).unwrap();
//! let mut file = directory.new_file().unwrap();
//! file.write_all(b"text").unwrap();
//! file.commit("name").unwrap();
//! assert_eq!(directory.read("name", 100).unwrap(), b"text");
//! assert!(directory.read("../name", 100).is_err());
//! ```

mod about;
mod create;
mod directory;
mod error;
mod given;
mod new_file;

pub use about::{About, Access, Kind, is_trusted};
pub use directory::Directory;
pub use error::DirectoryError;
pub use given::{open_given, read_given, read_given_text};
pub use new_file::NewFile;

/// 16 hexadecimal digits that nobody can predict, for names of temporary files.
///
/// # Errors
/// The system's, where it has no random numbers.
pub fn random_digits() -> std::io::Result<String> {
    let number = getrandom::u64().map_err(|e| match e.raw_os_error() {
        Some(errno) => std::io::Error::from_raw_os_error(errno),
        None => std::io::Error::other("the system has no random numbers"),
    })?;
    Ok(format!("{number:016x}"))
}

#[cfg(test)]
mod tests;
