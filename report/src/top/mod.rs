//! `unfuse top`: totals with the names of their queries, their numbers of runs, and the cost of a row.

mod text;

use std::collections::{BTreeMap, HashMap, HashSet};

use schemars::JsonSchema;
use serde::Serialize;
use unfuse_format::ExecutionId;
use unfuse_postprocess::{
    By, Evidence, Operator, Profile, QueryFamily, Selection, Time, Total, Totals, families,
};

use crate::rows::{Rows, values_of};

/// A table and data on its queries.
#[derive(Debug)]
pub struct Top {
    totals: Totals,
    by: By,
    time: Time,
    families: HashMap<ExecutionId, QueryFamily>,
    rows: HashMap<ExecutionId, BTreeMap<i32, NodeRows>>,
}

/// Rows of a plan node.
#[derive(Debug, Clone, Copy, Default)]
struct NodeRows {
    put: Option<i64>,
    got: Option<i64>,
}

/// A row for `--json`: an operator, or another key of the sum, in one run of a query.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TopRow<'a> {
    #[serde(flatten)]
    total: &'a Total,
    /// The name of the query.
    query_name: Option<&'a str>,
    /// Runs of the same query in the profile, this one included.
    runs: Option<usize>,
    /// Rows that the operator output.
    rows: Option<i64>,
    /// Rows that it got.
    rows_in: Option<i64>,
    /// CPU time for each row that it output, ns.
    ns_per_row: Option<f64>,
    /// CPU time for each row that it got, ns.
    ns_per_row_in: Option<f64>,
}

/// An operator or heading over all runs of its query.
#[derive(Debug, Clone)]
struct FamilyRow<'a> {
    /// Its row with the most time.
    first: &'a Total,
    family: Option<&'a QueryFamily>,
    /// The queries that it sums.
    queries: HashSet<(&'a str, Option<i64>)>,
    samples: u64,
    cpu_seconds: f64,
    waits: u64,
    waiting_seconds: f64,
    share: f64,
    evidence: Evidence,
    /// Rows that it got or, if none, output in these runs; none if a run does not have the number.
    rows: Option<i64>,
}

impl Top {
    /// Sums a selection.
    pub fn new(profile: &Profile, selection: Selection, by: By) -> Self {
        let totals = Totals::new(profile, selection, by);
        let families = families(profile);
        let mut rows = HashMap::new();
        // Waits without CPU time have no cost for each row.
        if by == By::Operator && selection.time != Time::OffCpu {
            let mut values = values_of(profile);
            for total in totals.rows.iter().filter(|row| row.node_id.is_some()) {
                let Some(id) = execution(total) else { continue };
                let plan = profile.plans.get(&id);
                if let Some(plan) = plan.filter(|_| !rows.contains_key(&id)) {
                    let of = Rows::from_plan(plan, &values.remove(&id).unwrap_or_default());
                    let nodes = plan.nodes.iter().enumerate().map(|(index, node)| {
                        let works = !Operator::from_name(&node.operator).passes;
                        let [put, got] =
                            [of.out[index], of.got[index]].map(|rows| rows.filter(|_| works));
                        (node.id, NodeRows { put, got })
                    });
                    rows.insert(id, nodes.collect());
                }
            }
        }
        Self {
            totals,
            by,
            time: selection.time,
            families,
            rows,
        }
    }

    /// The rows for `--json`.
    pub fn rows(&self) -> Vec<TopRow<'_>> {
        let row = |total| {
            let family = self.family(total);
            let NodeRows { put, got } = self.node_rows(total);
            let ns = total.cpu_seconds * 1e9;
            let per = |rows: Option<i64>| rows.filter(|n| *n > 0).map(|n| ns / n as f64);
            TopRow {
                total,
                query_name: family.map(|family| family.name.as_str()),
                runs: family.map(|family| family.runs),
                rows: put,
                rows_in: got,
                ns_per_row: per(put),
                ns_per_row_in: per(got),
            }
        };
        self.totals.rows.iter().map(row).collect()
    }

    /// The table as text, at most `limit` rows. Operators have one row for all runs of their query, unless `runs` is
    /// set; other keys have one row for each run.
    pub fn render(&self, runs: bool, limit: usize) -> String {
        if self.by == By::Operator && !runs {
            text::render_families(self, limit)
        } else {
            text::render(&self.totals, self.by, self.time, limit)
        }
    }

    fn family(&self, total: &Total) -> Option<&QueryFamily> {
        self.families.get(&execution(total)?)
    }

    fn node_rows(&self, total: &Total) -> NodeRows {
        let of = || {
            let nodes = self.rows.get(&execution(total)?)?;
            nodes.get(&total.node_id?).copied()
        };
        of().unwrap_or_default()
    }

    /// The runs of each family in the table, those with the largest rows first.
    fn runs(&self) -> HashMap<usize, Vec<i64>> {
        let mut runs: HashMap<usize, Vec<i64>> = HashMap::new();
        let mut known = HashSet::new();
        for total in self.totals.rows.iter().filter(|row| row.share > 0.0) {
            if let (Some(family), Some(query)) = (self.family(total), total.query)
                && known.insert((total.app.as_str(), query))
            {
                runs.entry(family.number).or_default().push(query);
            }
        }
        runs
    }

    /// The rows with all runs of a query merged, largest share first.
    fn family_rows(&self) -> Vec<FamilyRow<'_>> {
        type Key<'a> = (
            Option<usize>,
            &'a str,
            Option<i32>,
            &'a str,
            Option<&'static str>,
        );
        let mut positions: HashMap<Key<'_>, usize> = HashMap::new();
        let mut rows: Vec<FamilyRow<'_>> = Vec::new();
        for total in &self.totals.rows {
            let family = self.family(total);
            let number = family.map(|family| family.number);
            // Work outside queries belongs to its application.
            let app = if number.is_none() {
                total.app.as_str()
            } else {
                ""
            };
            let key = (
                number,
                app,
                total.node_id,
                total.operator.as_str(),
                total.waiting_for,
            );
            let index = *positions.entry(key).or_insert_with(|| {
                rows.push(FamilyRow::new(total, family));
                rows.len() - 1
            });
            rows[index].add(total, self.node_rows(total));
        }
        rows.retain(|row| row.share > 0.0);
        rows.sort_by(|a, b| b.share.total_cmp(&a.share));
        rows
    }
}

impl<'a> FamilyRow<'a> {
    fn new(first: &'a Total, family: Option<&'a QueryFamily>) -> Self {
        Self {
            first,
            family,
            queries: HashSet::new(),
            samples: 0,
            cpu_seconds: 0.0,
            waits: 0,
            waiting_seconds: 0.0,
            share: 0.0,
            evidence: Evidence::default(),
            rows: Some(0),
        }
    }

    fn add(&mut self, total: &'a Total, rows: NodeRows) {
        self.samples = self.samples.saturating_add(total.samples);
        self.cpu_seconds += total.cpu_seconds;
        self.waits = self.waits.saturating_add(total.waits);
        self.waiting_seconds += total.waiting_seconds;
        self.share += total.share;
        self.evidence.add_all(total.evidence);
        // A node in several stages counts its rows once.
        if self.queries.insert((&total.app, total.query)) {
            let rows = rows.got.or(rows.put);
            self.rows = self.rows.zip(rows).map(|(a, b)| a.saturating_add(b));
        }
    }

    /// CPU time for each row, ns.
    fn ns_per_row(&self) -> Option<f64> {
        let rows = self.rows.filter(|rows| *rows > 0)?;
        Some(self.cpu_seconds * 1e9 / rows as f64)
    }
}

fn execution(total: &Total) -> Option<ExecutionId> {
    Some(ExecutionId::new(&total.app, total.query?))
}
