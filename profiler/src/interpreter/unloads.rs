//! Counts the classes that the JVM has unloaded, from its performance counters.

use crate::memory::Memory;

/// Counters of unloaded classes: all classes except those from the JVM's archive, and those from the archive.
const COUNTERS: [&[u8]; 2] = [
    b"java.cls.unloadedClasses",
    b"java.cls.sharedUnloadedClasses",
];
/// `PerfDataPrologue::magic` and `accessible`: the counters are valid.
const MAGIC: u32 = 0xcafe_c0c0_u32.to_be();
const ACCESSIBLE: usize = 7;
/// `PerfDataPrologue::used`, bytes, u32.
const USED: usize = 8;
/// `PerfDataPrologue::entry_offset` and `num_entries`, u32 each, at its end.
const ENTRIES: usize = 24;
const PROLOGUE: usize = 32;
/// `sizeof(PerfDataEntry)`.
const SHORTEST: usize = 20;
/// Maximum memory for counters, bytes: 32 KiB unless configured.
const LARGEST: usize = 4 << 20;
/// Counters at a smaller distance than this are read together, bytes.
const NEAR: usize = 512;
/// While the JVM has no counters, they are looked up again after this time, ns.
const AGAIN_NS: u64 = 1_000_000_000;

/// The JVM's counts of unloaded classes. It increments them before it reuses the memory of a class's metadata.
#[derive(Debug)]
pub(super) struct Unloads {
    memory: Memory,
    /// Address of `PerfMemory::_start`; 0 if unknown.
    start: u64,
    /// Addresses of the counters.
    counters: Option<[u64; 2]>,
    search_from: u64,
}

impl Unloads {
    pub(super) fn new(memory: Memory, start: u64) -> Self {
        Self {
            memory,
            start,
            counters: None,
            search_from: 0,
        }
    }

    /// Number of classes unloaded since the JVM's start; `None` if it does not count them (`-XX:-UsePerfData`).
    pub(super) fn count(&mut self, now: u64) -> Option<u64> {
        if self.counters.is_none() && now >= self.search_from {
            self.search_from = now + AGAIN_NS;
            self.counters = self.find();
        }
        let [first, second] = self.counters?;
        // Mostly they are close together, and one read is sufficient.
        let start = first.min(second);
        let mut bytes = [0; NEAR];
        let near = first.max(second) - start < (NEAR - 8) as u64;
        let read = if near {
            self.memory.read(&mut bytes, start)
        } else {
            0
        };
        let word = |address: u64| {
            let offset = usize::try_from(address - start).ok()?;
            match bytes[..read].get(offset..offset + 8) {
                Some(word) => word.try_into().ok().map(u64::from_ne_bytes),
                None => self.word(address),
            }
        };
        Some(word(first)?.wrapping_add(word(second)?))
    }

    fn word(&self, address: u64) -> Option<u64> {
        self.memory.array(address).map(u64::from_ne_bytes)
    }

    fn find(&self) -> Option<[u64; 2]> {
        if self.start == 0 {
            return None;
        }
        let start = self.word(self.start)?;
        let prologue: [u8; PROLOGUE] = self.memory.array(start)?;
        if !is_accessible(&prologue) {
            return None;
        }
        let mut bytes = vec![0; (half(&prologue, USED)? as usize).min(LARGEST)];
        let read = self.memory.read(&mut bytes, start);
        let offsets = offsets(&bytes[..read])?;
        Some(offsets.map(|offset| start + offset as u64))
    }
}

fn is_accessible(data: &[u8]) -> bool {
    half(data, 0) == Some(MAGIC) && data.get(ACCESSIBLE) == Some(&1)
}

/// Offsets of the counters of unloaded classes in performance data.
fn offsets(data: &[u8]) -> Option<[usize; 2]> {
    if !is_accessible(data) {
        return None;
    }
    let mut entry = half(data, ENTRIES)? as usize;
    let mut found = [None; 2];
    for _ in 0..half(data, ENTRIES + 4)? {
        // `PerfDataEntry`: its length, offset of its name, number of values, four bytes of kinds, offset of its value.
        let length = half(data, entry)? as usize;
        let name = data.get(entry + half(data, entry + 4)? as usize..)?;
        let is_name = |counter: &&[u8]| {
            let rest = name.strip_prefix(*counter);
            rest.is_some_and(|rest| rest.first() == Some(&0))
        };
        if let Some(counter) = COUNTERS.iter().position(is_name) {
            found[counter] = Some(entry + half(data, entry + 16)? as usize);
        }
        if let [Some(first), Some(second)] = found {
            return Some([first, second]);
        }
        if length < SHORTEST {
            return None;
        }
        entry += length;
    }
    None
}

/// The u32 at an offset.
fn half(data: &[u8], offset: usize) -> Option<u32> {
    let bytes = data.get(offset..offset.checked_add(4)?)?;
    bytes.try_into().ok().map(u32::from_ne_bytes)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Performance data, and a word with its address, like `PerfMemory::_start`.
    pub(in crate::interpreter) struct Counters {
        data: Vec<u8>,
        start: Box<u64>,
    }

    impl Counters {
        pub(in crate::interpreter) fn new() -> Self {
            let data = data(&COUNTERS);
            let start = Box::new(data.as_ptr() as u64);
            Self { data, start }
        }

        pub(in crate::interpreter) fn start(&self) -> u64 {
            (&raw const *self.start) as u64
        }

        /// Counts the unloading of an application class.
        pub(in crate::interpreter) fn unload(&mut self) {
            self.data[32 + 56] += 1;
        }
    }

    #[test]
    fn classes_are_counted_once_the_counters_are_there() {
        let mut counters = Counters::new();
        counters.data[ACCESSIBLE] = 0;
        let memory = Memory::open(std::process::id()).expect("this process");
        let mut unloads = Unloads::new(memory, counters.start());
        assert_eq!(unloads.count(0), None);
        counters.data[ACCESSIBLE] = 1;
        assert_eq!(unloads.count(1), None);
        assert_eq!(unloads.count(AGAIN_NS), Some(0));
        counters.unload();
        assert_eq!(unloads.count(AGAIN_NS), Some(1));
    }

    /// Performance data with counters of these names, each 64 bytes with its value in the last eight.
    fn data(names: &[&[u8]]) -> Vec<u8> {
        let mut data = MAGIC.to_ne_bytes().to_vec();
        data.extend([1, 2, 0, 1]);
        data.extend([0; 16]);
        data.extend(32u32.to_ne_bytes());
        data.extend((names.len() as u32).to_ne_bytes());
        for name in names {
            let from = data.len();
            for number in [64u32, 20, 0, 0, 56] {
                data.extend(number.to_ne_bytes());
            }
            data.extend(*name);
            data.resize(from + 64, 0);
        }
        let used = data.len() as u32;
        data[USED..USED + 4].copy_from_slice(&used.to_ne_bytes());
        data
    }

    #[test]
    fn counters_are_found_by_their_names() {
        let data = data(&[b"java.cls.loadedClasses", COUNTERS[1], COUNTERS[0]]);
        assert_eq!(offsets(&data), Some([32 + 128 + 56, 32 + 64 + 56]));
    }

    #[test]
    fn what_is_cut_off_or_not_ready_has_none() {
        let whole = data(&COUNTERS);
        assert!(offsets(&whole).is_some());
        // The second counter's value may be missing.
        for end in 0..whole.len() - 64 {
            assert_eq!(offsets(&whole[..end]), None, "{end} bytes");
        }
        let mut early = whole.clone();
        early[ACCESSIBLE] = 0;
        assert_eq!(offsets(&early), None);
        let mut endless = whole;
        endless[32] = 0;
        assert_eq!(offsets(&endless), None);
    }
}
