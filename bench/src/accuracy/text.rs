//! The errors of a profiler, as figures and tables.

use std::collections::BTreeMap;
use std::f64::consts::PI;
use std::fmt::Write;

use super::experiment::{Distribution, Experiment, REFERENCE};
use super::subjects::Subject;
use crate::page::{Figure, slug};
use crate::plot::Bar;
use crate::stats;

/// The results of all profilers so far.
#[derive(Default)]
pub struct Findings {
    /// Figures of the page.
    pub figures: Vec<Figure>,
    /// Bars of the diagram.
    pub bars: Vec<Bar>,
    /// Profilers that were not measured, and why.
    pub missing: Vec<String>,
    rows: String,
    tables: String,
}

/// The results for one altered operator.
struct Outcome {
    operator: usize,
    runs: Vec<Error>,
    /// The mean |E| of a profiler with no error but chance in sampling and in the CPU time; `None`
    /// if it does not count samples.
    by_chance: Option<f64>,
}

/// One run of an altered query.
struct Error {
    run: Distribution,
    /// o, s.
    observed_s: f64,
    /// t, s.
    expected_s: f64,
    /// E.
    error: f64,
}

impl Findings {
    /// Findings without results. `missing` lists the profilers that are not measured at all.
    pub fn new(missing: Vec<String>) -> Self {
        Self {
            missing,
            ..Self::default()
        }
    }

    /// Adds the results of a profiler's runs.
    pub fn add(
        &mut self,
        subject: &Subject,
        experiment: &Experiment,
        measured: &BTreeMap<String, Vec<Distribution>>,
    ) {
        let reference = &measured[REFERENCE];
        let outcomes: Vec<Outcome> = experiment
            .altered()
            .map(|(index, name)| outcome(subject, index, reference, &measured[name]))
            .collect();
        self.rows += &row(&subject.name, reference, &outcomes);
        self.tables += &table(&subject.name, &experiment.columns, reference, &outcomes);
        for outcome in &outcomes {
            let column = &experiment.columns[outcome.operator];
            let errors: Vec<f64> = outcome.errors().map(|error| 100.0 * error.abs()).collect();
            let (mean, half) = stats::mean_and_half_width(&errors);
            let name = format!("{}_{}", slug(column), slug(&subject.name));
            let what = format!("mean \\|E\\| of {column}: {}", subject.name);
            // An error is never below 0, so neither is its interval.
            let figure = Figure::from_runs(&name, &what, &errors, "%", 2).not_negative();
            self.figures.push(figure);
            self.bars.push(Bar {
                group: subject.name.clone(),
                series: column.clone(),
                value: mean,
                error: half,
            });
        }
    }

    /// The tables, a link to the diagram, and the profilers that are missing.
    pub fn text(&self, experiment: &Experiment, diagram: &str) -> String {
        let altered: Vec<&str> = experiment.altered().map(|(_, name)| name).collect();
        let mut text = format!(
            "| profiler | mean \\|E\\| {}, % | mean E (bias) {names}, % | by chance {names}, % | added ÷ reference {names} | \
             in no operator, % |\n|---|{}---|---|---|---|\n{}\n\
             *By chance* is the mean \\|E\\| of a profiler without any error: from the number of its samples, and from how much the CPU \
             time of the reference varies.\n\n\
             ![mean error]({diagram})\n\n",
            altered.join(", % | "),
            "---|".repeat(altered.len()),
            self.rows,
            names = altered.join(", "),
        );
        for missing in &self.missing {
            let _ = writeln!(text, "* Not measured: {missing}");
        }
        if !self.missing.is_empty() {
            text.push('\n');
        }
        text + &self.tables
    }
}

impl Outcome {
    fn errors(&self) -> impl Iterator<Item = f64> {
        self.runs.iter().map(|run| run.error)
    }
}

/// E of each run with overhead in `operator`.
fn outcome(
    subject: &Subject,
    operator: usize,
    reference: &[Distribution],
    altered: &[Distribution],
) -> Outcome {
    let base_s = mean(reference, |run| run.cpu_s);
    let base_samples = mean(reference, |run| run.operators[operator]);
    let base_all = mean(reference, |run| run.all).max(1.0);
    let variance = |samples: f64, all: f64| samples * (1.0 - samples / all);
    let base_variance = variance(base_samples, base_all) / reference.len() as f64;
    // The unaltered work does not take the same time in each run either.
    let noise_s = match stats::deviation(&reference.iter().map(|run| run.cpu_s).collect::<Vec<_>>())
    {
        deviation if deviation.is_finite() => {
            deviation * (1.0 + 1.0 / reference.len() as f64).sqrt()
        }
        _ => 0.0,
    };
    let mut chances = Vec::new();
    let runs = altered
        .iter()
        .map(|run| {
            let (samples, all) = (run.operators[operator], run.all.max(1.0));
            let expected_s = run.cpu_s - base_s;
            let observed_s = run.cpu_s * (samples - base_samples) / all;
            let counting_s = run.cpu_s * (variance(samples, all) + base_variance).sqrt() / all;
            // The mean of |x| for a normal variable x is √(2/π) times its standard deviation.
            chances.push((2.0 / PI).sqrt() * counting_s.hypot(noise_s) / expected_s);
            Error {
                run: run.clone(),
                observed_s,
                expected_s,
                error: (observed_s - expected_s) / expected_s,
            }
        })
        .collect();
    let by_chance = chances.iter().sum::<f64>() / chances.len() as f64;
    Outcome {
        operator,
        runs,
        by_chance: subject.counts_samples().then_some(by_chance),
    }
}

fn mean(runs: &[Distribution], of: impl Fn(&Distribution) -> f64) -> f64 {
    runs.iter().map(of).sum::<f64>() / runs.len() as f64
}

/// A profiler's row of the summary.
fn row(name: &str, reference: &[Distribution], outcomes: &[Outcome]) -> String {
    let base_s = mean(reference, |run| run.cpu_s);
    let mut row = format!("| {name} |");
    let (mut bias, mut chance, mut added) = (Vec::new(), Vec::new(), Vec::new());
    for outcome in outcomes {
        let errors: Vec<f64> = outcome.errors().map(|error| 100.0 * error).collect();
        let absolute: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
        let (mean, half) = stats::mean_and_half_width(&absolute);
        let _ = if half.is_finite() {
            write!(row, " {mean:.2} ± {half:.2} |")
        } else {
            write!(row, " {mean:.2} (one run) |")
        };
        bias.push(format!("{:+.2}", stats::mean_and_half_width(&errors).0));
        let by_chance = outcome.by_chance;
        chance.push(
            by_chance.map_or_else(|| "–".to_owned(), |share| format!("{:.1}", 100.0 * share)),
        );
        let times: f64 = outcome.runs.iter().map(|run| run.expected_s).sum();
        added.push(format!("{:.2}", times / outcome.runs.len() as f64 / base_s));
    }
    let runs = || {
        let altered = outcomes.iter().flat_map(|outcome| &outcome.runs);
        reference.iter().chain(altered.map(|error| &error.run))
    };
    let all: f64 = runs().map(|run| run.all).sum();
    let in_operators: f64 = runs().map(|run| run.operators.iter().sum::<f64>()).sum();
    // Inclusive times add up to more than the total, so the rest is negative.
    let in_none = match 100.0 * (1.0 - in_operators / all) {
        share if share < -1.0 => "inclusive".to_owned(),
        share => format!("{:.2}", share.max(0.0)),
    };
    let _ = writeln!(
        row,
        " {} | {} | {} | {in_none} |",
        bias.join(", "),
        chance.join(", "),
        added.join(", ")
    );
    row
}

/// All runs, in the form of table A.1.
fn table(
    name: &str,
    columns: &[String],
    reference: &[Distribution],
    outcomes: &[Outcome],
) -> String {
    let mut table = format!(
        "### {name}\n\n| test | {} | other operators | no operator | S | T, s | o, s | t, s | E |\n|---|{}---|---|---|---|---|---|\n",
        columns.join(" | "),
        "---|".repeat(columns.len() + 1)
    );
    let row = |test: &str, run: &Distribution, rest: &str| {
        let mut row = format!("| {test} |");
        let none = run.all - run.operators.iter().sum::<f64>();
        for samples in run.operators.iter().chain([&none, &run.all]) {
            let _ = write!(row, " {samples:.0} |");
        }
        let _ = writeln!(row, " {:.3} | {rest} |", run.cpu_s);
        row
    };
    for run in reference {
        table += &row("reference", run, " | | ");
    }
    for outcome in outcomes {
        for one in &outcome.runs {
            let rest = format!(
                "{:.3} | {:.3} | {:+.2}%",
                one.observed_s,
                one.expected_s,
                100.0 * one.error
            );
            let test = format!("altered {}", columns[outcome.operator]);
            table += &row(&test, &one.run, &rest);
        }
    }
    table + "\n"
}
