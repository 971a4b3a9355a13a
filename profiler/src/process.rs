//! Forked processes: starting and naming them, and closing what they inherit.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use nix::sys::signal::{
    SaFlags, SigAction, SigHandler, SigSet, SigmaskHow, Signal, sigaction, sigprocmask,
};
use nix::unistd::{ForkResult, fork};

/// Forks and runs `body` in the child, which then exits; the parent gets the child's pid.
///
/// Only for processes that may fork safely: the JVM in Agent_OnLoad (its only other thread waits in join) and our own
/// single-threaded processes.
pub(crate) fn spawn(body: impl FnOnce()) -> io::Result<nix::unistd::Pid> {
    // SAFETY: see above; glibc makes malloc usable in the child, and no lock of ours is held.
    match unsafe { fork() }? {
        ForkResult::Parent { child } => Ok(child),
        ForkResult::Child => {
            // A panic must not unwind into the frames of the JVM, of which this process is a copy.
            let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
            // SAFETY: ends this process without running the JVM's atexit handlers.
            unsafe { libc::_exit(i32::from(ended.is_err())) }
        }
    }
}

/// Detaches a forked child from what it inherited: the terminal's session, standard streams (an open pipe would keep
/// its reader waiting after the JVM's end), signal settings, and every descriptor that is not in `keep`.
pub(crate) fn detach(keep: &[RawFd]) {
    let _ = nix::unistd::setsid();
    if let Ok(null) = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null")
    {
        for stream in 0..=2 {
            // SAFETY: both descriptors are valid; replacing standard streams is the intent.
            unsafe { libc::dup2(null.as_raw_fd(), stream) };
        }
    }
    close_all_but(keep);
    let ignore = SigAction::new(SigHandler::SigIgn, SaFlags::empty(), SigSet::empty());
    // They are meant for the JVM, whose end is ours anyway, after saving the data.
    for signal in [
        Signal::SIGINT,
        Signal::SIGTERM,
        Signal::SIGHUP,
        Signal::SIGQUIT,
        Signal::SIGPIPE,
        // A file that may not grow is an error to report, as for a full disk.
        Signal::SIGXFSZ,
    ] {
        // SAFETY: ignoring a signal runs no code.
        let _ = unsafe { sigaction(signal, &ignore) };
    }
    let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    // The JVM's handlers would write its crash report for a crash of ours.
    for signal in [
        Signal::SIGSEGV,
        Signal::SIGBUS,
        Signal::SIGFPE,
        Signal::SIGILL,
        Signal::SIGTRAP,
        Signal::SIGCHLD,
    ] {
        // SAFETY: the default disposition runs no code.
        let _ = unsafe { sigaction(signal, &default) };
    }
    let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None);
}

/// Closes every descriptor except the standard streams and those in `keep`.
pub(crate) fn close_all_but(keep: &[RawFd]) {
    let mut keep: Vec<u32> = keep.iter().map(|fd| *fd as u32).chain([0, 1, 2]).collect();
    keep.sort_unstable();
    let mut next = 0;
    for fd in keep {
        if fd > next {
            close_range(next, fd - 1);
        }
        next = fd + 1;
    }
    close_range(next, u32::MAX);
}

fn close_range(first: u32, last: u32) {
    // SAFETY: closes descriptors nobody in this process uses (the caller lists those in use).
    let done = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    if done != 0 {
        for fd in first..=last.min(4096) {
            // SAFETY: as above, for kernels before 5.9.
            unsafe { libc::close(fd as RawFd) };
        }
    }
}

/// Makes room on the heap of this process, and so of its children. glibc otherwise asks the kernel for each page of a thread
/// that was not the first of its process, as that of the JVM is.
pub(crate) fn reserve_heap() {
    // Less than what glibc maps by itself or gives back.
    const BYTES: usize = 100 << 10;
    drop(std::hint::black_box(Vec::<u8>::with_capacity(BYTES)));
}

/// Shows `name` in ps and top instead of the JVM's command line.
pub(crate) fn set_title(name: &str) {
    if let Ok(short) = std::ffi::CString::new(&name.as_bytes()[..name.len().min(15)]) {
        let _ = nix::sys::prctl::set_name(&short);
    }
    let Some((start, end)) = argument_area() else {
        return;
    };
    let room = end.saturating_sub(start);
    let bytes = &name.as_bytes()[..name.len().min(room.saturating_sub(1))];
    // SAFETY: [start, end) is the argument area of this process as the kernel reports it; it is
    // writable memory on the initial stack, and this copy of it has no other user.
    unsafe {
        std::ptr::write_bytes(start as *mut u8, 0, room);
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), start as *mut u8, bytes.len());
    }
}

/// Fields 48 and 49 of /proc/self/stat.
fn argument_area() -> Option<(usize, usize)> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let start = fields.nth(45)?.parse().ok()?;
    let end = fields.next()?.parse().ok()?;
    (start > 0 && end > start).then_some((start, end))
}

/// A descriptor that polls readable when the process has ended.
pub(crate) fn pidfd(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: a plain system call on integers.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just gave us this descriptor; it is close-on-exec by itself.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// Lowers the priority of the calling thread, for work that may be late.
pub(crate) fn give_way() {
    const NICE: libc::c_int = 10;
    // SAFETY: takes integers only; 0 is the calling thread, and on failure its priority stays.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICE) };
}
