//! Where CPython's structures have their fields. Up to 3.12 these are tables, made from CPython's headers; since 3.13 the
//! interpreter itself has such a table (`_Py_DebugOffsets`).

use super::line_table::Encoding;

/// A version of CPython, the 3 left out: 11 is CPython 3.11.
pub(super) type Minor = u8;

/// Offsets in the structures of one version, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    /// `_PyRuntime.interpreters.head`.
    pub(super) interpreters: u64,
    pub(super) holder: Holder,
    /// `PyInterpreterState.threads.head`.
    pub(super) threads: u64,
    pub(super) thread: Thread,
    pub(super) frame: Frame,
    pub(super) code: Code,
    /// Size of the header of an ASCII text, and of one with other characters.
    pub(super) text: [u64; 2],
}

/// Where the thread is noted that holds the interpreter's lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holder {
    /// In `_PyRuntime`, at this offset; null if no thread holds it.
    Runtime(u64),
    /// In the lock, to which the interpreter has a pointer at this offset.
    Lock(u64),
    /// In the interpreter, at these offsets: the last holder, and whether it holds the lock still.
    Interpreter { last: u64, locked: u64 },
}

/// The last holder in a lock (`_gil_runtime_state`), and whether it holds the lock still.
pub(super) const LOCK: (u64, u64) = (8, 16);

/// `PyThreadState`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Thread {
    pub(super) next: u64,
    pub(super) interpreter: u64,
    /// A pointer to the innermost frame, or to the structure that has it.
    pub(super) frame: u64,
    /// `_PyCFrame.current_frame`: where that structure has it.
    pub(super) in_c_frame: Option<u64>,
}

/// `PyFrameObject`, since 3.11 `_PyInterpreterFrame`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) previous: u64,
    pub(super) code: u64,
    pub(super) instruction: Instruction,
    /// One byte; [`FOREIGN`] and more is a frame that is no function's.
    pub(super) owner: Option<u64>,
}

/// `FRAME_OWNED_BY_CSTACK`.
pub(super) const FOREIGN: u8 = 3;

/// Where a frame has its instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Instruction {
    /// An int at this offset: so many units of so many bytes after the begin of the code.
    Index(u64, i64),
    /// A pointer at this offset.
    Pointer(u64),
}

/// `PyCodeObject`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Code {
    pub(super) file: u64,
    pub(super) name: u64,
    pub(super) first_line: u64,
    pub(super) lines: u64,
    pub(super) encoding: Encoding,
    /// Where the code itself begins, if frames have pointers into it.
    pub(super) begin: u64,
}

impl Frame {
    /// Bytes of a frame that are needed.
    pub(super) fn size(&self) -> usize {
        let instruction = match self.instruction {
            Instruction::Index(at, _) | Instruction::Pointer(at) => at,
        };
        let last = [
            self.previous,
            self.code,
            instruction,
            self.owner.unwrap_or(0),
        ];
        last.into_iter().max().unwrap_or(0) as usize + 8
    }
}

impl Code {
    /// Bytes of a code object that are needed.
    pub(super) fn size(&self) -> usize {
        let last = [self.file, self.name, self.first_line, self.lines];
        last.into_iter().max().unwrap_or(0) as usize + 8
    }
}

/// `_PyRuntime.gilstate.tstate_current` of 3.9 and 3.10, and of 3.11: after two mutexes of the C library.
#[cfg(target_arch = "x86_64")]
const CURRENT: [u64; 2] = [568, 576];
#[cfg(not(target_arch = "x86_64"))]
const CURRENT: [u64; 2] = [584, 592];

const LAYOUT_3_10: Layout = Layout {
    interpreters: 32,
    holder: Holder::Runtime(CURRENT[0]),
    threads: 8,
    thread: Thread {
        next: 8,
        interpreter: 16,
        frame: 24,
        in_c_frame: None,
    },
    frame: Frame {
        previous: 24,
        code: 32,
        instruction: Instruction::Index(96, 2),
        owner: None,
    },
    code: Code {
        file: 104,
        name: 112,
        first_line: 40,
        lines: 120,
        encoding: Encoding::Ranges,
        begin: 0,
    },
    text: [48, 72],
};

const LAYOUT_3_9: Layout = Layout {
    frame: Frame {
        instruction: Instruction::Index(104, 1),
        ..LAYOUT_3_10.frame
    },
    code: Code {
        encoding: Encoding::Differences,
        ..LAYOUT_3_10.code
    },
    ..LAYOUT_3_10
};

const LAYOUT_3_11: Layout = Layout {
    interpreters: 40,
    holder: Holder::Runtime(CURRENT[1]),
    threads: 16,
    thread: Thread {
        next: 8,
        interpreter: 16,
        frame: 56,
        in_c_frame: Some(8),
    },
    frame: Frame {
        previous: 48,
        code: 32,
        instruction: Instruction::Pointer(56),
        owner: Some(69),
    },
    code: Code {
        file: 112,
        name: 128,
        first_line: 72,
        lines: 136,
        encoding: Encoding::Locations,
        begin: 184,
    },
    text: [48, 72],
};

const LAYOUT_3_12: Layout = Layout {
    interpreters: 40,
    holder: Holder::Lock(384),
    threads: 72,
    thread: Thread {
        in_c_frame: Some(0),
        ..LAYOUT_3_11.thread
    },
    frame: Frame {
        previous: 8,
        code: 0,
        instruction: Instruction::Pointer(56),
        owner: Some(70),
    },
    code: Code {
        first_line: 68,
        begin: 192,
        ..LAYOUT_3_11.code
    },
    text: [40, 56],
};

/// The layout of a version; `_PyRuntime` begins with these bytes. `None` for an unknown version, and for a build without
/// the interpreter's lock.
pub(super) fn layout(minor: Minor, runtime: &[u8; TABLE]) -> Option<Layout> {
    match minor {
        9 => Some(LAYOUT_3_9),
        10 => Some(LAYOUT_3_10),
        11 => Some(LAYOUT_3_11),
        12 => Some(LAYOUT_3_12),
        13 => from_table(runtime),
        _ => None,
    }
}

/// Size of the part of `_Py_DebugOffsets` that is read, bytes.
pub(super) const TABLE: usize = 71 * 8;

/// The layout that the interpreter's own table describes.
fn from_table(table: &[u8; TABLE]) -> Option<Layout> {
    /// Larger offsets are an error.
    const LARGEST: u64 = 1 << 20;
    /// The same within one object, so that little is read of each.
    const LARGEST_IN_OBJECT: u64 = 1 << 10;
    if !table.starts_with(b"xdebugpy") {
        return None;
    }
    let word = |at: usize| {
        table
            .as_chunks()
            .0
            .get(at)
            .map(|word| u64::from_ne_bytes(*word))
    };
    let is_free_threaded = word(2)? != 0;
    if is_free_threaded {
        return None;
    }
    let offset = |at| word(at).filter(|offset| *offset < LARGEST);
    let inner = |at| word(at).filter(|offset| *offset < LARGEST_IN_OBJECT);
    let ascii = inner(70)?;
    Some(Layout {
        interpreters: offset(5)?,
        holder: Holder::Interpreter {
            last: offset(18)?,
            locked: offset(17)?,
        },
        threads: offset(9)?,
        thread: Thread {
            next: inner(21)?,
            interpreter: inner(22)?,
            frame: inner(23)?,
            in_c_frame: None,
        },
        frame: Frame {
            previous: inner(29)?,
            code: inner(30)?,
            instruction: Instruction::Pointer(inner(31)?),
            owner: Some(inner(33)?),
        },
        code: Code {
            file: inner(35)?,
            name: inner(37)?,
            first_line: inner(39)?,
            lines: inner(38)?,
            encoding: Encoding::Locations,
            begin: inner(43)?,
        },
        // A length and a pointer more.
        text: [ascii, ascii + 16],
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A table as CPython 3.13 has it, with these offsets at their places.
    fn table(offsets: &[(usize, u64)]) -> [u8; TABLE] {
        let mut table = [0; TABLE];
        table[..8].copy_from_slice(b"xdebugpy");
        for (at, offset) in offsets {
            table[8 * at..8 * at + 8].copy_from_slice(&offset.to_ne_bytes());
        }
        table
    }

    #[test]
    fn the_interpreters_own_table_is_used_since_3_13() {
        let known = table(&[(5, 632), (9, 7_344), (23, 72), (31, 56), (33, 70), (70, 40)]);
        let layout = layout(13, &known).unwrap();
        assert_eq!((layout.interpreters, layout.threads), (632, 7_344));
        assert_eq!(layout.frame.size(), 78);
        assert_eq!(layout.text, [40, 56]);
        let free_threaded = table(&[(2, 1)]);
        let huge = table(&[(31, 1 << 30)]);
        for wrong in [free_threaded, huge, [0; TABLE]] {
            assert_eq!(super::layout(13, &wrong), None);
        }
        for unknown in [0, 8, 14, u8::MAX] {
            assert_eq!(super::layout(unknown, &known), None);
        }
    }

    proptest! {
        #[test]
        fn of_any_table_little_is_read(words in prop::collection::vec(any::<u64>(), 70)) {
            let offsets: Vec<(usize, u64)> = words
                .iter()
                .enumerate()
                .map(|(at, word)| (at + 1, word >> (word % 64)))
                .filter(|(at, _)| *at != 2)
                .collect();
            if let Some(layout) = layout(13, &table(&offsets)) {
                prop_assert!(layout.frame.size() + layout.code.size() < 4_096);
            }
        }
    }
}
