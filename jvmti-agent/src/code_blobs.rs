//! HotSpot's code heaps: from the address of code to its header, which has the frame's size. Works as
//! `CodeHeap::find_start` does, and as debuggers do from outside.

use crate::memory;

/// The heap of one kind of compiled code.
#[derive(Debug)]
pub(crate) struct CodeHeap {
    pub(crate) low: u64,
    pub(crate) high: u64,
    /// A byte for each segment: the distance to the start of its block; [`FREE`] if it is in none.
    pub(crate) segment_map: u64,
    pub(crate) segment_shift: u32,
}

/// All heaps, and the layout of a header.
#[derive(Debug)]
pub(crate) struct CodeBlobs {
    pub(crate) heaps: Vec<CodeHeap>,
    /// Bytes before the blob in its block.
    pub(crate) header: u64,
    /// The address of the code (JDK 17) …
    pub(crate) code_begin: Option<u64>,
    /// … or its offset (newer ones), i32.
    pub(crate) code_offset: Option<u64>,
    /// Words of the frame, i32.
    pub(crate) frame_size: u64,
}

const FREE: u8 = 0xff;
/// A block has a few MB at most, a hop 254 segments.
const MOST_HOPS: usize = 4096;

impl CodeBlobs {
    /// Words of the frame of the code that starts at an address; `None` if that is not the start of a blob's code, or
    /// the blob has no fixed frame size.
    pub(crate) fn frame_words(&self, code: u64) -> Option<u32> {
        let blob = self.block(code)?.checked_add(self.header)?;
        let begin = match (self.code_begin, self.code_offset) {
            (Some(offset), _) => memory::word(blob + offset)?,
            (None, Some(offset)) => blob + u64::from(memory::half_word(blob + offset)?),
            (None, None) => return None,
        };
        let words = memory::half_word(blob + self.frame_size)?;
        (begin == code && i32::try_from(words).is_ok()).then_some(words)
    }

    fn block(&self, code: u64) -> Option<u64> {
        let heap = self
            .heaps
            .iter()
            .find(|heap| (heap.low..heap.high).contains(&code))?;
        let mut segment = (code - heap.low) >> heap.segment_shift;
        for _ in 0..MOST_HOPS {
            let [hop] = memory::bytes(heap.segment_map.checked_add(segment)?)?;
            match hop {
                FREE => return None,
                0 => return Some(heap.low + (segment << heap.segment_shift)),
                back => segment = segment.checked_sub(u64::from(back))?,
            }
        }
        None
    }
}
