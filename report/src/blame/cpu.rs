//! Who had the CPUs for which the tasks of a query waited.

use std::collections::BTreeMap;

use unfuse_contention::{
    Blame, BlockedTime, COLLECTION, Culprit, Kind, KnownProcess, Options, Resource, StageIndex,
    VictimStages, Workload,
};
use unfuse_format::{IntervalRow, ProfileDir};
use unfuse_postprocess::Profile;

use super::names::name_of;
use crate::ReportError;

/// The part of the waits that one culprit must have caused.
const MOST: f64 = 0.5;

/// The causes of the waits of a run for CPUs.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct CpuWaits {
    /// The query, process or part of the JVM that caused at least half of what the run did not cause itself.
    pub(crate) main: Option<String>,
    /// The part of all of them that garbage collection caused, 0 to 1.
    pub(crate) collected: f64,
}

/// Asks who had the CPUs for which a run waited; nothing is known without waits of its own.
///
/// # Errors
/// If the profile's tables cannot be read, or have rows that cannot be.
pub(crate) fn cpu_waits(
    profile: &Profile,
    app: &str,
    query: Option<i64>,
) -> Result<CpuWaits, ReportError> {
    if !ProfileDir::open(profile.path())?.has::<IntervalRow>() {
        return Ok(CpuWaits::default());
    }
    let mut index = StageIndex::read(profile)?;
    let executions = index.executions();
    let Some(victim) = executions.get(&(app.to_owned(), query)).copied() else {
        return Ok(CpuWaits::default());
    };
    let victims = [victim].into();
    let mut input = index.input(BlockedTime::Measured, Some(&victims))?;
    let workload = Workload::new(std::mem::take(&mut input.tables))?;
    let options = Options {
        victims,
        stages: VictimStages::All,
        resources: [Resource::Cpu].into(),
        ..Options::default()
    };
    options.check(&workload)?;
    let mut culprits: BTreeMap<Culprit, f64> = BTreeMap::new();
    let (mut collected_s, mut all_s) = (0.0, 0.0);
    let waits = Blame::new(&workload, &options).explanations(&workload);
    for path in waits.iter().filter(|path| path.kind == Kind::RunQueue) {
        all_s += path.seconds;
        let collects = matches!(
            path.culprit,
            Culprit::Known(KnownProcess::Gc | KnownProcess::GcFor(_))
        );
        if collects || path.operator.as_deref() == Some(COLLECTION) {
            collected_s += path.seconds;
        } else if path.culprit != Culprit::Query(victim) {
            *culprits.entry(path.culprit).or_default() += path.seconds;
        }
    }
    let others_s: f64 = culprits.values().sum();
    let main = culprits.iter().max_by(|(_, a), (_, b)| a.total_cmp(b));
    let enough = MOST * (others_s + collected_s);
    let main = main.filter(|(culprit, s)| **culprit != Culprit::Unknown && **s >= enough);
    let main = main.map(|(culprit, _)| name_of(&workload, *culprit));
    let collection = (collected_s > 0.0 && collected_s >= enough).then(|| COLLECTION.to_owned());
    Ok(CpuWaits {
        main: main.or(collection),
        collected: if all_s > 0.0 {
            collected_s / all_s
        } else {
            0.0
        },
    })
}
