//! Reading this process's own memory where it may be gone meanwhile: the kernel tells, nothing faults.

use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::getpid;
use std::io::IoSliceMut;

/// The bytes at an address, if all of them are there.
pub(crate) fn bytes<const N: usize>(at: u64) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    (read(at, &mut bytes) == N).then_some(bytes)
}

/// Fills `into` as far as there is memory; returns how many bytes that is.
pub(crate) fn read(at: u64, into: &mut [u8]) -> usize {
    let Ok(base) = usize::try_from(at) else {
        return 0;
    };
    let from = RemoteIoVec {
        base,
        len: into.len(),
    };
    process_vm_readv(getpid(), &mut [IoSliceMut::new(into)], &[from]).unwrap_or(0)
}

/// 64 bits.
pub(crate) fn word(at: u64) -> Option<u64> {
    bytes(at).map(u64::from_ne_bytes)
}

/// 32 bits.
pub(crate) fn half_word(at: u64) -> Option<u32> {
    bytes(at).map(u32::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_read_and_what_is_not_is_told() {
        let here = [1u32, 2];
        let at = here.as_ptr() as u64;
        assert_eq!(half_word(at + 4), Some(2));
        assert_eq!(word(at), Some(2 << 32 | 1));
        assert_eq!(word(8), None);
        assert_eq!(word(u64::MAX - 3), None);
    }
}
