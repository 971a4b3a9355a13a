//! How much runs of a query differ.

use unfuse_postprocess::median;

use crate::Report;

/// Fewest runs of a query that say by how much runs differ.
const FEWEST_RUNS: usize = 3;

/// By how much the runs of a query in its application differ: 1.48 times the median distance from their median, which is
/// the standard deviation where they are normal, as a share of the median. A slow first run does not change it.
pub(super) fn spread(report: &Report<'_>, app: &str, query: i64) -> Option<f64> {
    let summary = &report.summary;
    let own = summary.queries.iter().filter(|known| {
        summary
            .applications
            .get(known.app)
            .is_some_and(|known| known.id == app)
            && known.error.is_none()
    });
    let fingerprint = own
        .clone()
        .find(|known| known.query == Some(query))
        .map(|known| &known.fingerprint)?;
    let same = own.filter(|known| known.query.is_some() && known.fingerprint == *fingerprint);
    let mut times: Vec<f64> = same
        .filter_map(|known| known.duration_ms)
        .map(|ms| ms as f64)
        .collect();
    if times.len() < FEWEST_RUNS {
        return None;
    }
    let middle = median(&mut times);
    let mut distances: Vec<f64> = times.iter().map(|ms| (ms - middle).abs()).collect();
    Some(1.48 * median(&mut distances) / middle).filter(|spread| spread.is_finite())
}
