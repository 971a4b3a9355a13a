//! Exports the graph as JSON, GraphML or Cypher.

use std::fmt::Write;

use serde::Serialize;
use unfuse_postprocess::plain;

use super::{Edge, Graph, Node, Note};
use crate::QueryId;

/// The graph with its notes.
#[derive(Serialize)]
struct ExportedGraph<'a> {
    nodes: &'a [Node],
    edges: &'a [Edge],
    capacities: &'a [Note],
    notes: &'a [String],
}

impl Graph {
    /// JSON: `nodes`, `edges` (by index in `nodes`), `capacities` ([`Graph::notes`]) and `notes`, sentences for users.
    pub fn to_json(&self, notes: &[String]) -> String {
        let told = ExportedGraph {
            nodes: &self.nodes,
            edges: &self.edges,
            capacities: &self.notes,
            notes,
        };
        serde_json::to_string_pretty(&told).expect("maps have integer keys and numbers are finite")
    }

    /// GraphML with an edge for each victim: values are by victim, and GraphML has no maps.
    ///
    /// Vertices have level, label, and `seconds` and `responsibility` summed over victims; edges have their victim.
    pub fn to_graphml(&self) -> String {
        let mut xml = String::from(concat!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n",
            "<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n",
            "  <key id=\"level\" for=\"node\" attr.name=\"level\" attr.type=\"int\"/>\n",
            "  <key id=\"label\" for=\"node\" attr.name=\"label\" attr.type=\"string\"/>\n",
            "  <key id=\"bc\" for=\"node\" attr.name=\"seconds\" attr.type=\"double\"/>\n",
            "  <key id=\"dor\" for=\"node\" attr.name=\"responsibility\" attr.type=\"double\"/>\n",
            "  <key id=\"victim\" for=\"edge\" attr.name=\"victim\" attr.type=\"long\"/>\n",
            "  <key id=\"flow\" for=\"edge\" attr.name=\"seconds\" attr.type=\"double\"/>\n",
            "  <key id=\"if\" for=\"edge\" attr.name=\"factor\" attr.type=\"double\"/>\n",
            "  <graph id=\"contention\" edgedefault=\"directed\">\n",
        ));
        for (index, node) in self.nodes.iter().enumerate() {
            let (seconds, responsibility) = totals(node);
            let (level, label) = (node.key.level(), plain::xml(&node.label));
            line(
                &mut xml,
                format_args!(
                    "    <node id=\"n{index}\"><data key=\"level\">{level}</data><data key=\"label\">{label}</data><data key=\"bc\">{seconds}</data><data key=\"dor\">{responsibility}</data></node>"
                ),
            );
        }
        for (edge, victim, seconds, factor) in self.edges.iter().flat_map(flows) {
            let (from, to) = (edge.from.0, edge.to.0);
            line(
                &mut xml,
                format_args!(
                    "    <edge source=\"n{from}\" target=\"n{to}\"><data key=\"victim\">{}</data><data key=\"flow\">{seconds}</data><data key=\"if\">{factor}</data></edge>",
                    victim.0
                ),
            );
        }
        xml.push_str("  </graph>\n</graphml>\n");
        xml
    }

    /// Cypher that creates the graph in Neo4j: one statement in each line, to be run in one transaction.
    ///
    /// Vertices are `:Contention` with the property `node` as their key; edges are `:IMPACTS`, one for each victim.
    pub fn to_cypher(&self) -> String {
        let mut cypher = String::new();
        for (index, node) in self.nodes.iter().enumerate() {
            let (seconds, responsibility) = totals(node);
            let (level, label) = (node.key.level(), cypher_text(&node.label));
            line(
                &mut cypher,
                format_args!(
                    "CREATE (:Contention {{node: {index}, level: {level}, label: {label}, seconds: {seconds:?}, responsibility: {responsibility:?}}});"
                ),
            );
        }
        for (edge, victim, seconds, factor) in self.edges.iter().flat_map(flows) {
            let (from, to, victim) = (edge.from.0, edge.to.0, victim.0);
            line(
                &mut cypher,
                format_args!(
                    "MATCH (a:Contention {{node: {from}}}), (b:Contention {{node: {to}}}) CREATE (a)-[:IMPACTS {{victim: {victim}, seconds: {seconds:?}, factor: {factor:?}}}]->(b);"
                ),
            );
        }
        cypher
    }
}

fn totals(node: &Node) -> (f64, f64) {
    let sum = |of: fn(&super::Impact) -> f64| {
        node.impact
            .values()
            .map(of)
            .fold(0.0, |sum, value| sum + value)
    };
    (
        sum(|impact| impact.seconds),
        sum(|impact| impact.responsibility),
    )
}

fn flows(edge: &Edge) -> impl Iterator<Item = (&Edge, QueryId, f64, f64)> {
    edge.flow
        .iter()
        .map(move |(victim, flow)| (edge, *victim, flow.seconds, flow.factor))
}

fn line(text: &mut String, line: std::fmt::Arguments) {
    writeln!(text, "{line}").expect("writing to a string");
}

/// A Cypher string literal on one line, in single quotes.
fn cypher_text(text: &str) -> String {
    let mut out = String::from("'");
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\'' => out.push_str("\\'"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => write!(out, "\\u{:04X}", c as u32).expect("writing to a string"),
            c => out.push(c),
        }
    }
    out.push('\'');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_out() {
        assert_eq!(
            cypher_text("it's \\ a\nb\u{1}"),
            "'it\\'s \\\\ a\\nb\\u0001'"
        );
        assert_eq!(
            cypher_text("'}) DETACH DELETE n //"),
            "'\\'}) DETACH DELETE n //'"
        );
    }
}
