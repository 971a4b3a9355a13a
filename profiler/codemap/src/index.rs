//! Shortcuts into the list, so that a look-up does not wander through memory from the list's head.
//!
//! Addresses fall into slots; each slot names the first record, in the list's order, of those that
//! start in it. The slot of an address, or the next below that is not empty, is where a look-up enters
//! the list. A slot is right before `insert` returns and after `remove` returns; between, it lacks what
//! the list itself could lack as well. It never names a record that was unlinked.

use crate::arena::{Words, bump, header};
use crate::block::Node;
use crate::key::Key;
use crate::sync::{AtomicU64, Ordering, fence, sized};

/// Bytes of a slot, as a power of two: about the smallest common method.
pub(crate) const SLOT_BITS: u32 = 9;
/// Slots of a page, as a power of two: 2 MiB of code, close together for the sake of the TLB.
const PAGE_BITS: u32 = sized(12, 1) as u32;
const PAGE_SLOTS: usize = 1 << PAGE_BITS;
/// Slots looked at for one that is not empty.
pub(crate) const SCAN: u64 = sized(64, 2) as u64;
/// Directory entries looked at for a page.
const PROBES: usize = sized(8, 2);

/// The shortcuts of an arena. The directory's entries are `page << 32 | first word of its slots`; pages
/// stay, code comes back to the same addresses.
#[derive(Clone, Copy)]
pub(crate) struct Index<'a> {
    words: &'a [AtomicU64],
}

impl<'a> Index<'a> {
    pub(crate) fn new(words: &'a [AtomicU64]) -> Self {
        Self { words }
    }

    /// Word of the first record of the slot of the address or the next below that is not empty. Records
    /// of the same slot may start above the address. `None`: nothing is near, or nobody knows.
    pub(crate) fn near(self, address: u64) -> Option<u64> {
        if self.words.load(header::UNINDEXED) != 0 {
            return None;
        }
        let last = address >> SLOT_BITS;
        let mut slots = self.page(last >> PAGE_BITS);
        for slot in (last.saturating_sub(SCAN - 1)..=last).rev() {
            let within = slot as usize % PAGE_SLOTS;
            if let Some(slots) = slots {
                let record = self.words.acquire(slots + within);
                if record != 0 {
                    return Some(record);
                }
            }
            if within == 0 && slot > 0 {
                slots = self.page((slot - 1) >> PAGE_BITS);
            }
        }
        None
    }

    /// Adds a linked record, which nobody can be removing yet.
    pub(crate) fn add(self, node: Node<'_>) {
        let Some(slot) = self.slot_to_write(node.start()) else {
            self.words[header::UNINDEXED].store(1, Ordering::Release);
            return;
        };
        // Either this sees what `replace` put there, or `replace` sees the record in the list.
        fence(Ordering::SeqCst);
        let _ = slot.fetch_update(Ordering::AcqRel, Ordering::Acquire, |known| {
            let comes_first =
                known == 0 || Key::from_node(node).is_before(Key::from_node(self.node(known)));
            comes_first.then_some(node.offset as u64)
        });
    }

    /// Takes a record out before it is unlinked. One caller at a time.
    ///
    /// What comes next is read from the record itself: a way through the index would start at what
    /// this has just put there, and miss an insert between the two.
    pub(crate) fn replace(self, node: Node<'a>) {
        let start = node.start();
        let Some(slot) = self.slot(start) else { return };
        let mut known = slot.load(Ordering::Acquire);
        if known != node.offset as u64 {
            return;
        }
        loop {
            let next = node.next(0).load(Ordering::Acquire);
            let in_slot = next != 0 && self.node(next).start() >> SLOT_BITS == start >> SLOT_BITS;
            let first = if in_slot { next } else { 0 };
            if first == known {
                return;
            }
            known = match slot.compare_exchange(known, first, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => first,
                // An insert has put a record there that comes first.
                Err(other) if Key::from_node(self.node(other)).is_before(Key::from_node(node)) => {
                    return;
                }
                Err(other) => other,
            };
            // Done when another look at the list finds nothing better than what is there: an insert
            // that found `node` still there has left the slot to this loop.
            fence(Ordering::SeqCst);
        }
    }

    fn node(self, offset: u64) -> Node<'a> {
        Node {
            words: self.words,
            offset: offset as usize,
        }
    }

    fn slot(self, address: u64) -> Option<&'a AtomicU64> {
        let slot = address >> SLOT_BITS;
        let slots = self.page(slot >> PAGE_BITS)?;
        self.words.get(slots + slot as usize % PAGE_SLOTS)
    }

    fn slot_to_write(self, address: u64) -> Option<&'a AtomicU64> {
        let page = address >> SLOT_BITS >> PAGE_BITS;
        if self.page(page).is_none() {
            self.add_page(page);
        }
        self.slot(address)
    }

    /// First word of a page's slots.
    fn page(self, page: u64) -> Option<usize> {
        for probe in 0..PROBES {
            let entry = self.words.acquire(entry_of(page, probe));
            if entry == 0 {
                return None;
            }
            if entry >> 32 == page & 0xffff_ffff {
                return Some(entry as u32 as usize);
            }
        }
        None
    }

    fn add_page(self, page: u64) {
        // Two writers at once waste one page's slots.
        let Some(slots) =
            bump(self.words, PAGE_SLOTS).and_then(|offset| u32::try_from(offset).ok())
        else {
            return;
        };
        let entry = page << 32 | u64::from(slots);
        for probe in 0..PROBES {
            let there = self.words[entry_of(page, probe)].compare_exchange(
                0,
                entry,
                Ordering::AcqRel,
                Ordering::Acquire,
            );
            match there {
                Ok(_) => return,
                Err(other) if other >> 32 == page & 0xffff_ffff => return,
                Err(_) => {}
            }
        }
    }
}

fn entry_of(page: u64, probe: usize) -> usize {
    header::DIRECTORY + (page as usize + probe) % header::DIRECTORY_ENTRIES
}
