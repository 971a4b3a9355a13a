//! Runs of the same query, over several profiles.

use std::collections::BTreeMap;
use unfuse_format::ExecutionId;

use schemars::JsonSchema;
use serde::Serialize;

use crate::fingerprint::{Fingerprint, normalised};
use crate::profile::{Profile, Selection};
use crate::totals::{By, Totals};

/// A query and its runs.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct History {
    /// See [`Fingerprint`].
    pub fingerprint: String,
    /// Its name, see [`crate::query_name()`].
    pub name: String,
    /// Text or call site, from the first run.
    pub description: String,
    /// Oldest first.
    pub runs: Vec<Run>,
}

/// A run of a query: an execution of an application.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Run {
    /// Spark application id.
    pub app: String,
    /// SQL execution id.
    pub query: i64,
    /// Start, ms since the epoch.
    pub started_ms: Option<i64>,
    /// How long it ran, ms; none for a run that did not end.
    pub duration_ms: Option<i64>,
    /// Why it failed.
    pub error: Option<String>,
    /// CPU time of its tasks, s.
    pub cpu_s: f64,
    /// Number of samples.
    pub samples: u64,
    /// CPU time by operator, most first.
    pub operators: Vec<Part>,
}

/// The part of an operator or a heading in a run. The same operator has the same node and name in every run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Part {
    /// Plan node; none for a heading.
    pub node: Option<i32>,
    /// Operator name, or `[heading]`.
    pub operator: String,
    /// The operator as the plan prints it, without the parts that differ between runs.
    pub detail: String,
    /// CPU time, s.
    pub cpu_s: f64,
    /// Time that its threads waited, s; 0 where waits were not recorded.
    pub waiting_s: f64,
}

/// The runs in several profiles by query, most CPU time first.
pub fn histories(profiles: &[Profile]) -> Vec<History> {
    let mut by_fingerprint: BTreeMap<String, History> = BTreeMap::new();
    // If the same application is in two profiles, it counts once.
    let mut runs: BTreeMap<ExecutionId, (Fingerprint, [String; 2], Run)> = BTreeMap::new();
    for profile in profiles {
        runs.extend(self::runs(profile));
    }
    for (_, (fingerprint, [name, description], run)) in runs {
        let fingerprint = fingerprint.to_string();
        by_fingerprint
            .entry(fingerprint.clone())
            .or_insert_with(|| History {
                fingerprint,
                name,
                description,
                runs: Vec::new(),
            })
            .runs
            .push(run);
    }
    let mut histories: Vec<History> = by_fingerprint.into_values().collect();
    for history in &mut histories {
        history.runs.sort_by_key(|run| run.started_ms);
    }
    histories.sort_by(|a, b| b.cpu_s().total_cmp(&a.cpu_s()));
    histories
}

fn runs(profile: &Profile) -> BTreeMap<ExecutionId, (Fingerprint, [String; 2], Run)> {
    let mut runs = BTreeMap::new();
    for (key, execution) in &profile.executions {
        let run = Run {
            app: key.app.clone(),
            query: key.execution,
            started_ms: execution.started_ms,
            duration_ms: execution.duration_ms(),
            error: execution.error.clone().filter(|error| !error.is_empty()),
            cpu_s: 0.0,
            samples: 0,
            operators: Vec::new(),
        };
        let fingerprint = Fingerprint::new(&execution.description, profile.plans.get(key));
        let texts = [profile.query_name(key), execution.description.clone()];
        runs.insert(key.clone(), (fingerprint, texts, run));
    }
    for row in Totals::new(profile, Selection::default(), By::Operator).rows {
        let Some(query) = row.query else { continue };
        let Some((_, _, run)) = runs.get_mut(&ExecutionId::new(row.app, query)) else {
            continue;
        };
        run.cpu_s += row.cpu_seconds;
        run.samples = run.samples.saturating_add(row.samples);
        let part = Part {
            node: row.node_id,
            operator: if row.heading {
                format!("[{}]", row.operator)
            } else {
                row.operator
            },
            detail: normalised(&row.detail),
            cpu_s: row.cpu_seconds,
            waiting_s: row.waiting_seconds,
        };
        match run.operators.iter_mut().find(|known| known.is_same(&part)) {
            // An operator may work in several stages.
            Some(known) => {
                known.cpu_s += part.cpu_s;
                known.waiting_s += part.waiting_s;
            }
            None => run.operators.push(part),
        }
    }
    for (_, _, run) in runs.values_mut() {
        run.operators
            .retain(|part| part.cpu_s > 0.0 || part.waiting_s > 0.0);
        run.operators.sort_by(|a, b| b.cpu_s.total_cmp(&a.cpu_s));
    }
    runs
}

impl Part {
    fn is_same(&self, other: &Self) -> bool {
        self.node == other.node && self.operator == other.operator
    }
}

impl History {
    /// CPU time of all runs, s.
    pub fn cpu_s(&self) -> f64 {
        self.runs.iter().map(|run| run.cpu_s).sum()
    }

    /// The median of the runs' CPU times, s. Failed runs count only if all failed.
    pub fn median_cpu_s(&self) -> f64 {
        let whole = self.runs.iter().filter(|run| run.error.is_none());
        let mut times: Vec<f64> = whole.map(|run| run.cpu_s).collect();
        if times.is_empty() {
            times = self.runs.iter().map(|run| run.cpu_s).collect();
        }
        median(&mut times)
    }

    /// Each operator's CPU times, s, run by run; the largest median first.
    pub fn operators(&self) -> Vec<(&Part, Vec<f64>)> {
        let mut operators: Vec<(&Part, Vec<f64>)> = Vec::new();
        for (index, run) in self.runs.iter().enumerate() {
            for part in &run.operators {
                let known = operators
                    .iter()
                    .position(|(known, _)| known.is_same(part))
                    .unwrap_or_else(|| {
                        operators.push((part, vec![0.0; self.runs.len()]));
                        operators.len() - 1
                    });
                operators[known].1[index] += part.cpu_s;
            }
        }
        operators
            .sort_by(|(_, a), (_, b)| median(&mut b.clone()).total_cmp(&median(&mut a.clone())));
        operators
    }
}

/// The middle value, or the mean of the two middle values; 0 for an empty slice.
pub fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    match (values.len(), values.len() / 2) {
        (0, _) => 0.0,
        (odd, middle) if odd % 2 == 1 => values[middle],
        (_, middle) => (values[middle - 1] + values[middle]) / 2.0,
    }
}

/// The position of the median run among some in the order of their times. Of two in the middle the faster one counts: the first run of
/// an application is slower than others.
pub fn middle(runs: usize) -> usize {
    runs.saturating_sub(1) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(started_ms: i64, cpu_s: f64, operators: &[(i32, f64)]) -> Run {
        Run {
            app: "app".to_owned(),
            query: started_ms,
            started_ms: Some(started_ms),
            duration_ms: None,
            error: None,
            cpu_s,
            samples: 1,
            operators: operators
                .iter()
                .map(|(node, cpu_s)| Part {
                    node: Some(*node),
                    operator: format!("Op{node}"),
                    detail: String::new(),
                    cpu_s: *cpu_s,
                    waiting_s: 0.0,
                })
                .collect(),
        }
    }

    #[test]
    fn the_faster_of_two_runs_in_the_middle_counts() {
        assert_eq!([1, 2, 3, 4, 5].map(middle), [0, 0, 1, 1, 2]);
    }

    #[test]
    fn operators_line_up_over_runs() {
        let mut failed = run(3, 0.1, &[(2, 0.1)]);
        failed.error = Some("killed".to_owned());
        let history = History {
            fingerprint: String::new(),
            name: String::new(),
            description: String::new(),
            runs: vec![
                run(1, 3.0, &[(1, 2.0), (2, 1.0)]),
                run(2, 5.0, &[(2, 4.0), (1, 1.0)]),
                failed,
            ],
        };
        assert_eq!(history.median_cpu_s(), 4.0);
        let operators: Vec<(i32, Vec<f64>)> = history
            .operators()
            .into_iter()
            .map(|(part, times)| (part.node.unwrap(), times))
            .collect();
        assert_eq!(
            operators,
            [(1, vec![2.0, 1.0, 0.0]), (2, vec![1.0, 4.0, 0.1])]
        );
    }

    #[test]
    fn medians() {
        assert_eq!(median(&mut []), 0.0);
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&mut [4.0, 1.0]), 2.5);
    }
}
