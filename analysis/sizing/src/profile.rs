//! The job profile of section III, and its file.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use unfuse_files::read_given_text;

use crate::{Category, ClosedForm, Point, Ranges, Replay, Run, SizingError, Validation};

/// Version of the file format. Newer files are rejected.
const VERSION: u32 = 1;

/// The largest profile that is read, bytes; it has thousands of runs with thousands of stages.
const LARGEST: u64 = 256 << 20;

/// Maximum number of tasks of a run: a replay schedules each of them.
const MOST_TASKS: usize = 10_000_000;

/// Two variables count as one beyond this correlation of their logarithms.
const TOGETHER: f64 = 0.98;

/// A model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Model {
    /// Equation 8.
    ClosedForm,
    /// Measured stages on other slots.
    Replay,
}

/// All data that later questions need.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    version: u32,
    /// Name of the application.
    pub application: String,
    /// Its category, by library.
    pub category: Category,
    /// The better model.
    pub model: Model,
    /// Equation 8.
    pub closed: ClosedForm,
    /// Table II.
    pub baselines: Baselines,
    /// *M_a^k*.
    pub units: Vec<UnitTask>,
    /// Predictions of held-out runs by both models.
    pub validation: Validation,
    /// Our own model.
    pub replay: Replay,
    /// The fitted runs.
    pub runs: Vec<Run>,
}

/// A job's values of table II. Baselines are means of the runs on the fewest slots and, among these, with the fewest
/// iterations and bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Baselines {
    /// *T_vs^baseline*, s, measured.
    pub sharing: f64,
    /// *coeff*: C divided by the baseline; none if that is zero.
    pub sharing_coefficient: Option<f64>,
    /// *T_commn^baseline*, s, measured.
    pub communication: f64,
    /// *cf_commn*: A divided by the baseline; none if that is zero.
    pub communication_coefficient: Option<f64>,
}

/// One kind of unit task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UnitTask {
    /// Its operation, *k*.
    pub name: String,
    /// Number of tasks in all runs.
    pub tasks: u64,
    /// *M_a^k*, the mean over all of them, s.
    pub mean_seconds: f64,
}

impl Profile {
    /// Fits both models to runs of one application, and chooses one by cross-validation.
    ///
    /// # Errors
    /// If there are runs of several applications, or too few.
    pub fn fit(mut runs: Vec<Run>) -> Result<Self, SizingError> {
        let names: BTreeSet<&String> = runs.iter().map(|run| &run.application).collect();
        if names.len() > 1 {
            let names = names.into_iter().cloned().collect();
            return Err(SizingError::SeveralApplications(names));
        }
        runs.sort_by(|a, b| (a.at.key(), &a.log).cmp(&(b.at.key(), &b.log)));
        let all: Vec<&Run> = runs.iter().collect();
        let closed = ClosedForm::fit(&all)?;
        let replay = Replay::fit(&all)?;
        let validation = Validation::new(&runs);
        Ok(Self {
            version: VERSION,
            application: runs
                .first()
                .map_or_else(String::new, |run| run.application.clone()),
            category: main_category(&runs),
            model: validation.better(),
            baselines: Baselines::new(&runs, &closed),
            units: units(&runs),
            closed,
            validation,
            replay,
            runs,
        })
    }

    /// The ranges of the runs.
    pub fn ranges(&self) -> Ranges {
        Ranges::from_points(self.runs.iter().map(|run| &run.at))
    }

    /// Pairs of variables that the runs only varied together (weak scaling), so that they cannot be separated: a
    /// sentence for each pair, with the missing run.
    pub fn confounded(&self) -> Vec<String> {
        let of = |value: fn(&Point) -> f64| -> Vec<f64> {
            self.runs.iter().map(|run| value(&run.at).ln()).collect()
        };
        let all = [
            ("slots", of(|point| point.slots)),
            ("iterations", of(|point| point.iterations)),
            ("bytes of input", of(|point| point.bytes)),
        ];
        let pairs = [(0, 1), (0, 2), (1, 2)];
        pairs
            .into_iter()
            .filter(|(a, b)| correlation(&all[*a].1, &all[*b].1).abs() > TOGETHER)
            .map(|(a, b)| {
                let (a, b) = (all[a].0, all[b].0);
                format!(
                    "{a} and {b} changed together in all runs, so their effects cannot be separated: add a run with the least {a} and the \
                     most {b}, or the reverse"
                )
            })
            .collect()
    }

    /// Mean of |T_Est − T_Rec| / T_Rec over the runs that were fitted.
    pub fn fit_error(&self, model: Model) -> f64 {
        let errors = self.fit_errors(model);
        errors.iter().map(|error| error.abs()).sum::<f64>() / errors.len().max(1) as f64
    }

    pub(crate) fn fit_spread(&self, model: Model) -> f64 {
        let errors = self.fit_errors(model);
        let squares: f64 = errors.iter().map(|error| error * error).sum();
        (squares / errors.len().max(1) as f64).sqrt()
    }

    fn fit_errors(&self, model: Model) -> Vec<f64> {
        let of = |run: &Run| Some(self.seconds(&run.at, model).ok()? / run.seconds - 1.0);
        self.runs.iter().filter_map(of).collect()
    }

    /// The profile as the text of its file.
    ///
    /// # Errors
    /// If a value cannot be written as TOML.
    pub fn to_toml(&self) -> Result<String, SizingError> {
        toml::to_string(self).map_err(|error| SizingError::File {
            file: "the profile".into(),
            why: error.to_string(),
        })
    }

    /// Reads a profile written by [`Profile::to_toml`].
    ///
    /// # Errors
    /// If it cannot be read, has a newer version, or contains impossible values.
    pub fn read(path: &Path) -> Result<Self, SizingError> {
        let wrong = |why: String| SizingError::File {
            file: path.display().to_string(),
            why,
        };
        let text = read_given_text(path, LARGEST).map_err(|error| {
            wrong(format!(
                "cannot be read ({error}); `unfuse size fit` makes a profile"
            ))
        })?;
        Self::parse(&text).map_err(wrong)
    }

    /// Parses a profile.
    ///
    /// # Errors
    /// As [`Profile::read`], without the file's name.
    pub fn parse(text: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Version {
            version: u32,
        }
        let no_profile = |error: toml::de::Error| {
            format!(
                "is no profile of `unfuse size fit`: {}",
                error.to_string().trim_end()
            )
        };
        let Version { version } = toml::from_str(text).map_err(no_profile)?;
        if version > VERSION {
            return Err(format!(
                "has version {version}, and this unfuse reads up to {VERSION}: take a newer unfuse"
            ));
        }
        let profile: Self = toml::from_str(text).map_err(no_profile)?;
        let all_finite =
            toml::from_str(text).is_ok_and(|table| is_finite(&toml::Value::Table(table)));
        let stages_are_possible = |run: &Run| {
            let after =
                |stage: &crate::Stage| stage.after.iter().all(|index| *index < run.stages.len());
            run.stages
                .iter()
                .all(|stage| after(stage) && stage.times.are_possible())
        };
        let tasks = |run: &Run| {
            let tasks = run.stages.iter().map(|stage| stage.times.tasks());
            tasks.fold(0, usize::saturating_add)
        };
        let run_is_possible = |run: &Run| {
            run.at.is_possible()
                && tasks(run) <= MOST_TASKS
                && run.seconds.is_finite()
                && run.seconds > 0.0
                && stages_are_possible(run)
        };
        let mut held = profile.validation.held_out.iter();
        if !all_finite
            || profile.runs.is_empty()
            || !profile.runs.iter().all(run_is_possible)
            || !profile.closed.is_possible()
            || !profile.replay.is_possible()
            || !held.all(|row| row.seconds > 0.0)
        {
            return Err(format!(
                "has impossible values (negative times, NaN, no runs, more than {MOST_TASKS} tasks in a run): fit it again"
            ));
        }
        Ok(profile)
    }
}

impl Baselines {
    fn new(runs: &[Run], closed: &ClosedForm) -> Self {
        let least = runs.iter().map(|run| run.at.key()).min();
        let single: Vec<&Run> = runs
            .iter()
            .filter(|run| Some(run.at.key()) == least)
            .collect();
        let mean = |of: fn(&Run) -> f64| {
            single.iter().map(|run| of(run)).sum::<f64>() / single.len().max(1) as f64
        };
        let sharing = mean(|run| run.phases.sharing);
        let communication = mean(|run| run.phases.communication);
        let over = |factor: f64, baseline: f64| (baseline > 0.0).then(|| factor / baseline);
        Self {
            sharing,
            sharing_coefficient: over(closed.sharing, sharing),
            communication,
            communication_coefficient: over(closed.communication, communication),
        }
    }
}

/// Whether all numbers in it are finite; TOML has NaN and infinity.
fn is_finite(value: &toml::Value) -> bool {
    match value {
        toml::Value::Float(number) => number.is_finite(),
        toml::Value::Array(values) => values.iter().all(is_finite),
        toml::Value::Table(table) => table.values().all(is_finite),
        _ => true,
    }
}

/// The category of most runs; of equals, the more specific one.
fn main_category(runs: &[Run]) -> Category {
    let mut counts: BTreeMap<Category, usize> = BTreeMap::new();
    for run in runs {
        *counts.entry(run.category).or_default() += 1;
    }
    let most = counts
        .into_iter()
        .max_by_key(|(category, count)| (*count, *category));
    most.map_or(Category::Core, |(category, _)| category)
}

/// *M_a^k*: operations, most time first.
fn units(runs: &[Run]) -> Vec<UnitTask> {
    let mut sums: BTreeMap<&str, (u64, f64)> = BTreeMap::new();
    for stage in runs.iter().flat_map(|run| &run.stages) {
        let sum = sums.entry(&stage.unit).or_default();
        *sum = (sum.0 + stage.times.tasks() as u64, sum.1 + stage.work());
    }
    let mut units: Vec<(f64, UnitTask)> = sums
        .into_iter()
        .filter(|(_, (tasks, _))| *tasks > 0)
        .map(|(name, (tasks, seconds))| {
            let mean_seconds = seconds / tasks as f64;
            (
                seconds,
                UnitTask {
                    name: name.to_owned(),
                    tasks,
                    mean_seconds,
                },
            )
        })
        .collect();
    units.sort_by(|a, b| b.0.total_cmp(&a.0));
    units.into_iter().map(|(_, unit)| unit).collect()
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ClosedForm => "closed form",
            Self::Replay => "replay",
        })
    }
}

/// Correlation of two series, -1 to 1; 0 if one of them varies by at most 1%.
fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let deviations = |values: &[f64]| -> Vec<f64> {
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        values.iter().map(|value| value - mean).collect()
    };
    let (a, b) = (deviations(a), deviations(b));
    let product = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
    let changes = |values: &[f64]| values.iter().any(|value| value.abs() > 0.01);
    if !(changes(&a) && changes(&b)) {
        return 0.0;
    }
    product(&a, &b) / (product(&a, &a) * product(&b, &b)).sqrt()
}
