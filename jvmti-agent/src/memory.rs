//! Reads this process's own memory where it may be unmapped: the kernel reports that, nothing faults.

use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::getpid;
use std::io::IoSliceMut;

/// The bytes at an address, if all of them are mapped.
pub(crate) fn bytes<const N: usize>(address: u64) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    (read(address, &mut bytes) == N).then_some(bytes)
}

/// Fills `into` as far as memory is mapped; returns the number of bytes.
pub(crate) fn read(address: u64, into: &mut [u8]) -> usize {
    let Ok(base) = usize::try_from(address) else {
        return 0;
    };
    let from = RemoteIoVec {
        base,
        len: into.len(),
    };
    process_vm_readv(getpid(), &mut [IoSliceMut::new(into)], &[from]).unwrap_or(0)
}

/// 64 bits.
pub(crate) fn word(address: u64) -> Option<u64> {
    bytes(address).map(u64::from_ne_bytes)
}

/// 32 bits.
pub(crate) fn half_word(address: u64) -> Option<u32> {
    bytes(address).map(u32::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_read_and_what_is_not_is_told() {
        let here = [1u32, 2];
        let address = here.as_ptr() as u64;
        assert_eq!(half_word(address + 4), Some(2));
        assert_eq!(word(address), Some(2 << 32 | 1));
        assert_eq!(word(8), None);
        assert_eq!(word(u64::MAX - 3), None);
    }
}
