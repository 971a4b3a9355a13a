//! The interpreter of a Python process, read by py-spy without stopping it.

use std::cell::RefCell;
use std::io::{self, IoSliceMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;
use procfs::process::{ProcState, Process};
use py_spy::PythonSpy;
use py_spy::config::{Config, LockingStrategy};

/// Longest name of a function that is kept, and longest path, bytes.
const LONGEST_NAME: usize = 256;
const LONGEST_PATH: usize = 512;
/// Most frames of a stack; the outermost ones of a deeper recursion are left out.
const MOST_FRAMES: usize = 128;
/// Outermost functions of Python's threads. A stack that begins otherwise was read while it changed.
const ROOTS: [&str; 3] = ["_run_module_as_main", "<module>", "_bootstrap"];

/// What identifies a process, and where its program is in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Born {
    /// When it started, clock ticks after boot: another process with the same number has another time.
    at: u64,
    /// Addresses of code, stack and heap. Only a process that was forked from another has the same ones: the kernel
    /// chooses them at random when a program starts.
    layout: [u64; 3],
}

impl Born {
    /// Whether both are the same process, if their numbers are.
    pub(super) fn is_same(self, other: Self) -> bool {
        self.at == other.at
    }
}

/// What /proc says of a process now.
#[derive(Debug, Clone, Copy)]
pub(super) struct Looked {
    pub(super) born: Born,
    /// Whether its main thread runs or could.
    pub(super) runs: bool,
}

/// The state of a process; `None` if it has ended.
pub(super) fn look(pid: u32) -> Option<Looked> {
    let stat = Process::new(i32::try_from(pid).ok()?).ok()?.stat().ok()?;
    let heap = stat.start_brk.unwrap_or(0);
    Some(Looked {
        born: Born {
            at: stat.starttime,
            layout: [stat.startcode, stat.startstack, heap],
        },
        runs: matches!(stat.state(), Ok(ProcState::Running)),
    })
}

/// A function call of a stack.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Call {
    pub(super) function: String,
    /// The path of the file as the interpreter knows it.
    pub(super) file: String,
    /// 0 if unknown.
    pub(super) line: u32,
}

/// An interpreter that can be read.
pub(super) struct Interpreter {
    pid: i32,
    /// Shared by processes in which the interpreter has the same addresses.
    spy: Rc<RefCell<PythonSpy>>,
    layout: [u64; 3],
}

impl Interpreter {
    /// Opens the interpreter of a process: reads its symbols, which takes tens of milliseconds.
    ///
    /// # Errors
    /// EPERM if this process may not read the other's memory, ENOEXEC if no known interpreter runs in it.
    pub(super) fn open(pid: u32, born: Born) -> io::Result<Self> {
        may_read(pid, born.layout[0])?;
        let pid = i32::try_from(pid).map_err(io::Error::other)?;
        // What it parses is another process's data.
        let opened = catch_unwind(|| PythonSpy::new(pid, &config()).ok());
        let unknown = || io::Error::from_raw_os_error(libc::ENOEXEC);
        let spy = opened.ok().flatten().ok_or_else(unknown)?;
        let opened = Self {
            pid,
            spy: Rc::new(RefCell::new(spy)),
            layout: born.layout,
        };
        opened.read(false).map_err(|()| unknown())?;
        Ok(opened)
    }

    /// The interpreter of a process that was forked from the same one: it is at the same addresses. `None` if it was
    /// not.
    pub(super) fn of_sibling(&self, pid: u32, born: Born) -> Option<Self> {
        let is_known = born.layout.iter().all(|address| *address > 1);
        if !is_known || born.layout != self.layout {
            return None;
        }
        let sibling = Self {
            pid: i32::try_from(pid).ok()?,
            spy: Rc::clone(&self.spy),
            layout: self.layout,
        };
        sibling.read(false).ok()?;
        Some(sibling)
    }

    /// The calls of the thread that holds the interpreter's lock, or else of the main thread; outermost first. `None` if
    /// they changed while they were read.
    pub(super) fn stack(&self) -> Option<Vec<Call>> {
        let stack = match self.read(true) {
            Ok(Some(stack)) => Some(stack),
            // A native function has released the lock.
            Ok(None) => self.read(false).ok().flatten(),
            Err(()) => None,
        }?;
        let root = stack.first()?;
        ROOTS.contains(&root.function.as_str()).then_some(stack)
    }

    fn read(&self, only_holder: bool) -> Result<Option<Vec<Call>>, ()> {
        let mut spy = self.spy.try_borrow_mut().map_err(|_| ())?;
        if spy.pid != self.pid {
            spy.process = remoteprocess::Process::new(self.pid).map_err(|_| ())?;
            spy.pid = self.pid;
        }
        spy.config.gil_only = only_holder;
        let traces = catch_unwind(AssertUnwindSafe(|| spy.get_stack_traces()));
        let traces = traces.map_err(|_| ())?.map_err(|_| ())?;
        // Newer threads are before the main thread.
        let main = traces.into_iter().rfind(|trace| !trace.frames.is_empty());
        Ok(main.map(|trace| {
            let frames = trace.frames.into_iter().take(MOST_FRAMES);
            let mut calls: Vec<Call> = frames.map(call).collect();
            calls.reverse();
            calls
        }))
    }
}

fn config() -> Config {
    Config {
        blocking: LockingStrategy::NonBlocking,
        // Otherwise it looks for packages on the disk.
        full_filenames: true,
        collect_thread_names: false,
        ..Config::default()
    }
}

fn call(frame: py_spy::Frame) -> Call {
    Call {
        function: shortened(frame.name, LONGEST_NAME),
        file: shortened(frame.filename, LONGEST_PATH),
        line: u32::try_from(frame.line).unwrap_or(0),
    }
}

fn shortened(mut text: String, most: usize) -> String {
    text.truncate(text.floor_char_boundary(most));
    text
}

/// Whether this process may read another's memory.
fn may_read(pid: u32, address: u64) -> io::Result<()> {
    let denied = || io::Error::from_raw_os_error(libc::EPERM);
    let base = usize::try_from(address).ok().filter(|base| *base > 1);
    let mut bytes = [0; 8];
    let remote = RemoteIoVec {
        // The kernel hides the addresses of processes that may not be inspected.
        base: base.ok_or_else(denied)?,
        len: bytes.len(),
    };
    let pid = Pid::from_raw(i32::try_from(pid).map_err(io::Error::other)?);
    process_vm_readv(pid, &mut [IoSliceMut::new(&mut bytes)], &[remote])?;
    Ok(())
}
