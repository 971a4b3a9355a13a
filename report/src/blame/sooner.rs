//! How much sooner the victim would end without each culprit.

use std::collections::BTreeMap;

use unfuse_contention::{Culprit, Explanation, Input, QueryId, Split, Workload};

use super::answer::{Answer, Sooner};
use crate::what_if::{Neighbour, VictimWaits, caused_waits, without_each};
use crate::{Report, ReportError};

impl Answer {
    /// Adds to the ranked culprits how much sooner the victim would end without each of them: its tasks are put on slots again
    /// without the waits that the culprit caused and, if that is a query of the same application and slots were scarce, without
    /// that query's tasks. A note says why that is not known.
    ///
    /// # Errors
    /// If the profile cannot be read, or the analysis would take too long.
    pub fn add_victim_seconds(
        &mut self,
        report: &Report<'_>,
        workload: &Workload,
        input: &Input,
        (victim, split): (QueryId, Split),
    ) -> Result<(), ReportError> {
        let executions = input.executions.iter();
        let by_query: BTreeMap<QueryId, (&str, Option<i64>)> = executions
            .map(|((app, execution), query)| (*query, (app.as_str(), *execution)))
            .collect();
        let Some((app, Some(execution))) = by_query.get(&victim).copied() else {
            return Ok(());
        };
        let own_query = |culprit: Culprit| match culprit {
            Culprit::Query(query) => {
                let (of, execution) = by_query.get(&query)?;
                execution.filter(|_| *of == app)
            }
            _ => None,
        };
        let (all, of_tasks) = caused_waits(workload, victim, split)?;
        let of_tasks = (of_tasks, &input.spark_tasks);
        let waits = VictimWaits::new(report, app, (workload, victim), &all, of_tasks);
        let mut paths: BTreeMap<Culprit, Vec<Explanation>> = BTreeMap::new();
        for path in all {
            paths.entry(path.culprit).or_default().push(path);
        }
        let mut tried = Vec::new();
        let mut neighbours = Vec::new();
        for (at, row) in self.ranked.iter().enumerate() {
            let Some(culprit) = row.culprit else { continue };
            let is_neighbour = culprit != Culprit::Query(victim) && culprit != Culprit::Unknown;
            let (query, paths) = (own_query(culprit), paths.remove(&culprit));
            // Without paths, it can still hold slots.
            let holds_slots = query.is_some() && waits.frees_slots(culprit);
            if is_neighbour && (holds_slots || paths.is_some()) {
                let paths = paths.unwrap_or_default();
                tried.push(at);
                neighbours.push(Neighbour::from_paths(
                    report,
                    &waits,
                    (culprit, query),
                    &paths,
                ));
            }
        }
        if tried.is_empty() {
            return Ok(());
        }
        let warning = match without_each(report, app, execution, &neighbours) {
            Ok((estimates, warning)) => {
                for (at, estimate) in tried.into_iter().zip(estimates) {
                    self.ranked[at].sooner = Sooner::from(&estimate);
                }
                for advice in &mut self.suggestions {
                    let mut rows = self.ranked.iter();
                    let row =
                        rows.find(|row| row.culprit.is_some() && row.culprit == advice.culprit);
                    advice.sooner = row.map_or(Sooner::default(), |row| row.sooner);
                }
                warning
            }
            Err(ReportError::Refused(why)) => Some(format!("not known: {why}")),
            Err(other) => return Err(other),
        };
        if let Some(warning) = warning {
            self.notes
                .push(format!("how much sooner it would end is {warning}"));
            self.partial = true;
        }
        Ok(())
    }
}
