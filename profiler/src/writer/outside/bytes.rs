//! `/proc/PID/io`.

use std::path::PathBuf;

use super::home::{is_open, read_start};
use crate::writer::threads_of;

/// The own bytes of a process with more threads are not read: that is slow, and few such processes have short children.
const MOST_THREADS: usize = 8;

/// Bytes that a process has read and written, and its ended threads and children.
pub(super) fn bytes_of(pid: u32) -> Option<[u64; 2]> {
    if !is_open(pid) {
        return None;
    }
    read_bytes(&PathBuf::from(format!("/proc/{pid}/io")))
}

/// Bytes that the threads of a process have read and written; none if it has many.
pub(super) fn own_bytes_of(pid: u32) -> Option<[u64; 2]> {
    if !is_open(pid) {
        return None;
    }
    let threads = threads_of(pid, MOST_THREADS)?.into_iter();
    let of_threads = threads
        .filter_map(|thread| read_bytes(&PathBuf::from(format!("/proc/{pid}/task/{thread}/io"))));
    Some(of_threads.fold([0, 0], |sum, bytes| {
        [0, 1].map(|index| u64::saturating_add(sum[index], bytes[index]))
    }))
}

/// Reads /proc/PID/io or /proc/PID/task/TID/io.
fn read_bytes(path: &PathBuf) -> Option<[u64; 2]> {
    let text = read_start(path, 4096)?;
    let number = |name: &str| -> Option<u64> {
        let mut lines = text.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(key, _)| *key == name)?.1.trim().parse().ok()
    };
    let cancelled = number("cancelled_write_bytes").unwrap_or(0);
    let written = number("write_bytes")?.saturating_sub(cancelled);
    Some([number("read_bytes")?, written])
}
