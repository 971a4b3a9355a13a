//! x86-64: a call pushes the return address, and frames are linked by rbp.

use gimli::{Register, Vendor, X86_64};

use super::{Exit, Exits, Registers, Return, Role, Saved, mask};

/// Registers in samples: rbx, rbp, rsp and r13, by `PERF_REG_X86_BX` and so on.
pub(crate) const SAMPLED: [(u32, Role); 4] = [
    (1, Role::Method),
    (6, Role::FramePointer),
    (7, Role::StackPointer),
    (21, Role::Bytecode),
];
/// Their mask.
pub(crate) const SAMPLED_MASK: u64 = mask(&SAMPLED);

/// Number of registers at the start of the top of a stack (`timer::walk::top`): rsp and rbp.
pub(crate) const TOP_REGISTERS: usize = 2;

/// Numbers of registers in call frame information.
pub(crate) const DWARF_FRAME_POINTER: Register = X86_64::RBP;
pub(crate) const DWARF_STACK_POINTER: Register = X86_64::RSP;
pub(crate) const DWARF_RETURN_ADDRESS: Register = X86_64::RA;
/// Whose extensions of call frame information there are.
pub(crate) const DWARF_VENDOR: Vendor = Vendor::Default;

/// Whether a leaf's return address may be in a register.
pub(crate) const HAS_LINK: bool = false;
/// Whether the frame pointers of libjvm are at the upper end of their frames, so that they give the caller's stack
/// pointer.
pub(crate) const FRAMES_END_AT_LINKS: bool = true;

/// Slot of an interpreted frame: the saved bytecode pointer, bytes below the frame pointer (JDK 11 to 25).
pub(crate) const BYTECODE: u64 = 8 * 8;

/// Bytes of code that are examined before and after a leaf's address.
pub(crate) const BEFORE: usize = 8;
pub(crate) const AFTER: usize = 8;
const PUSH_RBP: u8 = 0x55;

/// The address in a word that is a return address.
#[inline(always)]
pub(crate) const fn code_address(word: u64) -> u64 {
    word
}

/// The registers of a signal handler's context.
#[cfg(target_arch = "x86_64")]
pub(crate) fn interrupted(context: &libc::ucontext_t) -> Registers {
    let register = |index: libc::c_int| context.uc_mcontext.gregs[index as usize] as u64;
    Registers {
        pc: register(libc::REG_RIP),
        sp: register(libc::REG_RSP),
        fp: register(libc::REG_RBP),
        link: 0,
    }
}

/// The place of a leaf's return address, if the frame is not as the kernel assumes. `code` reads the code around the leaf;
/// `word` reads the stack.
pub(crate) fn leaf_return(
    registers: Registers,
    _walked: Option<u64>,
    code: impl FnOnce() -> [u8; BEFORE + AFTER],
    word: impl Fn(u64) -> Option<u64>,
    in_code: impl Fn(u64) -> bool,
    _is_own: impl FnOnce(u64) -> bool,
) -> Option<Return> {
    let Registers {
        sp: rsp, fp: rbp, ..
    } = registers;
    // Compiled code keeps rsp a multiple of 16; a call pushes eight bytes.
    if rsp % 16 == 8 && in_code(word(rsp)?) {
        return Some(Return::Slot(rsp));
    }
    let code = code();
    let (before, after) = code.split_at(BEFORE);
    // push rbp; here; mov rbp, rsp. The two words alone are no proof: an earlier callee of the same caller leaves them
    // on the stack, and this one may not have overwritten them yet.
    let is_pushed = code == [0; BEFORE + AFTER] || before.ends_with(&[PUSH_RBP]);
    if is_pushed && word(rsp) == Some(rbp) && rbp > rsp && in_code(word(rsp + 8)?) {
        return Some(Return::Slot(rsp + 8));
    }
    // Methods that call nothing begin: sub rsp, n+8; mov [rsp+n], rbp; mov rbp, rsp; add rbp, n
    let saves = |bytes: &[u8]| match bytes {
        [0x48, 0x89, 0x6c, 0x24, n] => Some(u64::from(*n)),
        _ => None,
    };
    let saved_at = match (saves(&before[3..]), saves(&after[..5])) {
        (Some(n), _) if after.starts_with(&[0x48, 0x8b, 0xec]) => Some(n),
        (_, Some(n)) if before[1..].starts_with(&[0x48, 0x81, 0xec]) => Some(n),
        _ => None,
    };
    if let Some(n) = saved_at {
        return Some(Return::Slot(rsp + n + 8));
    }
    match after {
        [0x48, 0x83, 0xc5, n, ..] if before.ends_with(&[0x48, 0x8b, 0xec]) && rbp == rsp => {
            Some(Return::Frame(rbp + u64::from(*n)))
        }
        _ => None,
    }
}

/// Ways to leave compiled code whose frame ends at `whole`, likeliest first. At its very begin and end the frame does not
/// exist.
pub(crate) fn sized_exits(
    registers: Registers,
    whole: u64,
    innermost: bool,
    _code: impl FnOnce() -> Option<[u8; BEFORE + AFTER]>,
    _is_own: impl FnOnce(u64) -> bool,
) -> Exits {
    let Registers { sp, fp, .. } = registers;
    let exit = |sp: u64, fp| Exit {
        sp,
        pc: Saved::At(sp - 8),
        fp,
    };
    [
        Some(exit(whole, Saved::At(whole - 16))),
        innermost.then_some(exit(sp + 8, Saved::Known(fp))),
        innermost.then_some(exit(sp + 16, Saved::At(sp))),
    ]
}

/// Whether a leaf in a stub has a frame of its own.
pub(crate) fn stub_has_frame(
    registers: Registers,
    _return_address: impl FnOnce() -> Option<u64>,
) -> bool {
    /// Size of such a frame, bytes.
    const STUB_FRAME: u64 = 256;
    let Registers { sp, fp, .. } = registers;
    fp >= sp && fp - sp < STUB_FRAME
}

/// Ways to leave a stub without a frame of its own: in its first and last instructions, and in the smallest ones.
pub(crate) fn stub_exits(registers: Registers, _is_own: impl FnOnce(u64) -> bool) -> Exits {
    let Registers { sp, fp, .. } = registers;
    let exit = |slot: u64, fp| Exit {
        sp: slot + 8,
        pc: Saved::At(slot),
        fp,
    };
    let pushed = exit(sp + 8, Saved::At(sp));
    [Some(exit(sp, Saved::Known(fp))), Some(pushed), None]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `sub rsp, 0x18; mov [rsp+0x10], rbp; mov rbp, rsp; add rbp, 0x10; imul …`, with the code before it.
    const LEAF: [u8; 41] = [
        0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, // 8
        0x48, 0x81, 0xec, 0x18, 0, 0, 0, // 15
        0x48, 0x89, 0x6c, 0x24, 0x10, // 20
        0x48, 0x8b, 0xec, // 23
        0x48, 0x83, 0xc5, 0x10, // 27
        0x48, 0x8b, 0xc2, 0x48, 0x6b, 0xc0, 0x0b, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90,
    ];

    fn find(
        code: [u8; BEFORE + AFTER],
        (sp, fp): (u64, u64),
        word: impl Fn(u64) -> Option<u64>,
    ) -> Option<Return> {
        let registers = Registers {
            sp,
            fp,
            ..Registers::default()
        };
        let in_code = |address| address == 7;
        leaf_return(registers, None, || code, word, in_code, |_| false)
    }

    /// The state before the instruction at `offset`, the return address in `CALLER`'s slot at 0x1028.
    fn before(offset: usize, rsp: u64, rbp: u64) -> Option<Return> {
        let code = LEAF[offset - BEFORE..offset + AFTER].try_into().unwrap();
        let word = |address| match address {
            0x1028 => Some(7),
            0x1020 => Some(0x1100),
            0x1000..0x1200 => Some(0),
            _ => None,
        };
        find(code, (rsp, rbp), word)
    }

    #[test]
    fn each_instruction_of_a_leaf_method_has_its_return_address() {
        assert_eq!(before(8, 0x1028, 0x1100), Some(Return::Slot(0x1028)));
        assert_eq!(before(15, 0x1010, 0x1100), Some(Return::Slot(0x1028)));
        assert_eq!(before(20, 0x1010, 0x1100), Some(Return::Slot(0x1028)));
        assert_eq!(before(23, 0x1010, 0x1010), Some(Return::Frame(0x1020)));
        assert_eq!(before(27, 0x1010, 0x1020), None);
    }

    #[test]
    fn a_saved_frame_pointer_on_top_is_the_callers_where_it_has_just_been_pushed() {
        let word = |address| match address {
            0x1028 => Some(7),
            0x1020 => Some(0x1100),
            _ => None,
        };
        let found = |code: [u8; BEFORE + AFTER]| find(code, (0x1020, 0x1100), word);
        let pushed = [
            0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, PUSH_RBP, 0x48, 0x8b, 0xec, 0, 0, 0, 0, 0,
        ];
        assert_eq!(found(pushed), Some(Return::Slot(0x1028)));
        // Unreadable code may be that.
        assert_eq!(found([0; BEFORE + AFTER]), Some(Return::Slot(0x1028)));
        // An earlier callee left the two words.
        assert_eq!(found([0x90; BEFORE + AFTER]), None);
        assert_eq!(before(27, 0x1020, 0x1100), None);
    }
}
