//! DOR: the sum over all paths to the victim of the product of IF along each (section 4.2).

use super::{Graph, Key};

impl Graph {
    /// Computes all DORs and returns the number of (edge, victim) pairs visited: each exactly once.
    ///
    /// Edges are in the order of their causes, and causes in the order of their levels, so when an edge is visited, all
    /// paths from its effect to the victim are already summed.
    pub(super) fn hand_on_responsibility(&mut self) -> usize {
        let mut visited = 0;
        for node in &mut self.nodes {
            if let Key::Victim(_) = node.key {
                node.impact
                    .values_mut()
                    .for_each(|impact| impact.responsibility = 1.0);
            }
        }
        for edge in &self.edges {
            for (victim, flow) in edge.flow.iter() {
                visited += 1;
                let passed =
                    flow.factor * self.nodes[edge.to.0 as usize].impact[victim].responsibility;
                let cause = &mut self.nodes[edge.from.0 as usize];
                cause.impact.entry(*victim).responsibility += passed;
            }
        }
        visited
    }

    #[cfg(test)]
    pub(crate) fn visits(&self) -> usize {
        let mut again = self.clone();
        for node in &mut again.nodes {
            node.impact
                .values_mut()
                .for_each(|impact| impact.responsibility = 0.0);
        }
        let visited = again.hand_on_responsibility();
        assert_eq!(&again, self);
        visited
    }
}
