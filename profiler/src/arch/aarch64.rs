//! aarch64: a call leaves the return address in x30 (lr), and frames are linked by x29.
//!
//! A frame record is two words: the caller's x29, and the return address. HotSpot puts it at the upper end of a frame of
//! generated code, C compilers at the lower end of theirs. So only the former gives the caller's stack pointer.

use gimli::{AArch64, Register, Vendor};

use super::{Exit, Exits, Registers, Return, Role, Saved, mask};

/// Registers in samples: x12, x22, x29, x30 and sp, by `PERF_REG_ARM64_X12` and so on.
pub(crate) const SAMPLED: [(u32, Role); 5] = [
    (12, Role::Method),
    (22, Role::Bytecode),
    (29, Role::FramePointer),
    (30, Role::Link),
    (31, Role::StackPointer),
];
/// Their mask.
pub(crate) const SAMPLED_MASK: u64 = mask(&SAMPLED);

/// Number of registers at the start of the top of a stack (`timer::walk::top`): sp, x29 and x30.
pub(crate) const TOP_REGISTERS: usize = 3;

/// Numbers of registers in call frame information.
pub(crate) const DWARF_FRAME_POINTER: Register = AArch64::X29;
pub(crate) const DWARF_STACK_POINTER: Register = AArch64::SP;
pub(crate) const DWARF_RETURN_ADDRESS: Register = AArch64::X30;
/// Whose extensions of call frame information there are: functions that sign their return addresses say so.
pub(crate) const DWARF_VENDOR: Vendor = Vendor::AArch64;

/// Whether a leaf's return address may be in a register.
pub(crate) const HAS_LINK: bool = true;
/// Whether the frame pointers of libjvm are at the upper end of their frames, so that they give the caller's stack
/// pointer.
pub(crate) const FRAMES_END_AT_LINKS: bool = false;

/// Slot of an interpreted frame: the saved bytecode pointer, bytes below the frame pointer (JDK 17 to 25).
pub(crate) const BYTECODE: u64 = 9 * 8;

/// Bytes of code that are examined before and after a leaf's address: a method has up to ten instructions before the one
/// that saves the return address, and up to six from the one that restores it to its end.
pub(crate) const BEFORE: usize = 32;
pub(crate) const AFTER: usize = 48;

/// Bits of an address in a program. Above them a return address may have its signature.
const ADDRESS_BITS: u32 = 48;

/// The address in a word that is a return address, without its signature (PAC).
#[inline(always)]
pub(crate) const fn code_address(word: u64) -> u64 {
    word & ((1 << ADDRESS_BITS) - 1)
}

/// The registers of a signal handler's context.
#[cfg(target_arch = "aarch64")]
pub(crate) fn interrupted(context: &libc::ucontext_t) -> Registers {
    let machine = &context.uc_mcontext;
    Registers {
        pc: machine.pc,
        sp: machine.sp,
        fp: machine.regs[29],
        link: machine.regs[30],
    }
}

/// The place of a leaf's return address, if the frame is not as the kernel assumes, whose walk has found `walked` as the
/// caller. `code` reads the code around the leaf; `is_own` says whether an address is in the leaf's own code.
pub(crate) fn leaf_return(
    registers: Registers,
    walked: Option<u64>,
    code: impl FnOnce() -> [u8; BEFORE + AFTER],
    _word: impl Fn(u64) -> Option<u64>,
    in_code: impl Fn(u64) -> bool,
    is_own: impl FnOnce(u64) -> bool,
) -> Option<Return> {
    let link = code_address(registers.link);
    if !in_code(link) {
        return None;
    }
    // After a call, the register has an address of the leaf's own code. So it has also before a frame exists, if the
    // method calls itself.
    let is_missing = match is_own(link) {
        true => frame_state(&code()).is_some(),
        // The frame has been made, and nothing been called yet.
        false => walked != Some(link),
    };
    is_missing.then_some(Return::Link(link))
}

/// Ways to leave compiled code whose frame ends at `whole`, likeliest first.
pub(crate) fn sized_exits(
    registers: Registers,
    whole: u64,
    innermost: bool,
    code: impl FnOnce() -> Option<[u8; BEFORE + AFTER]>,
    is_own: impl FnOnce(u64) -> bool,
) -> Exits {
    let link = code_address(registers.link);
    let by_link = |sp: u64| Exit {
        sp,
        pc: Saved::Known(link),
        fp: Saved::Known(registers.fp),
    };
    let state = innermost.then(code).flatten();
    let at_edge = match state.and_then(|code| frame_state(&code)) {
        Some(FrameState::Missing) => Some(by_link(registers.sp)),
        Some(FrameState::Reserved(bytes)) => Some(by_link(registers.sp + bytes)),
        Some(FrameState::Saved) | None => None,
    };
    let sized = Exit {
        sp: whole,
        pc: Saved::At(whole - 8),
        fp: Saved::At(whole - 16),
    };
    let otherwise = (innermost && !is_own(link)).then(|| by_link(registers.sp));
    [at_edge, Some(sized), otherwise]
}

/// Whether a leaf in a stub has a frame of its own, before it calls anything: the return address is still in the link
/// register.
pub(crate) fn stub_has_frame(
    registers: Registers,
    return_address: impl FnOnce() -> Option<u64>,
) -> bool {
    return_address() == Some(code_address(registers.link))
}

/// Ways to leave a stub without a frame of its own: in its first and last instructions, and in the smallest ones.
pub(crate) fn stub_exits(registers: Registers, is_own: impl FnOnce(u64) -> bool) -> Exits {
    let link = code_address(registers.link);
    let exit = Exit {
        sp: registers.sp,
        pc: Saved::Known(link),
        fp: Saved::Known(registers.fp),
    };
    [(!is_own(link)).then_some(exit), None, None]
}

/// A frame that is not complete, or not any more. The return address is in the link register.
#[derive(Debug, PartialEq, Eq)]
enum FrameState {
    /// There is none.
    Missing,
    /// The stack pointer is this many bytes below the caller's.
    Reserved(u64),
    /// The frame record is there, and x29 does not point to it yet.
    Saved,
}

/// What the instructions around an address say about its frame; `None` if it is complete, or they say nothing.
///
/// A method begins: sub sp, sp, #n; stp x29, x30, [sp, #n-16]; add x29, sp, #n-16. Large frames begin:
/// stp x29, x30, [sp, #-16]!; mov x29, sp; sub sp, sp, …. The ends are ldp x29, x30, [sp, #n-16]; add sp, sp, #n, and
/// ldp x29, x30, [sp], #16. Between an end and the return there is a poll for a safepoint.
fn frame_state(code: &[u8; BEFORE + AFTER]) -> Option<FrameState> {
    const HERE: usize = BEFORE / 4;
    let code: [Instruction; (BEFORE + AFTER) / 4] = std::array::from_fn(|index| {
        let at = 4 * index;
        Instruction(u32::from_le_bytes([
            code[at],
            code[at + 1],
            code[at + 2],
            code[at + 3],
        ]))
    });
    let (before, after) = code.split_at(HERE);
    let mut straight_on = after.iter().take_while(|code| !code.leaves());
    if let Some(save) = straight_on.position(|code| code.saves_record()) {
        let reserved = code[HERE + save - 1].reserves();
        return Some(match (save, reserved) {
            (0, Some(bytes)) if !after[0].moves_pointer() => FrameState::Reserved(bytes),
            _ => FrameState::Missing,
        });
    }
    if before[HERE - 1].saves_record() && after[0].links() {
        return Some(FrameState::Saved);
    }
    let mut straight_back = before.iter().rev().take_while(|code| !code.leaves());
    let restore = straight_back.position(|code| code.restores_record())?;
    Some(match (restore, after[0].releases()) {
        (0, Some(bytes)) if !before[HERE - 1].moves_pointer() => FrameState::Reserved(bytes),
        _ => FrameState::Missing,
    })
}

/// One instruction.
#[derive(Clone, Copy)]
struct Instruction(u32);

impl Instruction {
    /// The immediate of a pair's load or store.
    const PAIR_OFFSET: u32 = 0x7f << 15;
    /// The immediate of an addition, shifted by twelve bits or not.
    const IMMEDIATE: u32 = 0x1fff << 10;
    const STP_PRE_INDEXED: u32 = 0xa980_7bfd;
    const STP: u32 = 0xa900_7bfd;
    const LDP_POST_INDEXED: u32 = 0xa8c0_7bfd;
    const LDP: u32 = 0xa940_7bfd;

    /// Whether it is stp x29, x30, [sp, …].
    fn saves_record(self) -> bool {
        matches!(
            self.0 & !Self::PAIR_OFFSET,
            Self::STP | Self::STP_PRE_INDEXED
        )
    }

    /// Whether it is ldp x29, x30, [sp, …].
    fn restores_record(self) -> bool {
        matches!(
            self.0 & !Self::PAIR_OFFSET,
            Self::LDP | Self::LDP_POST_INDEXED
        )
    }

    /// Whether it loads or stores a frame record and moves the stack pointer.
    fn moves_pointer(self) -> bool {
        matches!(
            self.0 & !Self::PAIR_OFFSET,
            Self::STP_PRE_INDEXED | Self::LDP_POST_INDEXED
        )
    }

    /// Whether it is add x29, sp, #n, or mov x29, sp.
    fn links(self) -> bool {
        self.0 & !Self::IMMEDIATE == 0x9100_03fd
    }

    /// The bytes of sub sp, sp, #n.
    fn reserves(self) -> Option<u64> {
        self.immediate(0xd100_03ff)
    }

    /// The bytes of add sp, sp, #n.
    fn releases(self) -> Option<u64> {
        self.immediate(0x9100_03ff)
    }

    fn immediate(self, instruction: u32) -> Option<u64> {
        let shift = if self.0 & 1 << 22 == 0 { 0 } else { 12 };
        let value = u64::from(self.0 >> 10 & 0xfff) << shift;
        (self.0 & !Self::IMMEDIATE == instruction).then_some(value)
    }

    /// Whether it goes elsewhere in any case: b, bl, br, blr, ret and the like.
    fn leaves(self) -> bool {
        self.0 & 0x7c00_0000 == 0x1400_0000 || self.0 & 0xfe00_0000 == 0xd600_0000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOP: u32 = 0xd503_201f;
    const OTHER: u32 = 0x8b01_0000; // add x0, x0, x1
    const BANG: [u32; 2] = [0xd140_53e9, 0xf900_013f]; // sub x9, sp, #0x14, lsl #12; str xzr, [x9]
    const BL: u32 = 0x9400_0010;
    const RET: u32 = 0xd65f_03c0;
    /// ldr x8, [x28, #1104]; cmp sp, x8; b.hi …
    const POLL: [u32; 3] = [0xf942_2b88, 0xeb28_63ff, 0x5400_0168];
    const WHOLE: Option<FrameState> = None;
    const MISSING: Option<FrameState> = Some(FrameState::Missing);

    /// A method as C1 and C2 compile it, with the state of its frame before each instruction.
    fn small() -> Vec<(u32, Option<FrameState>)> {
        let reserved = || Some(FrameState::Reserved(0x40));
        vec![
            (NOP, MISSING),
            (BANG[0], MISSING),
            (BANG[1], MISSING),
            (0xd101_03ff, MISSING),                 // sub sp, sp, #0x40
            (0xa903_7bfd, reserved()),              // stp x29, x30, [sp, #0x30]
            (0x9100_c3fd, Some(FrameState::Saved)), // add x29, sp, #0x30
            (OTHER, WHOLE),
            (OTHER, WHOLE),
            (BL, WHOLE),
            (OTHER, WHOLE),
            (0xa943_7bfd, WHOLE),      // ldp x29, x30, [sp, #0x30]
            (0x9101_03ff, reserved()), // add sp, sp, #0x40
            (POLL[0], MISSING),
            (POLL[1], MISSING),
            (POLL[2], MISSING),
            (RET, MISSING),
        ]
    }

    /// The same with a frame of more than 512 bytes.
    fn large() -> Vec<(u32, Option<FrameState>)> {
        vec![
            (NOP, MISSING),
            (BANG[0], MISSING),
            (BANG[1], MISSING),
            (0xa9bf_7bfd, MISSING), // stp x29, x30, [sp, #-16]!
            (0x9100_03fd, Some(FrameState::Saved)), // mov x29, sp
            (0xd10c_03ff, WHOLE),   // sub sp, sp, #0x300
            (OTHER, WHOLE),
            (BL, WHOLE),
            (0x910c_03ff, WHOLE), // add sp, sp, #0x300
            (0xa8c1_7bfd, WHOLE), // ldp x29, x30, [sp], #16
            (POLL[0], MISSING),
            (POLL[1], MISSING),
            (POLL[2], MISSING),
            (RET, MISSING),
        ]
    }

    /// The code around the instruction at an index, with methods before and after.
    fn around(method: &[u32], index: usize) -> [u8; BEFORE + AFTER] {
        let neighbour = [OTHER, OTHER, OTHER, OTHER, OTHER, OTHER, OTHER, RET];
        let code = [&neighbour[..], method, &[RET; 16]].concat();
        let bytes: Vec<u8> = code.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes[4 * index..][..BEFORE + AFTER].try_into().unwrap()
    }

    #[test]
    fn each_instruction_has_its_frame() {
        for method in [small(), large()] {
            let code: Vec<u32> = method.iter().map(|(code, _)| *code).collect();
            for (index, (instruction, state)) in method.iter().enumerate() {
                let found = frame_state(&around(&code, index));
                assert_eq!(found, *state, "{index}: {instruction:#x}");
            }
        }
        assert_eq!(frame_state(&[0; BEFORE + AFTER]), WHOLE);
    }

    /// What a leaf's caller is if the link register has `link`: the leaf's own code is 0x100 to 0x200, its callers' 0x200
    /// to 0x300.
    fn caller(link: u64, walked: u64, index: usize) -> Option<u64> {
        let code: Vec<u32> = small().iter().map(|(code, _)| *code).collect();
        let registers = Registers {
            link,
            ..Registers::default()
        };
        let found = leaf_return(
            registers,
            Some(walked),
            || around(&code, index),
            |_| None,
            |address| (0x100..0x300).contains(&address),
            |address| (0x100..0x200).contains(&address),
        );
        found.map(|found| match found {
            Return::Link(address) => address,
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn the_link_register_has_the_caller_until_a_frame_is_made() {
        assert_eq!(caller(0x210, 0x220, 0), Some(0x210));
        assert_eq!(caller(0x210, 0x220, 4), Some(0x210));
        assert_eq!(caller(0x210, 0x220, 12), Some(0x210));
        // With a frame, the walk has found it.
        assert_eq!(caller(0x210, 0x210, 6), None);
        // A call has returned here.
        assert_eq!(caller(0x124, 0x210, 9), None);
        // The method has called itself.
        assert_eq!(caller(0x124, 0x124, 3), Some(0x124));
        assert_eq!(caller(0x124, 0x124, 6), None);
        // libjvm called.
        assert_eq!(caller(0x1000, 0x210, 0), None);
    }

    #[test]
    fn signatures_of_return_addresses_are_removed() {
        let signed = 0x002b_0000_0000_0210;
        assert_eq!(code_address(signed), 0x210);
        assert_eq!(caller(signed, 0x220, 0), Some(0x210));
        assert_eq!(caller(signed, 0x210, 6), None);
    }

    /// The ways to leave the method at an index, its stack pointer 0x1000.
    fn exits(index: usize, link: u64) -> Vec<Exit> {
        let code: Vec<u32> = small().iter().map(|(code, _)| *code).collect();
        let registers = Registers {
            pc: 0x100,
            sp: 0x1000,
            fp: 0x1200,
            link,
        };
        let is_own = |address| (0x100..0x200).contains(&address);
        let code = || Some(around(&code, index));
        let exits = sized_exits(registers, 0x1040, true, code, is_own);
        exits.into_iter().flatten().collect()
    }

    #[test]
    fn compiled_code_is_left_by_its_size_where_the_frame_is_complete() {
        let sized = Exit {
            sp: 0x1040,
            pc: Saved::At(0x1038),
            fp: Saved::At(0x1030),
        };
        let by_link = |sp| Exit {
            sp,
            pc: Saved::Known(0x210),
            fp: Saved::Known(0x1200),
        };
        assert_eq!(exits(0, 0x210)[0], by_link(0x1000));
        assert_eq!(exits(4, 0x210)[0], by_link(0x1040));
        assert_eq!(exits(5, 0x210)[0], sized);
        assert_eq!(exits(11, 0x210)[0], by_link(0x1040));
        assert_eq!(exits(15, 0x210)[0], by_link(0x1000));
        // After a call.
        assert_eq!(exits(9, 0x124), [sized]);
    }

    #[test]
    fn a_stub_without_a_frame_is_left_by_the_link_register() {
        let registers = |link| Registers {
            sp: 0x1000,
            fp: 0x1200,
            link,
            ..Registers::default()
        };
        let is_own = |address| (0x100..0x200).contains(&address);
        let [exit, None, None] = stub_exits(registers(0x210), is_own) else {
            panic!("more than one way");
        };
        assert_eq!(exit.map(|exit| exit.pc), Some(Saved::Known(0x210)));
        assert_eq!(stub_exits(registers(0x124), is_own), [None; 3]);
        assert!(stub_has_frame(registers(0x210), || Some(0x210)));
        assert!(!stub_has_frame(registers(0x210), || Some(0x220)));
    }
}
