//! The plan of one query with the cost of each operator: what `unfuse plan` answers.

mod text;

use schemars::JsonSchema;
use serde::Serialize;

use crate::model::{HotLine, Node, QueryDetail, QuerySummary, Range, Wait};
use crate::words::shell;
use crate::{Cost, Report, ReportError};

pub use text::render;

/// A query's plan. Times are seconds, shares are parts of the query's CPU time, 0 to 1.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// Spark application id.
    pub app: String,
    /// SQL execution id; none for work outside queries.
    pub query: Option<i64>,
    /// Its name in one line.
    pub name: String,
    /// Start, ms since the epoch.
    pub started_ms: Option<i64>,
    /// Time from its start to its end; none if it did not end.
    pub wall_s: Option<f64>,
    /// CPU time of all its samples.
    pub cpu_s: f64,
    /// Time that its tasks waited; none if waits were not recorded.
    pub wait_s: Option<f64>,
    /// Why it failed.
    pub error: Option<String>,
    /// The operators, parents before children.
    pub nodes: Vec<PlanNode>,
    /// Work that no operator does.
    pub headings: Vec<Heading>,
}

/// An operator of the plan.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PlanNode {
    /// Its number in the plan.
    pub node_id: i32,
    /// The number of its parent; none for the root.
    pub parent_id: Option<i32>,
    /// Its name.
    pub operator: String,
    /// The operator as the plan prints it.
    pub detail: String,
    /// Whether it only passes rows on. The text leaves such nodes out.
    pub passes: bool,
    /// The codegen stage that it is fused into.
    pub codegen_stage: Option<i32>,
    /// Stages in which it has samples or waits.
    pub stages: Vec<i32>,
    /// Cost of its own work.
    #[serde(flatten)]
    pub own: Share,
    /// CPU time of it and all operators below it.
    pub total_cpu_s: f64,
    /// Rows that it put out.
    pub rows: Option<i64>,
    /// Rows that it got.
    pub rows_in: Option<i64>,
    /// Its own CPU time for each row that it got, or that it put out if it got none, ns.
    pub ns_per_row: Option<f64>,
    /// The lines with most of its own CPU time.
    pub lines: Vec<Line>,
}

/// Work that no operator does.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Heading {
    /// What it is.
    pub name: String,
    /// Its cost.
    #[serde(flatten)]
    pub own: Share,
}

/// CPU time and waits.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Share {
    /// CPU time.
    pub cpu_s: f64,
    /// Number of samples.
    pub samples: u64,
    /// Share of the query's CPU time.
    pub share: f64,
    /// Lower bound of the share.
    pub share_low: f64,
    /// Upper bound of the share.
    pub share_high: f64,
    /// Time of its waits.
    pub wait_s: f64,
}

/// A line of code.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Line {
    /// File and line.
    pub place: String,
    /// For generated code the text of the line, else the method.
    pub text: String,
    /// The method called from the line that has most of its samples, if it is not the line itself.
    pub callee: Option<String>,
    /// CPU time on the line.
    pub cpu_s: f64,
    /// Share of the query's CPU time.
    pub share: f64,
}

impl Answer {
    /// The plans of the queries with the most CPU time, at most `limit`; with `query` those with this execution id.
    ///
    /// # Errors
    /// If the profile has no such query, or no query at all.
    pub fn of_report(
        report: &Report<'_>,
        query: Option<i64>,
        limit: usize,
    ) -> Result<Vec<Self>, ReportError> {
        let summary = report.summary();
        let asked = |one: &QuerySummary| match query {
            Some(_) => one.query == query,
            // Work outside queries has no plan; the queries with most CPU time are first.
            None => one.query.is_some(),
        };
        let answers: Vec<Self> = summary
            .queries
            .iter()
            .enumerate()
            .filter(|(_, one)| asked(one))
            .take(limit)
            .map(|(index, one)| {
                let app = &summary.applications[one.app].id;
                Self::new(app, one, report.detail(index))
            })
            .collect();
        if answers.is_empty() {
            return Err(ReportError::Refused(match query {
                Some(query) => format!(
                    "there is no query {query}; `unfuse top {} --by query` lists those with samples",
                    shell(&summary.profile)
                ),
                None => format!("{} has no SQL query, so there is no plan", summary.profile),
            }));
        }
        Ok(answers)
    }

    fn new(app: &str, query: &QuerySummary, detail: QueryDetail) -> Self {
        let whole = query.cost.cpu_ns;
        let heading = |heading: crate::model::Heading| Heading {
            own: share(heading.cost, heading.range, &heading.waits, whole),
            name: heading.name,
        };
        let ids: Vec<i32> = detail.nodes.iter().map(|node| node.id).collect();
        let node = |node: Node| PlanNode {
            node_id: node.id,
            parent_id: node.parent.map(|parent| ids[parent]),
            own: share(node.own, node.own_range, &node.waits, whole),
            operator: node.operator,
            detail: node.detail,
            passes: node.passes,
            codegen_stage: node.codegen_stage,
            stages: node.stages,
            total_cpu_s: seconds(node.total.cpu_ns),
            rows: node.rows,
            rows_in: node.rows_in,
            ns_per_row: node.ns_per_row_in.or(node.ns_per_row_out).map(|row| row.ns),
            lines: node
                .hot_lines
                .into_iter()
                .map(|one| line(one, whole))
                .collect(),
        };
        Self {
            app: app.to_owned(),
            query: query.query,
            name: query.name.clone(),
            started_ms: query.started_ms,
            wall_s: query.duration_ms.map(|ms| ms as f64 / 1e3),
            cpu_s: seconds(whole),
            wait_s: detail.waiting_ns.map(seconds),
            error: query.error.clone(),
            nodes: detail.nodes.into_iter().map(node).collect(),
            headings: detail.headings.into_iter().map(heading).collect(),
        }
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn part(ns: u64, whole: u64) -> f64 {
    ns as f64 / whole.max(1) as f64
}

fn share(cost: Cost, range: Range, waits: &[Wait], whole: u64) -> Share {
    Share {
        cpu_s: seconds(cost.cpu_ns),
        samples: cost.samples,
        share: part(cost.cpu_ns, whole),
        share_low: range[0],
        share_high: range[1],
        wait_s: seconds(
            waits
                .iter()
                .fold(0, |sum, wait| sum.saturating_add(wait.ns)),
        ),
    }
}

fn line(line: HotLine, whole: u64) -> Line {
    Line {
        cpu_s: seconds(line.cost.cpu_ns),
        share: part(line.cost.cpu_ns, whole),
        place: line.place,
        text: line.text,
        callee: line.callee,
    }
}
