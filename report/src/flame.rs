//! Flame graphs as trees.

use crate::model::{Cost, Flame, FlameKind};

/// A frame: what it is, and which one.
pub(super) type Key = (FlameKind, u32);

#[derive(Default)]
struct TreeNode {
    children: Vec<usize>,
    own: Cost,
    total: Cost,
}

/// Stacks merged from the root.
#[derive(Default)]
pub(super) struct Tree {
    nodes: Vec<TreeNode>,
    keys: Vec<Key>,
    roots: Vec<usize>,
}

impl Tree {
    /// Adds a stack, root first.
    pub(super) fn add(&mut self, stack: impl Iterator<Item = Key>, cost: Cost) {
        let mut index = None;
        for key in stack {
            let next = self.child(index, key);
            self.nodes[next].total.add(cost);
            index = Some(next);
        }
        if let Some(leaf) = index {
            self.nodes[leaf].own.add(cost);
        }
    }

    /// Frames have few different callees, so a linear search is enough.
    fn child(&mut self, parent: Option<usize>, key: Key) -> usize {
        let siblings = match parent {
            Some(parent) => &self.nodes[parent].children,
            None => &self.roots,
        };
        // Stacks are sorted by stage, so the last one is the likeliest.
        let known = siblings
            .iter()
            .rev()
            .find(|index| self.keys[**index] == key);
        if let Some(index) = known {
            return *index;
        }
        let index = self.nodes.len();
        self.nodes.push(TreeNode::default());
        self.keys.push(key);
        match parent {
            Some(parent) => self.nodes[parent].children.push(index),
            None => self.roots.push(index),
        }
        index
    }

    /// Flattens the tree.
    pub(super) fn into_flame(mut self) -> Flame {
        let mut flame = Flame::default();
        let totals: Vec<u64> = self.nodes.iter().map(|node| node.total.cpu_ns).collect();
        let widest_last = |list: &mut Vec<usize>| {
            list.sort_by_key(|index| (totals[*index], std::cmp::Reverse(*index)));
        };
        widest_last(&mut self.roots);
        let mut open: Vec<(usize, u32)> = self.roots.iter().map(|root| (*root, 0)).collect();
        while let Some((index, depth)) = open.pop() {
            let (kind, of) = self.keys[index];
            flame.depth.push(depth);
            flame.kind.push(kind as u8);
            flame.of.push(of);
            flame.cpu_ns.push(self.nodes[index].own.cpu_ns);
            flame.samples.push(self.nodes[index].own.samples);
            let mut children = std::mem::take(&mut self.nodes[index].children);
            widest_last(&mut children);
            open.extend(children.into_iter().map(|child| (child, depth + 1)));
        }
        flame
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(cpu_ns: u64) -> Cost {
        Cost { cpu_ns, samples: 1 }
    }

    #[test]
    fn stacks_share_their_roots_and_wide_ones_come_first() {
        let mut tree = Tree::default();
        let key = |of| (FlameKind::Frame, of);
        tree.add([key(1), key(2)].into_iter(), cost(1));
        tree.add([key(1), key(3)].into_iter(), cost(5));
        tree.add([key(1)].into_iter(), cost(2));
        let flame = tree.into_flame();
        assert_eq!(flame.of, [1, 3, 2]);
        assert_eq!(flame.depth, [0, 1, 1]);
        assert_eq!(flame.cpu_ns, [2, 5, 1]);
    }
}
