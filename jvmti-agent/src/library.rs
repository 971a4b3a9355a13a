//! The path of this library, and its embedded Spark jar.

use std::ffi::{CStr, c_void};
use std::io::Write;
use std::os::fd::AsRawFd;

use unfuse_codemap::{Sealing, memory_file};

/// The Spark jar; empty if it was not built.
pub(crate) static JAR: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/spark.jar"));

/// The path of this library.
pub(crate) fn own_path() -> Option<String> {
    // SAFETY: dladdr fills `info` for an address of this library; its strings live as long as it.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(own_path as *const c_void, &mut info) == 0 {
            return None;
        }
        let path = CStr::from_ptr(info.dli_fname).to_str().ok()?;
        std::fs::canonicalize(path)
            .ok()?
            .to_str()
            .map(str::to_owned)
    }
}

/// The jar as an anonymous file of this process, which needs no clean-up.
pub(crate) fn jar_path() -> Option<String> {
    if JAR.is_empty() {
        return None;
    }
    let mut file = memory_file(c"unfuse-spark.jar", Sealing::Denied).ok()?;
    file.write_all(JAR).ok()?;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    // The class loader opens it on first use, and may open it again, so it stays open.
    std::mem::forget(file);
    Some(path)
}
