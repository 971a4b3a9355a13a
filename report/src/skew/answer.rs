//! The answer as data, which `--json` prints, and from which the text and the report's page are made.

use std::collections::BTreeSet;
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;
use ts_rs::TS;
use unfuse_format::{ExecutionId, ProfileDir};
use unfuse_postprocess::query_names;
use unfuse_skew::{Finding, Verdict};

use super::advice::advice;
use super::page::Times;
use super::records::Records;

/// The whole answer.
#[derive(Debug, Serialize, TS, JsonSchema)]
#[ts(rename = "Skew")]
pub struct Answer {
    /// Stages that had tasks.
    pub(super) stages: usize,
    /// Number of skewed stages.
    pub(super) skewed: usize,
    /// Number of stages that wait for a task that still runs.
    pub(super) hanging: usize,
    /// Number of stages with too few tasks to judge.
    pub(super) too_few: usize,
    /// Time that the skewed stages would save, s.
    pub(super) saved_seconds: f64,
    /// Stages that are skewed or wait for a task that still runs, with the largest saving first; or the requested
    /// stage.
    pub(super) findings: Vec<SkewedStage>,
    /// The slow records, if records were traced.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub(super) records: Option<Records>,
    /// Notes on missing or doubtful data.
    pub(super) notes: Vec<String>,
    /// Number of findings that were left out.
    #[serde(skip)]
    pub(super) omitted: usize,
    /// Whether the question is about one stage.
    #[serde(skip)]
    pub(super) one_stage: bool,
    /// Number of slow tasks that the text shows for each stage.
    #[serde(skip)]
    pub(super) top: usize,
}

/// A stage and what to do about it.
#[derive(Debug, Serialize, TS, JsonSchema)]
pub(super) struct SkewedStage {
    #[serde(flatten)]
    pub(super) finding: Finding,
    /// What to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub(super) next: Option<String>,
    /// The times of all its tasks; only for the page, which draws them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub(super) times: Option<Times>,
}

impl Answer {
    /// Makes the answer from findings, which are sorted with the largest saving first.
    pub fn new(
        findings: Vec<Finding>,
        records: Option<Records>,
        top: usize,
        one_stage: bool,
        notes: Vec<String>,
    ) -> Self {
        let skewed = findings.iter().filter(|finding| is_skewed(finding));
        let hanging = findings.iter().filter(|finding| is_hanging(finding));
        let is_shown = |finding: &Finding| one_stage || is_skewed(finding) || is_hanging(finding);
        let shown = findings.iter().filter(|finding| is_shown(finding)).count();
        Self {
            stages: findings.len(),
            skewed: skewed.clone().count(),
            hanging: hanging.count(),
            omitted: shown.saturating_sub(top.max(1)),
            too_few: findings
                .iter()
                .filter(|finding| finding.verdict == Verdict::TooFew)
                .count(),
            saved_seconds: skewed.map(|finding| finding.saved_ms / 1e3).sum(),
            findings: findings
                .into_iter()
                .filter(is_shown)
                .take(top.max(1))
                .map(|finding| SkewedStage {
                    next: advice(&finding, records.is_some()),
                    finding,
                    times: None,
                })
                .collect(),
            records,
            notes,
            one_stage,
            top,
        }
    }
}

impl Answer {
    /// Calls queries as `unfuse top` does, where the profile at `root` can be read.
    pub fn name_queries(&mut self, root: &Path) {
        let id =
            |stage: &SkewedStage| Some(ExecutionId::new(&stage.finding.app, stage.finding.sql?));
        let wanted: BTreeSet<ExecutionId> = self.findings.iter().filter_map(id).collect();
        let names = ProfileDir::open(root).and_then(|dir| query_names(&dir, &wanted));
        let Ok(names) = names else { return };
        for stage in &mut self.findings {
            if let Some(name) = id(stage).and_then(|id| names.get(&id)) {
                stage.finding.description.clone_from(name);
            }
        }
    }
}

pub(super) fn is_skewed(finding: &Finding) -> bool {
    matches!(finding.verdict, Verdict::Skewed(_))
}

fn is_hanging(finding: &Finding) -> bool {
    !finding.hanging.is_empty()
}
