//! Symbols that a loaded program or library exports, read from the memory of its process: no file is opened, and nothing
//! depends on where the process has its root.

use object::elf::{DT_GNU_HASH, DT_STRTAB, DT_SYMTAB, PT_DYNAMIC, SHN_UNDEF};
use object::read::elf::ProgramHeader;

use crate::loaded::LoadedFile;
use crate::memory::Memory;

/// Most entries of a dynamic section.
const MOST_ENTRIES: u64 = 512;
/// Most symbols of one hash bucket that are compared.
const MOST_IN_BUCKET: u32 = 1_024;
/// Size of a symbol in the table, bytes.
const SYMBOL: u64 = 24;

/// The exported symbols of one file in a process.
pub(super) struct Exports<'a> {
    memory: &'a Memory,
    /// Actual minus stated addresses.
    bias: u64,
    symbols: u64,
    names: u64,
    hash: u64,
}

impl<'a> Exports<'a> {
    /// Of the file that begins at this address. `None` if it exports nothing in the usual way.
    pub(super) fn at(base: u64, memory: &'a Memory) -> Option<Self> {
        let file = LoadedFile::read(base, memory)?;
        let bias = file.bias;
        let dynamic = file.segment(PT_DYNAMIC)?;
        let start = bias.checked_add(dynamic.p_vaddr(file.endian))?;
        let entry = |tag: u32| {
            (0..MOST_ENTRIES).find_map(|at| {
                let words: [u8; 16] = memory.array(start.checked_add(16 * at)?)?;
                let [found, value] = [0, 8]
                    .map(|at| u64::from_ne_bytes(words[at..at + 8].try_into().unwrap_or_default()));
                (found == u64::from(tag)).then_some(value)
            })
        };
        // The loader of glibc has added the bias to the addresses, the one of musl has not.
        let address = |tag: u32| {
            let value = entry(tag)?;
            match value < base {
                true => bias.checked_add(value),
                false => Some(value),
            }
        };
        Some(Self {
            memory,
            bias,
            symbols: address(DT_SYMTAB)?,
            names: address(DT_STRTAB)?,
            hash: address(DT_GNU_HASH)?,
        })
    }

    /// The address of a symbol that the file defines.
    pub(super) fn find(&self, name: &str) -> Option<u64> {
        let half = |address: u64| self.memory.array(address).map(u32::from_ne_bytes);
        let [buckets, first, filter] = [0, 4, 8].map(|at| half(self.hash.wrapping_add(at)));
        let (buckets, first, filter) = (buckets?, first?, filter?);
        let hash = name.bytes().fold(5_381_u32, |hash, byte| {
            hash.wrapping_mul(33).wrapping_add(u32::from(byte))
        });
        let table = self.hash.checked_add(16 + 8 * u64::from(filter))?;
        let bucket = hash.checked_rem(buckets)?;
        let begin = half(table.checked_add(4 * u64::from(bucket))?)?;
        let chain = table.checked_add(4 * u64::from(buckets))?;
        // Those before the first are not in the hash table, and an empty bucket has 0.
        let begin = Some(begin).filter(|begin| *begin >= first)?;
        for index in begin..begin.checked_add(MOST_IN_BUCKET)? {
            let other = half(chain.checked_add(4 * u64::from(index - first))?)?;
            if (hash ^ other) | 1 == 1
                && let Some(address) = self.defined(index, name)
            {
                return Some(address);
            }
            if other & 1 == 1 {
                break;
            }
        }
        None
    }

    /// The address of the symbol at a place of the table, if it has this name.
    fn defined(&self, index: u32, name: &str) -> Option<u64> {
        let at = self.symbols.checked_add(SYMBOL * u64::from(index))?;
        let symbol: [u8; SYMBOL as usize] = self.memory.array(at)?;
        let start = u32::from_ne_bytes(symbol[..4].try_into().ok()?);
        let section = u16::from_ne_bytes(symbol[6..8].try_into().ok()?);
        let value = u64::from_ne_bytes(symbol[8..16].try_into().ok()?);
        let mut text = vec![0; name.len() + 1];
        let read = self
            .memory
            .read(&mut text, self.names.checked_add(u64::from(start))?);
        let is_it = read == text.len() && text.strip_suffix(&[0]) == Some(name.as_bytes());
        (is_it && section != SHN_UNDEF).then(|| self.bias.wrapping_add(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maps::Maps;

    #[test]
    fn functions_of_the_c_library_are_found_where_they_are() {
        let own = std::process::id();
        let memory = Memory::open(own).unwrap();
        let maps = Maps::open(own).unwrap();
        let functions = [
            ("getpid", libc::getpid as *const () as u64),
            ("getppid", libc::getppid as *const () as u64),
        ];
        for (name, address) in functions {
            let library = maps.find(address).unwrap();
            let exports = Exports::at(library.header.unwrap(), &memory).unwrap();
            assert_eq!(exports.find(name), Some(address), "{name}");
            assert_eq!(exports.find("no_such_function"), None);
            assert_eq!(exports.find(""), None);
        }
        let text = [0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0].repeat(1_000);
        assert!(Exports::at(text.as_ptr() as u64, &memory).is_none());
        assert!(Exports::at(8, &memory).is_none());
    }
}
