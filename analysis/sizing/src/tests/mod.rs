//! Properties of any runs and prices, on runs with a known truth.

mod clusters;
mod models;

use crate::{Category, Phases, Point, Run, Stage, Times, makespan};

/// A run of a job with a stage that runs once and one for each iteration, with `tasks` tasks for each unit of size. The
/// n-th task takes `seconds(n)`.
fn run(
    slots: usize,
    iterations: usize,
    size: usize,
    startup: f64,
    seconds: impl Fn(usize) -> f64,
) -> Run {
    let tasks: Vec<f64> = (0..6 * size).map(seconds).collect();
    let mut stages = Vec::new();
    for stage in 0..=iterations {
        let class = if stage == 0 { "read" } else { "step" };
        stages.push(Stage {
            class: class.into(),
            unit: class.into(),
            after: stage.checked_sub(1).into_iter().collect(),
            times: Times::from_seconds(&tasks),
        });
    }
    let graph: Vec<(Vec<usize>, Vec<f64>)> = stages
        .iter()
        .map(|stage| (stage.after.clone(), stage.times.each().collect()))
        .collect();
    Run {
        log: format!("{slots}-{iterations}-{size}"),
        application: "job".into(),
        category: Category::Core,
        at: Point {
            slots: slots as f64,
            iterations: iterations as f64,
            bytes: size as f64 * 1e6,
        },
        seconds: startup + 0.5 * iterations as f64 + makespan(&graph, slots),
        phases: Phases {
            preparation: 1.0,
            ..Phases::default()
        },
        stages,
    }
}

/// Runs at all combinations.
fn runs(
    slots: &[usize],
    iterations: &[usize],
    sizes: &[usize],
    seconds: impl Fn(usize) -> f64 + Copy,
) -> Vec<Run> {
    let mut all = Vec::new();
    for slots in slots {
        for iterations in iterations {
            for size in sizes {
                all.push(run(*slots, *iterations, *size, 5.0, seconds));
            }
        }
    }
    all
}
