//! `unfuse blame --follow --alert`: a line for each query that others begin to slow down.

use std::collections::BTreeSet;

use anyhow::Result;
use unfuse_machine::local_time_at;
use unfuse_report::blame::Alert;

/// Pairs of a victim and its main culprit for which a line was printed.
#[derive(Debug, Default)]
pub(super) struct Printed(BTreeSet<(String, String)>);

impl Printed {
    /// The lines of new alerts, as text with the time, or as JSON.
    pub(super) fn lines(
        &mut self,
        alerts: impl Iterator<Item = Alert>,
        json: bool,
    ) -> Result<String> {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
        let now = i64::try_from(now.as_secs())?;
        let clock = local_time_at(now, "%H:%M:%S").unwrap_or_default();
        let mut lines = String::new();
        for alert in alerts {
            let pair = (alert.victim.clone(), alert.main_culprit.clone());
            if !self.0.insert(pair) {
                continue;
            }
            lines += &match json {
                true => serde_json::to_string(&alert)?,
                false => format!("{clock} {alert}"),
            };
            lines.push('\n');
        }
        Ok(lines)
    }
}
