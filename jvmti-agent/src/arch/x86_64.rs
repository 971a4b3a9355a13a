//! x86-64.

/// Length of a call instruction, bytes.
pub(crate) const CALL_BYTES: usize = 5;

/// A call, for tests.
#[cfg(test)]
pub(crate) const CALL: [u8; CALL_BYTES] = [0xe8, 0, 0, 0, 0];

/// Whether an instruction is a call of compiled code.
pub(crate) fn is_call(instruction: [u8; CALL_BYTES]) -> bool {
    instruction[0] == 0xe8
}
