//! `/proc/PID/stat`.

use std::fs::File;
use std::io::Read;

/// Longest line that is read; the kernel's have at most a few hundred bytes.
const MOST_BYTES: u64 = 2048;
/// Flag of threads of the kernel.
const KERNEL: u64 = 0x0020_0000;

/// What a scan needs of a process.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct ProcessStat {
    pub(super) command: String,
    pub(super) parent: u32,
    pub(super) is_kernel: bool,
    /// Page faults so far.
    pub(super) faults: u64,
    /// CPU time of its threads so far.
    pub(super) ticks: u64,
    /// CPU time of children that it has waited for, with theirs.
    pub(super) waited_ticks: u64,
    /// When it began, ticks since boot: with the process id, it identifies the process.
    pub(super) started: u64,
    /// Resident memory.
    pub(super) pages: i64,
}

impl ProcessStat {
    /// Reads that of a process; `None` if there is none.
    pub(super) fn read(pid: u32, buffer: &mut Vec<u8>) -> Option<Self> {
        buffer.clear();
        let file = File::open(format!("/proc/{pid}/stat")).ok()?;
        file.take(MOST_BYTES).read_to_end(buffer).ok()?;
        Self::parse(buffer)
    }

    /// Parses the line. A command may have any bytes in it, also brackets.
    pub(super) fn parse(line: &[u8]) -> Option<Self> {
        let begin = line.iter().position(|byte| *byte == b'(')? + 1;
        let end = line.iter().rposition(|byte| *byte == b')')?;
        let command = String::from_utf8_lossy(line.get(begin..end)?).into_owned();
        let rest = std::str::from_utf8(line.get(end + 1..)?).ok()?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        // Fields are numbered from the state, which is the third of the line.
        let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
        // Some kernels print a negative time of children.
        let waited = |index: usize| {
            let ticks = fields.get(index)?.parse::<i64>().ok()?;
            Some(ticks.max(0).unsigned_abs())
        };
        Some(Self {
            command,
            parent: fields.get(1)?.parse().ok()?,
            is_kernel: number(6)? & KERNEL != 0,
            faults: number(7)?.saturating_add(number(9)?),
            ticks: number(11)?.saturating_add(number(12)?),
            waited_ticks: waited(13)?.saturating_add(waited(14)?),
            started: number(19)?,
            pages: fields.get(21)?.parse().ok()?,
        })
    }

    /// Whether a later state of the same process shows no activity, so its other files have not changed either.
    pub(super) fn is_as_active_as(&self, later: &Self) -> bool {
        let activity = |of: &Self| (of.ticks, of.waited_ticks, of.faults, of.pages);
        activity(self) == activity(later)
    }
}
