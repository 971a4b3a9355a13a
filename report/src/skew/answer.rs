//! The answer as data: what `--json` prints, and what the text and the report's page are made of.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Serialize;
use ts_rs::TS;
use unfuse_format::{ExecutionId, ProfileDir};
use unfuse_postprocess::query_names;
use unfuse_skew::{Finding, Verdict};

use super::advice::advice;
use super::page::Times;
use super::records::Records;

/// Everything that is said.
#[derive(Debug, Serialize, TS)]
#[ts(rename = "Skew")]
pub struct Answer {
    /// Stages that had tasks.
    pub(super) stages: usize,
    /// Of them, those that are skewed.
    pub(super) skewed: usize,
    /// Of them, those that wait for a task that runs still.
    pub(super) hanging: usize,
    /// Of them, those with too few tasks to say.
    pub(super) too_few: usize,
    /// What the skewed stages would save, s.
    pub(super) saved_seconds: f64,
    /// Stages that are skewed or wait for a task that runs still, those first that would save most; or the one that was asked for.
    pub(super) findings: Vec<Told>,
    /// What its records say, where they were followed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub(super) records: Option<Records>,
    /// What is missing or doubtful.
    pub(super) notes: Vec<String>,
    /// Findings beyond those that are told.
    #[serde(skip)]
    pub(super) untold: usize,
    /// Whether one stage was asked for.
    #[serde(skip)]
    pub(super) one_stage: bool,
    /// Slow tasks to tell of each stage in the text.
    #[serde(skip)]
    pub(super) top: usize,
}

/// A stage with what to do about it.
#[derive(Debug, Serialize, TS)]
#[ts(rename = "SkewedStage")]
pub(super) struct Told {
    #[serde(flatten)]
    pub(super) finding: Finding,
    /// What to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub(super) next: Option<String>,
    /// What all its tasks took; only for the page, which draws it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub(super) times: Option<Times>,
}

impl Answer {
    /// Of findings, those first that would save most.
    pub fn new(
        findings: Vec<Finding>,
        records: Option<Records>,
        top: usize,
        one_stage: bool,
        notes: Vec<String>,
    ) -> Self {
        let skewed = findings.iter().filter(|finding| is_skewed(finding));
        let hanging = findings.iter().filter(|finding| is_hanging(finding));
        let is_told = |finding: &Finding| one_stage || is_skewed(finding) || is_hanging(finding);
        let to_tell = findings.iter().filter(|finding| is_told(finding)).count();
        Self {
            stages: findings.len(),
            skewed: skewed.clone().count(),
            hanging: hanging.count(),
            untold: to_tell.saturating_sub(top.max(1)),
            too_few: findings
                .iter()
                .filter(|finding| finding.verdict == Verdict::TooFew)
                .count(),
            saved_seconds: skewed.map(|finding| finding.saved_ms / 1e3).sum(),
            findings: findings
                .into_iter()
                .filter(is_told)
                .take(top.max(1))
                .map(|finding| Told {
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
        let id = |told: &Told| Some(ExecutionId::new(&told.finding.app, told.finding.sql?));
        let wanted: BTreeSet<ExecutionId> = self.findings.iter().filter_map(id).collect();
        let names = ProfileDir::open(root).and_then(|dir| query_names(&dir, &wanted));
        let Ok(names) = names else { return };
        for told in &mut self.findings {
            if let Some(name) = id(told).and_then(|id| names.get(&id)) {
                told.finding.description.clone_from(name);
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
