//! What queries are called, without reading the rest of a profile.

use std::collections::{BTreeSet, HashMap};

use unfuse_format::{Bounds, ExecutionId, ExecutionRow, FormatError, PlanRow, ProfileDir};

use super::joined;
use crate::query_name::{is_origin, query_name};

/// What to call some queries of a profile, see [`query_name`]. Plans are read where descriptions do not say it. Segments that cannot
/// be read are left out.
///
/// # Errors
/// A table of the profile cannot be read.
pub fn query_names(
    dir: &ProfileDir,
    wanted: &BTreeSet<ExecutionId>,
) -> Result<HashMap<ExecutionId, String>, FormatError> {
    let executions = joined::executions(dir.read::<ExecutionRow>()?.rows);
    let description = |id: &ExecutionId| {
        let execution = executions.get(id);
        execution.map_or("", |execution| execution.description.as_str())
    };
    let says_nothing = |id: &&ExecutionId| {
        let description = description(id);
        description.trim().is_empty() || is_origin(description)
    };
    let planned: BTreeSet<&ExecutionId> = wanted.iter().filter(says_nothing).collect();
    let ids = planned.iter().map(|id| id.execution);
    let plans = match (ids.clone().min(), ids.max()) {
        (Some(first), Some(last)) => {
            let bounds = Bounds::ALL.and("execution", first..=last);
            let rows = dir.read_chosen::<PlanRow>(&["app", "execution"], &bounds, |rows| {
                let (apps, ids) = (rows.texts("app")?, rows.i64s("execution")?);
                let is_planned =
                    |row| planned.contains(&ExecutionId::new(apps.get(row), ids.or_zero(row)));
                Ok((0..rows.rows()).map(is_planned).collect())
            })?;
            joined::plans(rows.rows)
        }
        _ => HashMap::new(),
    };
    let name = |id: &ExecutionId| (id.clone(), query_name(description(id), plans.get(id)));
    Ok(wanted.iter().map(name).collect())
}
