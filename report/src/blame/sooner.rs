//! How much sooner the victim would end without each culprit.

use std::collections::BTreeMap;

use unfuse_contention::{Culprit, Input, QueryId, Split, Workload};

use unfuse_sizing::what_if::PartKind;

use super::answer::{Answer, Sooner};
use crate::what_if::{Neighbour, VictimWaits, without_each};
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
        let kind_of = |culprit: Culprit| {
            let Culprit::Query(query) = culprit else {
                return PartKind::Other;
            };
            match by_query.get(&query).filter(|(of, _)| *of == app) {
                Some((_, Some(execution))) => PartKind::Query(*execution),
                Some((_, None)) => PartKind::Jobs,
                None => PartKind::Other,
            }
        };
        let asked = (victim, split);
        let waits = VictimWaits::new(report, app, workload, input, asked)?;
        let mut tried = Vec::new();
        let mut neighbours = Vec::new();
        for (at, row) in self.ranked.iter().enumerate() {
            let Some(culprit) = row.culprit else { continue };
            let is_neighbour = culprit != Culprit::Query(victim) && culprit != Culprit::Unknown;
            let kind = kind_of(culprit);
            // Without any wait because of it, it can still hold slots.
            let holds_slots = matches!(kind, PartKind::Query(_)) && waits.frees_slots(culprit);
            if is_neighbour && (holds_slots || waits.are_caused_by(culprit)) {
                tried.push(at);
                neighbours.push(Neighbour::from_waits(report, &waits, culprit, kind));
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
