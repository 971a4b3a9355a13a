//! Builds the graph from blame: sums for all levels, divided by operator if known.

use std::collections::HashMap;
use std::sync::Arc;

use super::{ByVictim, Edge, Flow, Graph, Impact, Key, Node, NodeIndex};
use crate::operators::{COLLECTION, Operators};
use crate::waits::Victim;
use crate::{Blame, Culprit, Kind, KnownProcess, QueryId, Source, StageId, Workload};

impl Graph {
    /// The graph of the victims whose waits were attributed.
    pub fn from_blame(workload: &Workload, blame: &Blame) -> Graph {
        let mut sums = Sums::default();
        for query in blame.victims() {
            sums.node(Key::Victim(*query), *query, 0.0);
        }
        for stage in &blame.stages {
            sums.stage(*stage, 0.0);
        }
        let mut operators = Operators::new(workload);
        for (victim, sources) in &blame.by_victim {
            sums.paths(&mut operators, *victim, sources);
        }
        let mut graph = sums.graph(workload);
        graph.notes = blame.notes.clone();
        graph.hand_on_responsibility();
        graph
    }
}

/// BC of vertices and edges while they are added, in the order of their first use.
#[derive(Default)]
struct Sums {
    nodes: Vec<(Key, ByVictim<f64>)>,
    edges: Vec<(u32, u32, ByVictim<f64>)>,
    /// Where those are that come more than once: all but causes and what leads to and from them, which are by far the most.
    known_nodes: HashMap<Key, u32, ahash::RandomState>,
    known_edges: HashMap<(u32, u32), u32, ahash::RandomState>,
}

impl Sums {
    fn new_node(&mut self, key: Key, victim: QueryId, seconds: f64) -> u32 {
        let mut impact = ByVictim::default();
        *impact.entry(victim) = seconds;
        self.nodes.push((key, impact));
        (self.nodes.len() - 1) as u32
    }

    fn node(&mut self, key: Key, victim: QueryId, seconds: f64) -> u32 {
        if let Some(index) = self.known_nodes.get(&key) {
            *self.nodes[*index as usize].1.entry(victim) += seconds;
            return *index;
        }
        let index = self.new_node(key.clone(), victim, seconds);
        self.known_nodes.insert(key, index);
        index
    }

    fn new_edge(&mut self, from: u32, to: u32, victim: QueryId, seconds: f64) {
        let mut flow = ByVictim::default();
        *flow.entry(victim) = seconds;
        self.edges.push((from, to, flow));
    }

    fn edge(&mut self, from: u32, to: u32, victim: QueryId, seconds: f64) {
        if let Some(index) = self.known_edges.get(&(from, to)) {
            *self.edges[*index as usize].2.entry(victim) += seconds;
            return;
        }
        self.known_edges.insert((from, to), self.edges.len() as u32);
        self.new_edge(from, to, victim, seconds);
    }

    /// A victim stage with its query.
    fn stage(&mut self, stage: StageId, seconds: f64) -> u32 {
        let query = stage.query;
        let victim = self.node(Key::Victim(query), query, seconds);
        let index = self.node(Key::Stage(stage), query, seconds);
        self.edge(index, victim, query, seconds);
        index
    }

    /// Adds what sources did to one stage in one way on one host, at all levels. To be called once for each of these.
    fn paths(&mut self, operators: &mut Operators<'_>, victim: Victim, sources: &[(Source, f64)]) {
        let (stage, kind, host) = victim;
        let query = stage.query;
        let seconds: f64 = sources.iter().map(|(_, seconds)| seconds).sum();
        let mut effect = self.stage(stage, seconds);
        for key in [
            Key::Resource(stage, kind.resource()),
            Key::Host(stage, kind, host),
        ] {
            let index = self.node(key, query, seconds);
            self.edge(index, effect, query, seconds);
            effect = index;
        }
        for (source, seconds) in sources {
            let cause = self.new_node(Key::Cause(stage, kind, host, *source), query, *seconds);
            self.new_edge(cause, effect, query, *seconds);
            self.causes(operators, (query, kind), (cause, *source), *seconds);
        }
    }

    /// The vertices beyond a cause.
    fn causes(
        &mut self,
        operators: &mut Operators<'_>,
        (victim, kind): (QueryId, Kind),
        (cause, source): (u32, Source),
        seconds: f64,
    ) {
        let culprit = Key::Culprit(source.culprit());
        let Some(by) = source.stage() else {
            let culprit = self.node(culprit, victim, seconds);
            return self.new_edge(culprit, cause, victim, seconds);
        };
        let culprit = self.node(culprit, victim, seconds);
        for (operator, share) in operators.of(source, kind.resource()) {
            let seconds = seconds * share;
            let key = Key::CulpritStage(by, operator.clone());
            let part = self.node(key, victim, seconds);
            self.new_edge(part, cause, victim, seconds);
            self.edge(culprit, part, victim, seconds);
        }
    }

    fn graph(self, workload: &Workload) -> Graph {
        let mut order: Vec<u32> = (0..self.nodes.len() as u32).collect();
        let key = |index: u32| &self.nodes[index as usize].0;
        // Causes, by far the most, are already in order.
        order.sort_by(|a, b| key(*a).cmp(key(*b)));
        let mut places = vec![0; order.len()];
        for (place, index) in (0..).zip(&order) {
            places[*index as usize] = place;
        }
        let flow = |to: u32, victim: &QueryId, seconds: f64| {
            let received = self.nodes[to as usize].1[victim];
            Flow {
                seconds,
                factor: if received > 0.0 {
                    seconds / received
                } else {
                    0.0
                },
            }
        };
        let edges = self.edges.iter().map(|(from, to, flows)| Edge {
            from: NodeIndex(places[*from as usize]),
            to: NodeIndex(places[*to as usize]),
            flow: flows.map(|victim, seconds| flow(*to, victim, *seconds)),
        });
        let mut edges: Vec<Edge> = edges.collect();
        edges.sort_by_key(|edge| (edge.from, edge.to));
        let mut labels = Labels::default();
        let nodes = order.iter().map(|index| {
            let (key, sums) = &self.nodes[*index as usize];
            Node {
                key: key.clone(),
                label: labels.intern(workload, key),
                impact: sums.map(|_, seconds| Impact {
                    seconds: *seconds,
                    responsibility: 0.0,
                }),
            }
        });
        Graph {
            nodes: nodes.collect(),
            edges,
            notes: Vec::new(),
        }
    }
}

/// Labels of sources, shared by many vertices.
#[derive(Default)]
struct Labels(HashMap<Source, Arc<str>>);

impl Labels {
    fn intern(&mut self, workload: &Workload, key: &Key) -> Arc<str> {
        match key {
            Key::Cause(.., source) => {
                let label = self.0.entry(*source);
                Arc::clone(label.or_insert_with(|| label_of(workload, key).into()))
            }
            _ => label_of(workload, key).into(),
        }
    }
}

fn label_of(workload: &Workload, key: &Key) -> String {
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
        Key::Cause(.., Source::Known(KnownProcess::GcFor(id))) => {
            format!("{}: {COLLECTION}", stage(id))
        }
        Key::CulpritStage(id, Some(operator)) => format!("{}: {operator}", stage(id)),
        Key::Cause(.., Source::Known(process)) | Key::Culprit(Culprit::Known(process)) => {
            workload.process_name(*process).to_owned()
        }
        Key::Cause(.., Source::Unknown) | Key::Culprit(Culprit::Unknown) => "Unknown".to_owned(),
    }
}
