//! Plans of SQL executions, which are trees as deep as the query.

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::text::Text;
use crate::event::PlanNode;

/// Nodes below this depth are left out: parsing takes stack for each level.
const DEEPEST: usize = 500;
/// Nodes of a plan; more are left out. Plans of real queries have some hundreds.
const MOST_NODES: usize = 20_000;

/// The nodes of a plan in pre-order.
pub(super) struct Plan(pub(super) Vec<PlanNode>);

impl<'de> Deserialize<'de> for Plan {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut nodes = Vec::new();
        let root = Node {
            nodes: &mut nodes,
            parent: None,
            depth: 0,
        };
        root.deserialize(deserializer)?;
        Ok(Self(nodes))
    }
}

/// A node that is to be read, with its subtree.
struct Node<'a> {
    nodes: &'a mut Vec<PlanNode>,
    parent: Option<usize>,
    depth: usize,
}

#[derive(Deserialize)]
#[serde(field_identifier)]
enum Field {
    #[serde(rename = "nodeName")]
    Name,
    #[serde(rename = "simpleString")]
    Detail,
    #[serde(rename = "children")]
    Children,
    #[serde(rename = "metrics")]
    Metrics,
    #[serde(other)]
    Other,
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = ();

    fn expecting(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("a node of a plan")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let at = self.nodes.len();
        self.nodes.push(PlanNode {
            parent: self.parent,
            ..PlanNode::default()
        });
        while let Some(field) = map.next_key()? {
            match field {
                Field::Name => self.nodes[at].name = map.next_value::<Text>()?.into_owned(),
                Field::Detail => self.nodes[at].detail = map.next_value::<Text>()?.into_owned(),
                Field::Metrics => self.nodes[at].metrics = map.next_value()?,
                Field::Children if self.depth < DEEPEST => {
                    map.next_value_seed(Children(Node {
                        nodes: self.nodes,
                        parent: Some(at),
                        depth: self.depth + 1,
                    }))?;
                }
                Field::Children | Field::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// The children of a node, as the first of them would be read.
struct Children<'a>(Node<'a>);

impl<'de> DeserializeSeed<'de> for Children<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Children<'_> {
    type Value = ();

    fn expecting(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("nodes of a plan")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Node {
            nodes,
            parent,
            depth,
        } = self.0;
        loop {
            let is_more = if nodes.len() < MOST_NODES {
                let node = Node {
                    nodes: &mut *nodes,
                    parent,
                    depth,
                };
                list.next_element_seed(node)?.is_some()
            } else {
                list.next_element::<IgnoredAny>()?.is_some()
            };
            if !is_more {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Vec<PlanNode> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        deserializer.disable_recursion_limit();
        Plan::deserialize(&mut deserializer).expect("a plan").0
    }

    #[test]
    fn nodes_are_in_pre_order_whatever_the_order_of_their_fields() {
        let nodes = parse(
            r#"{"children":[{"nodeName":"B","children":[{"nodeName":"C"}]},{"nodeName":"D"}],"nodeName":"A","simpleString":"A [x]","metadata":{"k":[1]},
                "metrics":[{"name":"number of output rows","accumulatorId":7,"metricType":"sum"}]}"#,
        );
        let found: Vec<_> = nodes
            .iter()
            .map(|node| (&*node.name, node.parent))
            .collect();
        assert_eq!(
            found,
            [("A", None), ("B", Some(0)), ("C", Some(1)), ("D", Some(0))]
        );
        assert_eq!(nodes[0].detail, "A [x]");
        assert_eq!(nodes[0].metrics[0].id, 7);
    }

    #[test]
    fn a_deep_plan_is_cut() {
        let levels = 100_000;
        let text = format!(
            "{}{}",
            r#"{"nodeName":"A","children":["#.repeat(levels),
            "]}".repeat(levels)
        );
        assert_eq!(parse(&text).len(), DEEPEST + 1);
    }

    #[test]
    fn a_wide_plan_is_cut() {
        let text = format!(r#"{{"children":[{}{{}}]}}"#, "{},".repeat(1 << 20));
        assert_eq!(parse(&text).len(), MOST_NODES);
    }
}
