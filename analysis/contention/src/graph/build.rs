//! From blame to the graph: sums up the levels, shared out by operator where that is known.

use std::collections::BTreeMap;

use super::{Edge, Flow, Graph, Impact, Key, Node, NodeIndex};
use crate::blame::{Seconds, distribute};
use crate::{Culprit, HostId, Kind, Options, QueryId, Resource, Source, StageId, Workload};

impl Graph {
    /// Builds the graph of the victims that `options` names.
    pub fn build(workload: &Workload, options: &Options) -> Graph {
        let stages = options.victim_stages(workload);
        let mut sums = Sums::default();
        for query in options.victims_of(workload) {
            sums.node(Key::Victim(query), query, 0.0);
        }
        for stage in &stages {
            sums.edge(
                Key::Stage(*stage),
                Key::Victim(stage.query),
                stage.query,
                0.0,
            );
        }
        let Seconds { by_victim, notes } = distribute(workload, &stages, options);
        let operators = operators(workload);
        for ((stage, kind, host), sources) in by_victim {
            for (source, seconds) in sources {
                sums.path(&operators, (stage, kind, host), source, seconds);
            }
        }
        let mut graph = sums.graph(workload);
        graph.notes = notes;
        graph.hand_on_responsibility();
        graph
    }
}

/// Shares of each stage's CPU by operator; `None` is what no operator is known to have taken.
type Operators = BTreeMap<StageId, Vec<(Option<String>, f64)>>;

fn operators(workload: &Workload) -> Operators {
    let mut operators = Operators::new();
    for row in &workload.tables().operators {
        operators
            .entry(row.stage)
            .or_default()
            .push((Some(row.operator.clone()), row.share));
    }
    for shares in operators.values_mut() {
        let sum: f64 = shares.iter().map(|(_, share)| share).sum();
        // Shares are allowed to sum to a rounding above 1.
        shares
            .iter_mut()
            .for_each(|(_, share)| *share /= sum.max(1.0));
        if sum < 1.0 {
            shares.push((None, 1.0 - sum));
        }
    }
    operators
}

/// BC of vertices and of edges as they add up.
#[derive(Default)]
struct Sums {
    nodes: BTreeMap<Key, BTreeMap<QueryId, f64>>,
    edges: BTreeMap<(Key, Key), BTreeMap<QueryId, f64>>,
}

impl Sums {
    fn node(&mut self, key: Key, victim: QueryId, seconds: f64) {
        *self
            .nodes
            .entry(key)
            .or_default()
            .entry(victim)
            .or_default() += seconds;
    }

    /// Adds to the cause and to the edge; the effect has it already.
    fn edge(&mut self, from: Key, to: Key, victim: QueryId, seconds: f64) {
        self.node(from.clone(), victim, seconds);
        *self
            .edges
            .entry((from, to))
            .or_default()
            .entry(victim)
            .or_default() += seconds;
    }

    /// Adds what one source did to one stage in one way on one host, at all levels.
    fn path(
        &mut self,
        operators: &Operators,
        victim: (StageId, Kind, HostId),
        source: Source,
        seconds: f64,
    ) {
        let (stage, kind, host) = victim;
        let query = stage.query;
        let levels = [
            Key::Victim(query),
            Key::Stage(stage),
            Key::Resource(stage, kind.resource()),
            Key::Host(stage, kind, host),
            Key::Cause(stage, kind, host, source),
        ];
        self.node(levels[0].clone(), query, seconds);
        for pair in levels.windows(2) {
            self.edge(pair[1].clone(), pair[0].clone(), query, seconds);
        }
        let [.., cause] = levels;
        let culprit = Key::Culprit(source.culprit());
        let Source::Stage(by) = source else {
            return self.edge(culprit, cause, query, seconds);
        };
        let whole = [(None, 1.0)];
        let shares = match operators.get(&by) {
            Some(shares) if kind.resource() == Resource::Cpu => shares.as_slice(),
            _ => &whole,
        };
        for (operator, share) in shares.iter().filter(|(_, share)| *share > 0.0) {
            let part = Key::CulpritStage(by, operator.clone());
            self.edge(part.clone(), cause.clone(), query, seconds * share);
            self.edge(culprit.clone(), part, query, seconds * share);
        }
    }

    fn graph(self, workload: &Workload) -> Graph {
        let index: BTreeMap<&Key, NodeIndex> = self
            .nodes
            .keys()
            .enumerate()
            .map(|(at, key)| (key, NodeIndex(at as u32)))
            .collect();
        let flow = |to: &Key, victim: &QueryId, seconds: f64| {
            let received = self.nodes[to][victim];
            Flow {
                seconds,
                factor: if received > 0.0 {
                    seconds / received
                } else {
                    0.0
                },
            }
        };
        let edges = self.edges.iter().map(|((from, to), flows)| Edge {
            from: index[from],
            to: index[to],
            flow: flows
                .iter()
                .map(|(victim, seconds)| (*victim, flow(to, victim, *seconds)))
                .collect(),
        });
        let edges = edges.collect();
        let nodes = self.nodes.iter().map(|(key, sums)| Node {
            key: key.clone(),
            label: label(workload, key),
            impact: sums
                .iter()
                .map(|(victim, s)| {
                    (
                        *victim,
                        Impact {
                            seconds: *s,
                            responsibility: 0.0,
                        },
                    )
                })
                .collect(),
        });
        Graph {
            nodes: nodes.collect(),
            edges,
            notes: Vec::new(),
        }
    }
}

fn label(workload: &Workload, key: &Key) -> String {
    let query = |id: &QueryId| {
        workload
            .query(*id)
            .map_or_else(String::new, |query| query.label.clone())
    };
    let stage = |id: &StageId| format!("{} {}", query(&id.query), id.name());
    match key {
        Key::Victim(id) | Key::Culprit(Culprit::Query(id)) => query(id),
        Key::Stage(id) | Key::CulpritStage(id, None) | Key::Cause(.., Source::Stage(id)) => {
            stage(id)
        }
        Key::Resource(_, resource) => resource.name().to_owned(),
        Key::Host(_, kind, host) => format!("{} on {}", kind.name(), workload.host_name(*host)),
        Key::CulpritStage(id, Some(operator)) => format!("{}: {operator}", stage(id)),
        Key::Cause(.., Source::Known(process)) | Key::Culprit(Culprit::Known(process)) => {
            process.name().to_owned()
        }
        Key::Cause(.., Source::Unknown) | Key::Culprit(Culprit::Unknown) => "Unknown".to_owned(),
    }
}
