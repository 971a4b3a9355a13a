//! Unwinds the stacks of a JVM without frame pointers.
//!
//! Compiled code uses the frame pointer for something else, so the kernel's walk skips frames. But each compiled method has
//! a fixed frame size, which is in the code map: the last word of the frame is the return address, the one before is the
//! caller's frame pointer. The interpreter, the stub that enters Java and libjvm do keep frame pointers. So each step
//! depends on the kind of code that it leaves, and must lead to known code. Libraries without frame pointers have tables
//! (`native.rs`). If a library has none, the walk continues from the first word further up that looks like a return
//! address and leads to the thread's root.

use unfuse_codemap::{CodeMap, Kind, Lookup, Resolution, Shape};

use super::interpreted::{INTERPRETED, INTERPRETER, METHOD, TaggedFrames};
use super::native::{Frame, NativeUnwinder};
use super::repair::Chain;
use super::stack::Stack;
use crate::arch::{self, BYTECODE, Exit, Registers, Saved};
use crate::interpreter::Methods;
use crate::maps::Maps;
use crate::memory::{Memory, Pages};
use crate::perf_event::Sample;

/// Longest chain.
const MAX_FRAMES: usize = 512;
/// Largest frame, bytes.
const LARGEST_FRAME: u64 = 1 << 20;
/// Maximum number of words tried as return addresses.
const MAX_CANDIDATES: usize = 64;

/// Walks the stacks of one thread.
pub(super) struct Unwinder<'a> {
    map: &'a CodeMap,
    /// The JVM's code, and frames above the sample's copy of the stack; read once a batch.
    pages: Option<Pages>,
    /// None if the JVM's memory cannot be read.
    native: Option<NativeUnwinder>,
    tagged: TaggedFrames,
    /// The range of the interpreter's code, once seen.
    interpreter: Option<(u64, u64)>,
    resolved: Resolution,
}

/// The end of a walk.
enum End {
    /// The start of the thread, or the VM's call of Java.
    Root,
    /// Anywhere else; the stack pointer there.
    Lost(u64),
}

impl<'a> Unwinder<'a> {
    pub(super) fn new(
        map: &'a CodeMap,
        memory: Option<Memory>,
        native: Option<NativeUnwinder>,
        methods: Option<Methods>,
    ) -> Self {
        Self {
            map,
            pages: memory.map(Pages::new),
            native,
            tagged: TaggedFrames::new(methods),
            interpreter: None,
            resolved: Resolution::default(),
        }
    }

    /// Called before each batch of samples.
    pub(super) fn begin(&mut self, now: u64) {
        self.tagged.begin(now);
        if let Some(pages) = &mut self.pages {
            pages.forget();
        }
    }

    /// The meaning of its tagged words.
    pub(super) fn tagged(&mut self) -> &mut TaggedFrames {
        &mut self.tagged
    }

    /// Replaces `chain`, from the kernel's walk, by the true one as far as possible.
    pub(super) fn unwind(
        &mut self,
        chain: &mut Vec<u64>,
        sample: &Sample<'_>,
        maps: &Maps,
    ) -> Chain {
        let Some(leaf) = chain.first().copied() else {
            return Chain::Broken;
        };
        let mut pages = self.pages.take();
        let mut stack = Stack::new(sample, pages.as_mut());
        let walked = self.walked(leaf, sample, &mut stack, maps);
        self.pages = pages;
        match walked {
            Some((state, callers)) => {
                *chain = callers;
                state
            }
            None if !sample
                .stack()
                .chain(chain.iter().copied())
                .any(|word| maps.in_code_cache(word)) =>
            {
                // A thread of the VM that runs no Java: only the kernel's walk is available.
                Chain::Whole
            }
            None => Chain::Broken,
        }
    }

    fn walked(
        &mut self,
        leaf: u64,
        sample: &Sample<'_>,
        stack: &mut Stack<'_>,
        maps: &Maps,
    ) -> Option<(Chain, Vec<u64>)> {
        let mut walk = Walk {
            unwinder: self,
            time: sample.time,
            bytecode_register: sample.bytecode_register,
            stack,
            maps,
        };
        let mut out = Vec::new();
        let start = Frame::from(sample.registers(leaf));
        let End::Lost(sp) = walk.follow(start, true, &mut out) else {
            return Some((Chain::Whole, out));
        };
        if let Some(rest) = walk.search(sp) {
            out.extend(rest);
            return Some((Chain::Repaired, out));
        }
        let known = out
            .iter()
            .filter(|ip| *ip & INTERPRETED != 0 || maps.in_code_cache(**ip));
        (known.count() > 1).then_some((Chain::Broken, out))
    }

    fn is_interpreter(&mut self, pc: u64, shape: &Shape, time: u64) -> bool {
        let range = (shape.code_start, shape.code_end);
        if self.interpreter.is_none() {
            let found = self
                .map
                .reader()
                .resolve(pc, time, false, &mut self.resolved);
            let named = |name| {
                self.resolved
                    .frames
                    .first()
                    .is_some_and(|f| f.method == name)
            };
            if found == Lookup::Found && named(INTERPRETER) {
                self.interpreter = Some(range);
            }
        }
        self.interpreter == Some(range)
    }
}

/// One walk.
struct Walk<'w, 'a, 's> {
    unwinder: &'w mut Unwinder<'a>,
    time: u64,
    bytecode_register: u64,
    stack: &'w mut Stack<'s>,
    maps: &'w Maps,
}

impl Walk<'_, '_, '_> {
    /// Adds the frame and its callers to `out`.
    fn follow(&mut self, start: Frame, leaf: bool, out: &mut Vec<u64>) -> End {
        let (mut frame, mut innermost) = (start, leaf);
        // Whether the walk has left Java for its caller in the VM.
        let mut below_java = false;
        for _ in 0..MAX_FRAMES {
            let Frame { pc, sp, fp, .. } = frame;
            let next = if self.maps.in_code_cache(pc) {
                let Some(shape) = self.shape(pc) else {
                    out.push(pc);
                    return End::Lost(sp);
                };
                below_java = true;
                if shape.frame_words > 0 {
                    out.push(pc);
                    self.leave_sized(frame, &shape, innermost)
                } else if self.unwinder.is_interpreter(pc, &shape, self.time) {
                    self.leave_interpreted(frame, innermost, out)
                } else {
                    out.push(pc);
                    self.leave_stub(frame, &shape, innermost)
                }
            } else {
                out.push(pc);
                self.by_tables(frame, innermost).or_else(|| {
                    let linked = self.linked(frame)?;
                    if self.maps.in_code_cache(linked.pc) {
                        out.extend(self.left_out(sp, fp));
                    }
                    Some(linked)
                })
            };
            match next {
                // A leaf may have no frame.
                Some(next) if next.sp > sp || arch::HAS_LINK && innermost && next.sp == sp => {
                    frame = next;
                }
                _ if below_java && !self.maps.in_code_cache(pc) => return End::Root,
                _ => return End::Lost(sp),
            }
            innermost = false;
        }
        End::Root
    }

    fn shape(&self, pc: u64) -> Option<Shape> {
        self.unwinder.map.reader().shape(pc, self.time)
    }

    /// Whether an address is in known generated code.
    fn is_generated(&self, pc: u64) -> bool {
        self.maps.in_code_cache(pc) && self.shape(pc).is_some()
    }

    /// Whether an address is in a library or in known generated code.
    fn is_code(&self, pc: u64) -> bool {
        if self.maps.in_code_cache(pc) {
            self.is_generated(pc)
        } else {
            self.maps.find(pc).is_some()
        }
    }

    /// The caller of a library's function by the library's tables, if that leads to code.
    fn by_tables(&mut self, frame: Frame, innermost: bool) -> Option<Frame> {
        let native = self.unwinder.native.as_mut()?;
        let stack = &mut *self.stack;
        let caller = native.caller(frame, innermost, self.maps, |address| stack.word(address));
        caller.filter(|caller| self.is_code(caller.pc))
    }

    fn leave_sized(&mut self, frame: Frame, shape: &Shape, innermost: bool) -> Option<Frame> {
        let whole = frame.sp + 8 * u64::from(shape.frame_words);
        let around = frame.pc.wrapping_sub(arch::BEFORE as u64);
        let code = || self.stack.code(around);
        let exits = arch::sized_exits(frame.into(), whole, innermost, code, is_in(shape));
        exits.into_iter().flatten().find_map(|exit| self.exit(exit))
    }

    /// The caller's frame, if a way out of a frame leads to known generated code.
    fn exit(&mut self, exit: Exit) -> Option<Frame> {
        let mut value = |saved| match saved {
            Saved::At(address) => self.stack.word(address),
            Saved::Known(value) => Some(value),
        };
        let pc = arch::code_address(value(exit.pc)?);
        let fp = value(exit.fp)?;
        self.is_generated(pc).then_some(Frame {
            pc,
            sp: exit.sp,
            fp,
            link: 0,
        })
    }

    fn leave_interpreted(
        &mut self,
        frame: Frame,
        innermost: bool,
        out: &mut Vec<u64>,
    ) -> Option<Frame> {
        let Frame { pc, sp, fp, .. } = frame;
        let next = self.linked(frame);
        let word = next.and_then(|_| {
            let method = self.stack.word(fp.checked_sub(METHOD)?)?;
            let saved = self.stack.word(fp.checked_sub(BYTECODE)?)?;
            let tagged = &mut self.unwinder.tagged;
            // The innermost frame keeps the pointer in a register, so its slot is out of date.
            if innermost {
                tagged.leaf(method, self.bytecode_register)
            } else {
                tagged.caller(method, saved)
            }
        });
        out.push(word.unwrap_or(pc));
        let next = next?;
        // A compiled caller's frame ends below the arguments that it pushed for this one.
        let sender = self.stack.word(fp.checked_sub(8)?)?;
        let fits = sender > sp && sender >= next.sp && sender - next.sp < LARGEST_FRAME;
        Some(Frame {
            sp: if fits { sender } else { next.sp },
            ..next
        })
    }

    /// Stubs have a frame pointer, except in their first and last instructions and in the smallest ones.
    fn leave_stub(&mut self, frame: Frame, shape: &Shape, innermost: bool) -> Option<Frame> {
        let registers = Registers::from(frame);
        if innermost && !arch::stub_has_frame(registers, || self.stack.return_address(frame.fp)) {
            let exits = arch::stub_exits(registers, is_in(shape));
            if let Some(caller) = exits.into_iter().flatten().find_map(|exit| self.exit(exit)) {
                return Some(caller);
            }
        }
        self.linked(frame)
    }

    /// The caller by frame pointer, if that leads to code.
    fn linked(&mut self, frame: Frame) -> Option<Frame> {
        let Frame { sp, fp, .. } = frame;
        if fp < sp || fp - sp >= LARGEST_FRAME || !fp.is_multiple_of(8) {
            return None;
        }
        let (saved, pc) = (self.stack.word(fp)?, self.stack.word(fp + 8)?);
        let pc = arch::code_address(pc);
        self.is_code(pc).then_some(Frame {
            pc,
            sp: fp + 16,
            fp: saved,
            link: 0,
        })
    }

    /// A native method whose code, without a frame pointer of its own, was called between two stack pointers: `fp`
    /// belongs to its wrapper's frame. Only if calls push return addresses.
    fn left_out(&mut self, sp: u64, fp: u64) -> Option<u64> {
        if arch::HAS_LINK {
            return None;
        }
        let slots = (fp.checked_sub(sp)? / 8).min(MAX_FRAMES as u64);
        (0..slots).find_map(|slot| {
            let address = sp + 8 * slot;
            let pc = self
                .stack
                .word(address)
                .filter(|pc| self.maps.in_code_cache(*pc))?;
            let shape = self.shape(pc)?;
            let ends = address + 8 + 8 * u64::from(shape.frame_words);
            (shape.kind == Kind::Java && shape.frame_words > 0 && ends == fp + 16).then_some(pc)
        })
    }

    /// The innermost return address from `sp` on that leads to the root.
    fn search(&mut self, sp: u64) -> Option<Vec<u64>> {
        let end = self.stack.copy_end();
        let mut tried = 0;
        let mut slot = sp;
        while slot + 8 <= end && tried < MAX_CANDIDATES {
            let word = arch::code_address(self.stack.word(slot)?);
            if self.is_generated(word) {
                tried += 1;
                let start = Frame {
                    pc: word,
                    sp: slot + 8,
                    fp: self.stack.word(slot.wrapping_sub(8)).unwrap_or(0),
                    link: 0,
                };
                let mut callers = Vec::new();
                if matches!(self.follow(start, false, &mut callers), End::Root) {
                    return Some(callers);
                }
            }
            slot += 8;
        }
        None
    }
}

/// Whether an address is in the code of a shape.
fn is_in(shape: &Shape) -> impl Fn(u64) -> bool + use<> {
    let code = shape.code_start..shape.code_end;
    move |address| code.contains(&address)
}
