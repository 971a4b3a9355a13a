use proptest::prelude::*;

use super::{run, runs};
use crate::*;

/// A profile's text, fitted once.
static EDITED: std::sync::OnceLock<String> = std::sync::OnceLock::new();

const SKEWED: fn(usize) -> f64 = |task| if task % 6 == 5 { 4.0 } else { 1.0 };

fn point_at(slots: f64, iterations: f64, bytes: f64) -> Point {
    Point {
        slots,
        iterations,
        bytes,
    }
}

/// A run that follows equation 8.
fn ideal(slots: f64, iterations: f64, bytes: f64, [k, c, b, a]: [f64; 4]) -> Run {
    let share = bytes / 1e6 / slots;
    let seconds = k + slots * iterations * c + iterations * b * share + a * share;
    Run {
        seconds,
        at: point_at(slots, iterations, bytes),
        ..run(1, 1, 1, 0.0, |_| 0.1)
    }
}

#[test]
fn the_closed_form_finds_its_own_factors() {
    let truth = [12.0, 0.05, 30.0, 8.0];
    let mut all = Vec::new();
    for slots in [1.0, 2.0, 4.0, 8.0] {
        for iterations in [1.0, 5.0, 10.0] {
            for size in [1.0, 3.0] {
                all.push(ideal(slots, iterations, size * 1e6, truth));
            }
        }
    }
    let form = ClosedForm::fit(&all.iter().collect::<Vec<_>>()).expect("a fit");
    for (found, truth) in [
        form.preparation + form.initialization,
        form.sharing,
        form.execution,
        form.communication,
    ]
    .iter()
    .zip(truth)
    {
        assert!((found / truth - 1.0).abs() < 1e-3, "{found} is not {truth}");
    }
    let terms = form.terms(&point_at(4.0, 5.0, 2e6));
    assert!(
        (terms.seconds() - (12.0 + 1.0 + 75.0 + 4.0)).abs() < 0.1,
        "{terms:?}"
    );
}

#[test]
fn the_replay_knows_waves_and_skew_and_is_chosen() {
    let known = runs(&[2, 4, 8], &[2, 6], &[1, 4], SKEWED);
    let profile = Profile::fit(known).expect("a profile");
    assert_eq!(profile.model, Model::Replay);
    // Points that were not fitted, one of them on more slots than a stage has tasks.
    for (slots, iterations, size) in [(3, 4, 2), (6, 3, 4), (12, 2, 1), (5, 6, 1)] {
        let truth = run(slots, iterations, size, 5.0, SKEWED).seconds;
        let point = point_at(slots as f64, iterations as f64, size as f64 * 1e6);
        let found = profile
            .predict(&point, Some(Model::Replay))
            .expect("a prediction");
        assert!(
            (found.seconds / truth - 1.0).abs() < 0.05,
            "{slots} {iterations} {size}: {} {truth}",
            found.seconds
        );
        assert!(found.low <= found.seconds && found.seconds <= found.high);
    }
}

#[test]
fn where_its_assumptions_hold_the_closed_form_is_chosen() {
    let mut all = Vec::new();
    for slots in [1.0, 2.0, 4.0, 8.0] {
        for iterations in [1.0, 5.0] {
            all.push(ideal(slots, iterations, 1e6, [12.0, 0.05, 30.0, 8.0]));
        }
    }
    let profile = Profile::fit(all).expect("a profile");
    assert_eq!(profile.model, Model::ClosedForm);
    assert!(
        profile
            .validation
            .mean_error(Model::ClosedForm)
            .expect("held out")
            < 1e-3
    );
}

#[test]
fn far_outside_is_refused_and_near_outside_widened() {
    let profile = Profile::fit(runs(&[2, 4, 8], &[2, 6], &[1, 4], |_| 1.0)).expect("a profile");
    let width = |slots: f64| {
        let found = profile
            .predict(&point_at(slots, 4.0, 2e6), Some(Model::ClosedForm))
            .expect("a prediction");
        ((found.high - found.low) / found.seconds, found.notes.len())
    };
    let (inside, silent) = width(8.0);
    let (outside, said) = width(15.0);
    assert!(outside > 1.8 * inside, "{outside} {inside}");
    assert_eq!((silent, said), (0, 1));
    let refused = |point: Point| {
        profile
            .predict(&point, None)
            .expect_err("a refusal")
            .to_string()
    };
    assert!(
        refused(point_at(17.0, 4.0, 2e6))
            .contains("17 slots are 2.1 times outside the runs of the profile (2 to 8)")
    );
    assert!(refused(point_at(0.0, 4.0, 2e6)).contains("slots must be above zero"));
    assert!(refused(point_at(4.0, f64::NAN, 2e6)).contains("iterations must be above zero"));
    let fixed = Profile::fit(runs(&[2, 4], &[3], &[1, 4], |_| 1.0)).expect("a profile");
    let refused = fixed
        .predict(&point_at(4.0, 6.0, 2e6), None)
        .expect_err("a refusal")
        .to_string();
    assert!(
        refused.contains("all runs of the profile have 3 iterations, so 6 cannot be predicted"),
        "{refused}"
    );
}

#[test]
fn missing_runs_are_named() {
    let says = |runs: Vec<Run>| Profile::fit(runs).expect_err("a refusal").to_string();
    assert!(says(Vec::new()).contains("0 runs are not enough for a fit; missing: 4 more runs"));
    let same_slots = says(runs(&[2], &[2, 4], &[1, 2, 3], |_| 1.0));
    assert!(
        same_slots.contains("runs with other numbers of slots than 2"),
        "{same_slots}"
    );
    let few = says(runs(&[2, 4], &[2, 4], &[1], |_| 1.0));
    assert!(few.contains("1 more run (a fit needs 5"), "{few}");
    let mut others = runs(&[2, 4], &[2, 4], &[1, 2], |_| 1.0);
    others[0].application = "another".into();
    assert!(says(others).contains("2 applications: another, job"));
}

#[test]
fn a_profile_is_the_same_when_it_is_read_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("profile.toml");
    let profile = Profile::fit(runs(&[2, 4, 8], &[2, 6], &[1, 40], SKEWED)).expect("a profile");
    let text = profile.to_toml().expect("TOML");
    std::fs::write(&path, &text).expect("a file");
    assert_eq!(Profile::read(&path).expect("a profile"), profile);
    for (from, to, words) in [
        ("version = 1", "version = 9", "take a newer unfuse"),
        ("preparation = ", "preparation = -", "impossible values"),
        ("preparation = ", "other = ", "is no profile"),
        ("seconds = ", "seconds = nan # ", "impossible values"),
    ] {
        std::fs::write(&path, text.replacen(from, to, 1)).expect("a file");
        let error = Profile::read(&path)
            .map(|profile| profile.application)
            .expect_err("a refusal")
            .to_string();
        assert!(
            error.contains(words) && error.contains("profile.toml"),
            "{to}: {error}"
        );
    }
    assert!(Profile::read(&dir.path().join("none")).is_err());
}

#[test]
fn a_long_stage_keeps_its_work_and_its_longest_tasks() {
    let seconds: Vec<f64> = (0..5000)
        .map(|task| {
            if task == 77 {
                90.0
            } else {
                0.1 + f64::from(task % 50) / 100.0
            }
        })
        .collect();
    let times = Times::from_seconds(&seconds);
    assert_eq!(times.tasks(), 5000);
    assert!((times.sum() / seconds.iter().sum::<f64>() - 1.0).abs() < 1e-6);
    assert_eq!(times.each().fold(0.0, f64::max), 90.0);
    let halved = times.scaled(2500, times.sum() / 2.0);
    assert_eq!(halved.len(), 2500);
    assert!((halved.iter().sum::<f64>() * 2.0 / times.sum() - 1.0).abs() < 1e-9);
    assert!(Times::default().scaled(3, 1.0).is_empty());
}

proptest! {
    /// A makespan is at least the longest path and the work over slots, and at most their sum (Graham's bound).
    #[test]
    fn list_scheduling_keeps_its_bounds(
        stages in prop::collection::vec((prop::collection::vec(0.0..5.0f64, 0..12), prop::collection::vec(0..8usize, 0..3)), 1..8),
        slots in 1..6usize,
    ) {
        let graph: Vec<(Vec<usize>, Vec<f64>)> = stages.into_iter().enumerate()
            .map(|(index, (tasks, after))| (after.into_iter().filter(|parent| *parent < index).collect(), tasks))
            .collect();
        let mut ends = vec![0.0; graph.len()];
        for (index, (after, tasks)) in graph.iter().enumerate() {
            let begin = after.iter().map(|parent| ends[*parent]).fold(0.0, f64::max);
            ends[index] = begin + tasks.iter().copied().fold(0.0, f64::max);
        }
        let path = ends.into_iter().fold(0.0, f64::max);
        let work: f64 = graph.iter().flat_map(|(_, tasks)| tasks).sum();
        let found = makespan(&graph, slots);
        prop_assert!(found >= path - 1e-9 && found >= work / slots as f64 - 1e-9);
        prop_assert!(found <= path + work / slots as f64 + 1e-9);
        prop_assert!((makespan(&graph, 1) - work).abs() < 1e-9);
    }

}

proptest! {
    // Each case fits a profile, with all its validation.
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// For any runs, predictions are numbers, and no time is negative.
    #[test]
    fn predictions_are_numbers(
        seconds in prop::collection::vec(0.001..1e5f64, 9),
        slots in 1.0..16.0f64, iterations in 1.0..10.0f64, bytes in 1e6..4e6f64,
    ) {
        let mut all = runs(&[1, 4, 8], &[1, 5], &[1, 2], |task| 0.1 * (1 + task % 3) as f64);
        for (run, seconds) in all.iter_mut().zip(seconds) {
            run.seconds = seconds;
        }
        let profile = Profile::fit(all).expect("a profile");
        for model in [Model::ClosedForm, Model::Replay] {
            let found = profile.predict(&point_at(slots, iterations, bytes), Some(model)).expect("a prediction");
            prop_assert!(found.seconds.is_finite() && found.low.is_finite() && found.high.is_finite(), "{:?}", found);
            prop_assert!(found.low >= 0.0 && found.low <= found.seconds && found.seconds <= found.high);
            let chance = found.chance(found.seconds).probability;
            prop_assert!((0.0..=1.0).contains(&chance));
        }
    }

    /// An edited profile is rejected, or still gives numbers.
    #[test]
    fn edited_profiles_are_refused_or_give_numbers(
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..4),
    ) {
        const VALUES: [&str; 9] = ["-1.0", "0.0", "nan", "inf", "1e308", "1e-308", "[]", "'x'", "18446744073709551615"];
        let text = EDITED.get_or_init(|| {
            let profile = Profile::fit(runs(&[2, 4], &[2, 4], &[1, 2], |_| 1.0)).expect("a profile");
            profile.to_toml().expect("TOML")
        });
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let values: Vec<usize> = (0..lines.len()).filter(|index| lines[*index].contains(" = ")).collect();
        for (line, value) in edits {
            let line = &mut lines[*line.get(&values)];
            let name = line.split(" = ").next().unwrap_or_default();
            *line = format!("{name} = {}", value.get(&VALUES));
        }
        if let Ok(profile) = Profile::parse(&lines.join("\n")) {
            for model in [Model::ClosedForm, Model::Replay] {
                if let Ok(found) = profile.predict(&point_at(3.0, 3.0, 1.5e6), Some(model)) {
                    prop_assert!(found.seconds.is_finite() && found.low.is_finite() && found.high.is_finite(), "{:?}", found);
                    prop_assert!(found.seconds >= 0.0);
                }
            }
        }
    }
}
