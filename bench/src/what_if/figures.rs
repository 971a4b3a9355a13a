//! Figures of the page.

use std::collections::{BTreeMap, BTreeSet};

use super::{Change, Plan, Recorded, Row};
use crate::page::Figure;
use crate::stats;

/// How far apart the times of a query with a change are in two JVMs, which no prediction can know. Nothing if each job has one JVM.
pub(super) fn apart(plan: &Plan, jobs: &BTreeMap<&str, Vec<Recorded>>) -> Option<Figure> {
    let of_change = |change: &Change| {
        let queries = (0..change.queries.len()).map(|at| change.becomes(at).to_owned());
        queries
            .map(|query| (change.then().to_owned(), query))
            .collect::<Vec<_>>()
    };
    let made: BTreeSet<(String, String)> = plan.change.iter().flat_map(of_change).collect();
    let mut apart = Vec::new();
    for (job, query) in made {
        for pair in jobs[&*job].chunks_exact(2) {
            if let [Ok((_, one)), Ok((_, other))] =
                [&pair[0], &pair[1]].map(|run| run.median_run(&query))
            {
                apart.push(100.0 * (one / other - 1.0).abs());
            }
        }
    }
    let what = "times of a query with a change in two JVMs are apart: median";
    (!apart.is_empty()).then(|| {
        let (value, interval) = stats::quantile(&mut apart, 0.5);
        Figure::new("apart", what, value, "%", 1).within(Some(interval))
    })
}

/// Figures of changes, each with its rows of all JVMs, which are not independent: their medians count.
pub(super) fn figures(changes: &[&[Row]]) -> Vec<Figure> {
    let error = |rows: &&[Row]| {
        let mut errors: Vec<f64> = rows.iter().map(|row| 100.0 * row.error().abs()).collect();
        stats::median(&mut errors)
    };
    let inside = |rows: &&[Row]| {
        rows.iter().filter(|row| row.is_inside()).count() as f64 / rows.len() as f64
    };
    let mut errors: Vec<f64> = changes.iter().map(error).collect();
    let count = changes.len() as f64;
    let (share, interval) = stats::share(changes.iter().map(inside).sum(), count);
    let mut quantile = |name: &str, what: &str, of: f64| {
        let (value, interval) = stats::quantile(&mut errors, of);
        Figure::new(name, what, value, "%", 1).within(Some(interval))
    };
    vec![
        Figure::new("changes", "changes", count, "", 0).exact(),
        quantile("median", "error of the predicted time: median", 0.5),
        quantile("most", "error of the predicted time: 90th percentile", 0.9),
        Figure::new(
            "inside",
            "times inside the predicted range",
            100.0 * share,
            "%",
            0,
        )
        .within(Some(interval.map(|end| 100.0 * end))),
    ]
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::span;
    use super::*;

    #[test]
    fn times_of_two_jvms_are_compared_once_for_each_query() {
        let plan: Plan = toml::from_str(
            "job = []
             [[change]]
             now = 'a'
             change = 'slots=1'
             queries = ['x', 'y']
             becomes = ['z', 'z']",
        )
        .expect("a plan");
        let recorded = |seconds: f64| Recorded {
            profile: PathBuf::new(),
            queries: BTreeMap::from([("z".to_owned(), vec![(1, seconds)])]),
        };
        let of = |times: &[f64]| {
            let recorded = times.iter().map(|seconds| recorded(*seconds)).collect();
            apart(&plan, &BTreeMap::from([("a", recorded)])).map(|figure| figure.value)
        };
        assert!((of(&[1.2, 1.0]).expect("a figure") - 20.0).abs() < 1e-9);
        assert_eq!(of(&[1.2]), None);
        assert_eq!(span(&[2.0, 1.0, 4.0], 2.5), [1.0, 2.5, 4.0]);
    }

    #[test]
    fn the_error_and_the_interval_compare_with_the_median() {
        let row = |predicted_s| Row {
            query: "a".to_owned(),
            becomes: "b".to_owned(),
            change: "slots=1".to_owned(),
            now_s: 10.0,
            predicted_s,
            made_s: [9.0, 10.0, 12.0],
        };
        let (inside, outside) = (row([7.0, 9.0, 11.0]), row([10.5, 11.0, 11.5]));
        assert!((inside.error() + 0.1).abs() < 1e-9 && inside.is_inside());
        let figures = figures(&[&[inside, outside]]);
        let value = |name: &str| {
            figures
                .iter()
                .find(|one| one.name == name)
                .map(|one| one.value)
        };
        assert_eq!(value("changes"), Some(1.0));
        assert_eq!(value("inside"), Some(50.0));
        assert!((value("median").expect("a figure") - 10.0).abs() < 1e-9);
    }
}
