//! The interpreter of a Python process, read without stopping it.

use std::io;
use std::rc::Rc;

use super::code::{Codes, Function};
use super::runtime::{RawFrame, Runtime};
use super::snapshot::Snapshot;
use super::state::Born;
use crate::maps::Maps;
use crate::memory::Memory;

/// Most frames of a stack; the outermost ones of a deeper recursion are left out.
const MOST_FRAMES: usize = 128;
/// Outermost functions of Python's threads. A stack that begins otherwise was read while it changed.
const ROOTS: [&str; 4] = [
    "_run_module_as_main",
    "<module>",
    "_bootstrap",
    "Thread._bootstrap",
];
/// How often a stack is read that changes meanwhile.
const TRIES: usize = 2;

/// A function call of a stack.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Call {
    pub(super) function: Rc<Function>,
    /// 0 if unknown.
    pub(super) line: u32,
}

/// An interpreter that can be read.
pub(super) struct Interpreter {
    runtime: Runtime,
    memory: Snapshot,
    codes: Codes,
    /// The main thread, once it was needed.
    main: Option<u64>,
    layout: [u64; 3],
    frames: Vec<RawFrame>,
}

impl Interpreter {
    /// Opens the interpreter of a process.
    ///
    /// # Errors
    /// EPERM if this process may not read the other's memory, ENOEXEC if no known interpreter runs in it.
    pub(super) fn open(pid: u32, born: Born) -> io::Result<Self> {
        let memory = open_memory(pid, born.layout[0])?;
        let unknown = || io::Error::from_raw_os_error(libc::ENOEXEC);
        let runtime = Runtime::find(&Maps::open(pid)?, &memory).ok_or_else(unknown)?;
        let pid = i32::try_from(pid).map_err(io::Error::other)?;
        let mut opened = Self::new(runtime, Snapshot::new(pid, memory), born);
        (0..TRIES).find_map(|_| opened.walk()).ok_or_else(unknown)?;
        Ok(opened)
    }

    fn new(runtime: Runtime, memory: Snapshot, born: Born) -> Self {
        Self {
            runtime,
            memory,
            codes: Codes::default(),
            main: None,
            layout: born.layout,
            frames: Vec::new(),
        }
    }

    /// The interpreter of a process that was forked from the same one: it is at the same addresses. `None` if it was
    /// not.
    pub(super) fn of_sibling(&self, pid: u32, born: Born) -> Option<Self> {
        let is_known = born.layout.iter().all(|address| *address > 1);
        if !is_known || born.layout != self.layout {
            return None;
        }
        let memory = Memory::open(pid).ok()?;
        let memory = Snapshot::new(i32::try_from(pid).ok()?, memory);
        let mut sibling = Self {
            codes: self.codes.clone(),
            ..Self::new(self.runtime, memory, born)
        };
        sibling.main_thread()?;
        Some(sibling)
    }

    /// The calls of the thread that holds the interpreter's lock, or else of the main thread; outermost first. `None` if
    /// they changed while they were read.
    pub(super) fn stack(&mut self) -> Option<Vec<Call>> {
        (0..TRIES).find_map(|_| self.read())
    }

    fn read(&mut self) -> Option<Vec<Call>> {
        let root = self.walk()?;
        if !ROOTS.contains(&root.name.as_str()) {
            return None;
        }
        let innermost = self.frames.iter().take(MOST_FRAMES).rev();
        let calls = innermost.map(|frame| {
            let layout = &self.runtime.layout;
            let kind = self.runtime.code_type;
            let code = self.codes.get(frame.code, kind, layout, &mut self.memory)?;
            Some(Call {
                line: code.line(frame.offset(layout))?,
                function: Rc::clone(&code.function),
            })
        });
        calls.collect()
    }

    /// Reads the frames of the thread that counts; returns the outermost function.
    fn walk(&mut self) -> Option<Rc<Function>> {
        self.memory.renew();
        self.frames.clear();
        if let Some(holder) = self.runtime.holder(&mut self.memory) {
            self.runtime
                .frames(holder, &mut self.memory, &mut self.frames)?;
        }
        // A native function has released the lock.
        if self.frames.is_empty() {
            let main = self.main_thread()?;
            self.runtime
                .frames(main, &mut self.memory, &mut self.frames)?;
        }
        let Runtime {
            layout, code_type, ..
        } = &self.runtime;
        let root = self.frames.last()?.code;
        let root = self.codes.get(root, *code_type, layout, &mut self.memory)?;
        Some(Rc::clone(&root.function))
    }

    fn main_thread(&mut self) -> Option<u64> {
        let known = self.main;
        let known = known.filter(|thread| self.runtime.is_main(*thread, &mut self.memory));
        self.main = known.or_else(|| self.runtime.main(&mut self.memory));
        self.main
    }
}

/// The memory of a process.
///
/// # Errors
/// EPERM if this process may not read it.
fn open_memory(pid: u32, address: u64) -> io::Result<Memory> {
    let denied = || io::Error::from_raw_os_error(libc::EPERM);
    // The kernel hides the addresses of processes that may not be inspected.
    Some(address).filter(|base| *base > 1).ok_or_else(denied)?;
    Memory::open(pid).map_err(|e| match e.raw_os_error() {
        Some(libc::EACCES) => denied(),
        _ => e,
    })
}

#[cfg(test)]
mod tests;
