//! The skip list: lock-free insertion and removal, by word offsets.
//!
//! Order: start address downward, then load time downward, then offset downward, so that no two nodes
//! are equal and every level has the same order. So the first node at or after `(pc, ∞)` is the
//! candidate for `pc`, and older or lower ones follow. Removal marks a node's tower from the top
//! and lets `search` unlink it (Harris 2001).

use crate::arena::header;
use crate::block::{LEVELS, MARK, Node};
use crate::index::Index;
use crate::key::Key;
use crate::sync::{AtomicU64, Ordering};

/// Steps from a shortcut before the way from the head is tried.
const LONGEST_WALK: usize = 64;

/// The list in an arena.
#[derive(Clone, Copy)]
pub(crate) struct List<'a> {
    words: &'a [AtomicU64],
}

/// Where a key belongs on each level: the link before it and the node (0: none) after it.
struct Place<'a> {
    links: [&'a AtomicU64; LEVELS],
    after: [u64; LEVELS],
}

impl<'a> List<'a> {
    pub(crate) fn new(words: &'a [AtomicU64]) -> Self {
        Self { words }
    }

    fn head(self, level: usize) -> &'a AtomicU64 {
        &self.words[header::HEAD + level]
    }

    fn node(self, offset: u64) -> Node<'a> {
        Node {
            words: self.words,
            offset: offset as usize,
        }
    }

    /// Finds the place of a key, unlinking marked nodes on the way. Writers only.
    fn search(self, key: Key) -> Place<'a> {
        'again: loop {
            let mut place = Place {
                links: [self.head(0); LEVELS],
                after: [0; LEVELS],
            };
            let mut before: Option<Node<'a>> = None;
            for level in (0..LEVELS).rev() {
                let mut link = before.map_or_else(|| self.head(level), |node| node.next(level));
                let mut offset = link.load(Ordering::Acquire);
                if offset & MARK != 0 {
                    continue 'again;
                }
                while offset != 0 {
                    let node = self.node(offset);
                    let next = node.next(level).load(Ordering::Acquire);
                    if next & MARK != 0 {
                        let unlinked = link.compare_exchange(
                            offset,
                            next & !MARK,
                            Ordering::AcqRel,
                            Ordering::Acquire,
                        );
                        if unlinked.is_err() {
                            continue 'again;
                        }
                        offset = next & !MARK;
                    } else if Key::from_node(node).is_before(key) {
                        before = Some(node);
                        link = node.next(level);
                        offset = next;
                    } else {
                        break;
                    }
                }
                place.links[level] = link;
                place.after[level] = offset;
            }
            return place;
        }
    }

    /// Links a node whose words are written.
    pub(crate) fn insert(self, offset: usize) {
        let node = self.node(offset as u64);
        let key = Key::from_node(node);
        for level in 0..node.height() {
            loop {
                let place = self.search(key);
                if level > 0 && place.after[level] == offset as u64 {
                    break;
                }
                node.next(level)
                    .store(place.after[level], Ordering::Relaxed);
                let linked = place.links[level].compare_exchange(
                    place.after[level],
                    offset as u64,
                    Ordering::AcqRel,
                    Ordering::Relaxed,
                );
                if linked.is_ok() {
                    break;
                }
            }
        }
        // Before anyone may remove it.
        Index::new(self.words).add(node);
        node.set_linked();
    }

    /// Unlinks a fully linked node from every level.
    pub(crate) fn remove(self, offset: usize) {
        let node = self.node(offset as u64);
        Index::new(self.words).replace(node);
        for level in (0..node.height()).rev() {
            node.next(level).fetch_or(MARK, Ordering::AcqRel);
        }
        // On its way to a node's place a search meets the node, and unlinks it.
        self.search(Key::from_node(node));
    }

    /// Nodes from the key on. Writers and readers; a reader that meets recycled words may see any
    /// nodes, so the walk is bounded and stops at offsets that cannot be.
    pub(crate) fn from(self, key: Key) -> impl Iterator<Item = Node<'a>> {
        let mut offset = match Index::new(self.words).near(key.start) {
            Some(near) => self.follow(near, key).unwrap_or_else(|| self.seek(key)),
            None => self.seek(key),
        };
        let mut steps = 0;
        std::iter::from_fn(move || {
            let node = self.checked(offset)?;
            steps += 1;
            if steps > 100_000 {
                return None;
            }
            offset = node.next(0).load(Ordering::Acquire) & !MARK;
            Some(node)
        })
    }

    /// The first node at or after the key from a shortcut on, if it is not far.
    fn follow(self, near: u64, key: Key) -> Option<u64> {
        let mut offset = near;
        for _ in 0..LONGEST_WALK {
            match self.checked(offset) {
                Some(node) if Key::from_node(node).is_before(key) => {
                    offset = node.next(0).load(Ordering::Acquire) & !MARK;
                }
                _ => return Some(offset),
            }
        }
        None
    }

    /// The first node at or after the key, without touching anything.
    fn seek(self, key: Key) -> u64 {
        let mut before: Option<Node<'a>> = None;
        let mut steps = 0;
        let mut offset = 0;
        for level in (0..LEVELS).rev() {
            loop {
                let link = before.map_or_else(|| self.head(level), |node| node.next(level));
                offset = link.load(Ordering::Acquire) & !MARK;
                match self.checked(offset) {
                    Some(node) if Key::from_node(node).is_before(key) && steps < 100_000 => {
                        before = Some(node);
                        steps += 1;
                    }
                    _ => break,
                }
            }
        }
        offset
    }

    /// The node at an offset that may be garbage.
    fn checked(self, offset: u64) -> Option<Node<'a>> {
        let offset = usize::try_from(offset).ok()?;
        let fits =
            offset >= header::BLOCKS && offset + crate::block::TOWER + LEVELS < self.words.len();
        fits.then_some(Node {
            words: self.words,
            offset,
        })
    }
}
