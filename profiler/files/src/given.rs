//! Files that the user named: links that lead to them are followed, but what they lead to must be a regular file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::fcntl::OFlag;

/// Opens a regular file to read. A pipe could block for ever and a device have no end, so neither is opened.
///
/// # Errors
/// Where it is something else, and the system's.
pub fn open_given(path: &Path) -> io::Result<File> {
    // Before it is opened: with devices even that may do something.
    regular(&fs::metadata(path)?)?;
    let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits())
        .open(path)?;
    regular(&file.metadata()?)?;
    Ok(file)
}

/// What is in a regular file.
///
/// # Errors
/// Those of [`open_given`], and where it has more than `most` bytes.
pub fn read_given(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = open_given(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if read as u64 > most {
        let what = format!("it has more than {} MiB, which is the limit", most >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, what));
    }
    Ok(bytes)
}

/// The same as a text.
///
/// # Errors
/// Those of [`read_given`], and where it is not UTF-8.
pub fn read_given_text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(read_given(path, most)?).map_err(|e| {
        let what = format!("it is no text: {}", e.utf8_error());
        io::Error::new(io::ErrorKind::InvalidData, what)
    })
}

fn regular(metadata: &fs::Metadata) -> io::Result<()> {
    if metadata.is_file() {
        Ok(())
    } else if metadata.is_dir() {
        Err(io::ErrorKind::IsADirectory.into())
    } else {
        Err(io::Error::other(
            "it is a pipe, a device or a socket, which is not opened; save its contents as a file first",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::stat::Mode;

    #[test]
    fn only_regular_files_of_a_bounded_size_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link, pipe) = (
            dir.path().join("file"),
            dir.path().join("link"),
            dir.path().join("pipe"),
        );
        fs::write(&file, "text").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        nix::unistd::mkfifo(&pipe, Mode::S_IRWXU).unwrap();
        assert_eq!(read_given_text(&link, 4).unwrap(), "text");
        for (path, says) in [
            (file.as_path(), "it has more than"),
            (&pipe, "pipe"),
            (Path::new("/dev/zero"), "device"),
            (dir.path(), "directory"),
        ] {
            let error = read_given_text(path, 3).unwrap_err().to_string();
            assert!(error.contains(says), "{}: {error}", path.display());
        }
    }
}
