//! Files that live in memory and have no name.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// Whether a size can be fixed for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sealing {
    /// No.
    Denied,
    /// With fcntl's `F_ADD_SEALS`.
    Allowed,
}

/// A new, empty file in memory, closed by exec. `name` is shown in /proc/PID/fd and /proc/PID/maps.
///
/// By system call: glibc has the function only since 2.27.
///
/// # Errors
/// The system's.
pub fn memory_file(name: &CStr, sealing: Sealing) -> io::Result<File> {
    let flags = match sealing {
        Sealing::Denied => libc::MFD_CLOEXEC,
        Sealing::Allowed => libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING,
    };
    // SAFETY: the name is a C string that lives through the call.
    let fd = unsafe { libc::syscall(libc::SYS_memfd_create, name.as_ptr(), flags) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just gave us this descriptor; nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) }.into())
}
