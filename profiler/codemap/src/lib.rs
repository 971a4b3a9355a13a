//! Which method's code is at an address, and was there at a time: a map in shared memory.
//!
//! The JVM writes it from JIT events; samplers, which are other processes, read it. A writer never
//! waits for anyone, a reader never disturbs a writer and never returns a torn record.
//!
//! * [`arena`](mod@arena): the memory as words that are only ever accessed atomically.
//! * `list`: a lock-free skip list over offsets, by start address downward, newest first.
//! * `index`: shortcuts into the list by address.
//! * `block`: one record, self-contained, so that recycling it is freeing one block.
//! * [`Marks`]: a ring of task starts and ends in the same memory.
//!
//! ```
//! use unfuse_codemap::*;
//! let map = CodeMap::create(1 << 20).unwrap();
//! map.writer().insert(&CodeRange {
//!     start: 0x1000, size: 0x100, load_time: 5, kind: Kind::Java, frame_words: 0, sparse: false,
//!     methods: &[Method { class: "A", name: "m", signature: "()V", file: "A.java" }],
//!     frames: &[FrameRec { parent: u32::MAX, method: 0, bci: 0, line: 7 }],
//!     pcs: &[PcRec { offset: 0x20, frame: 0 }],
//! }).unwrap();
//! let mut found = Resolution::default();
//! assert_eq!(map.reader().resolve(0x1010, 9, true, &mut found), Lookup::Found);
//! assert_eq!((found.frames[0].method.as_str(), found.frames[0].line), ("m", 7));
//! ```

pub mod arena;
mod block;
mod index;
mod key;
mod list;
mod map;
mod marks;
mod memory_file;
#[cfg(all(test, loom))]
mod models;
mod range;
mod reader;
mod shared;
mod status;
mod sync;
mod writer;

pub use map::{CodeMap, Stats};
pub use marks::{Mark, MarkCursor, MarkKind, Marks};
pub use memory_file::{Sealing, memory_file};
pub use range::{CodeRange, Frame, FrameRec, Kind, Method, PcRec};
pub use reader::{Finding, Lookup, Reader, Resolution, Shape};
#[cfg(not(any(loom, miri)))]
pub use shared::SharedMapping;
pub use status::Status;
pub use writer::{Full, Writer};
