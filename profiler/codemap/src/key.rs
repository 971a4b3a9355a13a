//! Places in the order of the skip list.

use crate::block::Node;

/// A place in the order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key {
    pub(crate) start: u64,
    load_time: u64,
    offset: usize,
}

impl Key {
    /// Before every record that starts at or below `address`.
    pub(crate) fn at_address(address: u64) -> Self {
        Self {
            start: address,
            load_time: u64::MAX,
            offset: usize::MAX,
        }
    }

    pub(crate) fn from_node(node: Node<'_>) -> Self {
        Self {
            start: node.start(),
            load_time: node.load_time(),
            offset: node.offset,
        }
    }

    pub(crate) fn is_before(self, other: Self) -> bool {
        (self.start, self.load_time, self.offset) > (other.start, other.load_time, other.offset)
    }
}
