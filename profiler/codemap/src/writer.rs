//! Inserting, unloading, recycling: the JVM's side. Nothing here waits.

use crate::arena::{Words, bump, header};
use crate::block::{LEVELS, Node, encode};
use crate::key::Key;
use crate::list::List;
use crate::range::CodeRange;
use crate::sync::{AtomicU64, AtomicUsize, Ordering, SegQueue, fence, sized};

/// How long an unloaded range stays known, ns: longer than any sample waits to be resolved.
const RETENTION: u64 = 30_000_000_000;
/// Blocks recycled in one call; keeps a callback short.
const AT_ONCE: usize = 256;

/// The map is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

/// The writers' own state; not shared with other processes.
pub(crate) struct Local {
    /// Writers inside an operation.
    active: AtomicUsize,
    /// Whether someone recycles.
    recycling: AtomicUsize,
    /// Unloaded blocks, oldest first.
    unloaded: SegQueue<(u64, usize)>,
    /// Taken from `unloaded` and found too young (time, block or 0); the recycler's own.
    youngest: (AtomicU64, AtomicUsize),
    /// Unlinked blocks that a writer may still be looking at.
    limbo: SegQueue<usize>,
    /// Free blocks by size class.
    free: [SegQueue<usize>; CLASSES],
    /// State of the tower heights.
    random: AtomicU64,
}

impl Default for Local {
    fn default() -> Self {
        Self {
            active: AtomicUsize::default(),
            recycling: AtomicUsize::default(),
            unloaded: SegQueue::new(),
            youngest: (AtomicU64::default(), AtomicUsize::default()),
            limbo: SegQueue::new(),
            free: std::array::from_fn(|_| SegQueue::new()),
            random: AtomicU64::default(),
        }
    }
}

/// The writing side.
#[derive(Clone, Copy)]
pub struct Writer<'a> {
    words: &'a [AtomicU64],
    local: &'a Local,
}

/// Says that a writer is inside, for as long as it lives.
struct WriterGuard<'a>(&'a AtomicUsize);

impl<'a> WriterGuard<'a> {
    fn enter(local: &'a Local) -> Self {
        local.active.fetch_add(1, Ordering::SeqCst);
        Self(&local.active)
    }
}

impl Drop for WriterGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl<'a> Writer<'a> {
    pub(crate) fn new(words: &'a [AtomicU64], local: &'a Local) -> Self {
        Self { words, local }
    }

    /// Makes a range known from its load time on. A range still loaded there is taken as unloaded:
    /// its event was missed.
    ///
    /// # Errors
    /// [`Full`] when there is no room; the range is counted as dropped.
    pub fn insert(&self, range: &CodeRange<'_>) -> Result<(), Full> {
        let words = encode(range, self.height());
        let offset = self.allocate(words.len()).or_else(|| {
            // The first call unlinks old ranges, the second frees their blocks.
            self.maintain(range.load_time);
            self.maintain(range.load_time);
            self.allocate(words.len())
        });
        let Some(offset) = offset else {
            // What was there before is gone, whether or not the new code fits.
            let _inside = WriterGuard::enter(self.local);
            self.unload_overlapping(range);
            self.count(header::VERSION);
            self.count(header::DROPPED_FULL);
            return Err(Full);
        };
        let _inside = WriterGuard::enter(self.local);
        // See `Reader::validated`.
        fence(Ordering::Release);
        for (index, word) in words.iter().enumerate() {
            self.words[offset + index].store(*word, Ordering::Relaxed);
        }
        self.words[header::MAX_SIZE].fetch_max(u64::from(range.size), Ordering::AcqRel);
        self.unload_overlapping(range);
        List::new(self.words).insert(offset);
        self.count(header::INSERTED);
        self.count(header::VERSION);
        Ok(())
    }

    /// Ends the range that starts at `start`. False if none is loaded there.
    pub fn unload(&self, start: u64, time: u64) -> bool {
        let _inside = WriterGuard::enter(self.local);
        let unloaded = List::new(self.words)
            .from(Key::at_address(start))
            .take_while(|node| node.start() == start)
            .any(|node| self.end(node, time));
        if unloaded {
            self.count(header::VERSION);
        }
        unloaded
    }

    /// Recycles some ranges that were unloaded long before `now`, if nobody else is at it.
    pub fn maintain(&self, now: u64) {
        let mine =
            self.local
                .recycling
                .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed);
        if mine.is_err() {
            return;
        }
        let _inside = WriterGuard::enter(self.local);
        self.release_limbo();
        for _ in 0..AT_ONCE {
            let Some((time, offset)) = self.next_unloaded() else {
                break;
            };
            let node = Node {
                words: self.words,
                offset,
            };
            if time.saturating_add(RETENTION) > now || !node.is_linked() {
                self.local.youngest.0.store(time, Ordering::Relaxed);
                self.local.youngest.1.store(offset, Ordering::Relaxed);
                break;
            }
            List::new(self.words).remove(offset);
            self.local.limbo.push(offset);
        }
        self.local.recycling.store(0, Ordering::Release);
    }

    fn next_unloaded(&self) -> Option<(u64, usize)> {
        match self.local.youngest.1.swap(0, Ordering::Relaxed) {
            0 => self.local.unloaded.pop(),
            offset => Some((self.local.youngest.0.load(Ordering::Relaxed), offset)),
        }
    }

    /// Frees unlinked blocks once no other writer is inside: those that come later cannot reach them.
    fn release_limbo(&self) {
        if self.local.limbo.is_empty() || self.local.active.load(Ordering::SeqCst) != 1 {
            return;
        }
        self.words[header::RECLAIM_SEQ].fetch_add(1, Ordering::AcqRel);
        fence(Ordering::Release);
        while let Some(offset) = self.local.limbo.pop() {
            let words = Node {
                words: self.words,
                offset,
            }
            .block_words();
            self.local.free[class_of(words)].push(offset);
            self.count(header::RECYCLED);
        }
    }

    fn end(&self, node: Node<'_>, time: u64) -> bool {
        let ended = node.set_unloaded(time);
        if ended {
            self.local.unloaded.push((time, node.offset));
            self.count(header::UNLOADED);
        }
        ended
    }

    fn unload_overlapping(&self, range: &CodeRange<'_>) {
        let end = range.start.saturating_add(u64::from(range.size));
        let reach = self.words.load(header::MAX_SIZE);
        for node in List::new(self.words).from(Key::at_address(end.saturating_sub(1))) {
            if node.start().saturating_add(reach) <= range.start {
                break;
            }
            if node.unload_time() == u64::MAX {
                if node.end() <= range.start {
                    break;
                }
                self.end(node, range.load_time.max(node.load_time()));
            }
        }
    }

    fn allocate(&self, words: usize) -> Option<usize> {
        let class = class_of(words);
        if let Some(offset) = self.local.free[class].pop() {
            return Some(offset);
        }
        bump(self.words, class_words(class))
    }

    /// Height of a new tower: one more with probability ¼.
    fn height(&self) -> usize {
        let mut x = self
            .local
            .random
            .fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (1 + (x ^ x >> 31).trailing_zeros() as usize / 2).min(LEVELS)
    }

    fn count(&self, counter: usize) {
        self.words[counter].fetch_add(1, Ordering::AcqRel);
    }
}

/// Size classes: four to each power of two, so that at most a fifth of a block is waste, and whole
/// cache lines, so that a node is in as few as can be.
const CLASSES: usize = sized(96, 8);

fn class_of(words: usize) -> usize {
    (0..CLASSES - 1)
        .find(|class| class_words(*class) >= words)
        .unwrap_or(CLASSES - 1)
}

fn class_words(class: usize) -> usize {
    (4 + class % 4) << (class / 4 + sized(3, 1))
}
