//! aarch64.

/// Length of a call instruction, bytes.
pub(crate) const CALL_BYTES: usize = 4;

/// A call, for tests.
#[cfg(test)]
pub(crate) const CALL: [u8; CALL_BYTES] = [0x04, 0, 0, 0x94];

/// Whether an instruction is a call of compiled code: bl, or blr to what a register has.
pub(crate) fn is_call(instruction: [u8; CALL_BYTES]) -> bool {
    let instruction = u32::from_le_bytes(instruction);
    instruction & 0xfc00_0000 == 0x9400_0000 || instruction & 0xffff_fc1f == 0xd63f_0000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_those_that_leave_a_return_address() {
        for call in [0x9400_0004, 0x97ff_fffe, 0xd63f_0100] {
            assert!(is_call(u32::to_le_bytes(call)), "{call:#x}");
        }
        // b, br, ret, nop
        for other in [0x1400_0004, 0xd61f_0100, 0xd65f_03c0, 0xd503_201f] {
            assert!(!is_call(u32::to_le_bytes(other)), "{other:#x}");
        }
    }
}
