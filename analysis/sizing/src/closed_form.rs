//! The closed form, equations 1 to 8.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::least_squares;
use crate::{Point, Range, Ranges, Run, SizingError};

/// Equation 8: T = T_init + T_prep + n·iter·C + iter·B·s/n + A·s/n, with s in units of [`base_bytes`](Self::base_bytes).
///
/// The paper's *B* is the sum over all unit tasks, whose number grows with s (equation 4). Equation 4 already
/// multiplies by iter, and equation 5 does so again; here iterations count once, as in table III and as jobs behave.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClosedForm {
    /// T_prep, s: the median over the runs, as one slow start is not typical.
    pub preparation: f64,
    /// T_init, s: the rest that is constant (class loading, warm-up of code).
    pub initialization: f64,
    /// *C* = coeff × T_vs^baseline, s.
    pub sharing: f64,
    /// *B* = Σ M_a^k of one iteration over the base size, s.
    pub execution: f64,
    /// *A* = cf_commn × T_commn^baseline over the base size, s.
    pub communication: f64,
    /// s_baseline.
    pub base_bytes: f64,
}

/// The terms of equation 3, s. Communication and execution are parts of T_comp, so they are divided by n.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Terms {
    /// T_init + T_prep.
    pub constant: f64,
    /// T_vs, equation 1.
    pub sharing: f64,
    /// T_commn / n, equations 2 and 6.
    pub communication: f64,
    /// T_exec / n, equations 4 to 6.
    pub execution: f64,
}

impl Terms {
    /// T_Est, equation 3.
    pub fn seconds(&self) -> f64 {
        self.constant + self.sharing + self.communication + self.execution
    }
}

impl ClosedForm {
    /// Fits all factors except T_prep together, by least squares of relative errors, to the time of the runs after
    /// their preparation.
    ///
    /// # Errors
    /// [`SizingError::MissingRuns`] if the runs cannot separate the factors.
    pub fn fit(runs: &[&Run]) -> Result<Self, SizingError> {
        let ranges = Ranges::from_points(runs.iter().map(|run| &run.at));
        let iterative = !ranges.iterations.is_point();
        missing(runs.len(), &ranges)?;
        let mut form = Self {
            preparation: preparation(runs),
            initialization: 0.0,
            sharing: 0.0,
            execution: 0.0,
            communication: 0.0,
            base_bytes: ranges.bytes.least,
        };
        let rows: Vec<Vec<f64>> = runs
            .iter()
            .map(|run| form.row(&run.at, iterative))
            .collect();
        let seconds: Vec<f64> = runs.iter().map(|run| run.seconds).collect();
        let prepared: Vec<f64> = runs
            .iter()
            .map(|run| run.seconds - run.phases.preparation)
            .collect();
        let found = least_squares::fit(&rows, &prepared, &seconds)?;
        let coefficient = |factor: usize| found.get(factor).copied().unwrap_or(0.0);
        form.initialization = coefficient(0);
        form.sharing = coefficient(1);
        form.execution = coefficient(2);
        form.communication = coefficient(3);
        Ok(form)
    }

    /// The terms at a point.
    pub fn terms(&self, point: &Point) -> Terms {
        let size = point.bytes / self.base_bytes;
        Terms {
            constant: self.preparation + self.initialization,
            sharing: point.slots * point.iterations * self.sharing,
            communication: self.communication * size / point.slots,
            execution: point.iterations * self.execution * size / point.slots,
        }
    }

    /// T_Est at a point, s.
    pub fn seconds(&self, point: &Point) -> f64 {
        self.terms(point).seconds()
    }

    /// For one size and number of iterations, T = K + P·n + Q/n: (K, P, Q).
    pub fn by_slots(&self, point: &Point) -> (f64, f64, f64) {
        let one = self.terms(&Point {
            slots: 1.0,
            ..*point
        });
        (one.constant, one.sharing, one.communication + one.execution)
    }

    /// The values that are multiplied by the factors. If the iterations never vary, B and A have the same.
    fn row(&self, point: &Point, iterative: bool) -> Vec<f64> {
        let share = point.bytes / self.base_bytes / point.slots;
        let mut row = vec![
            1.0,
            point.slots * point.iterations,
            point.iterations * share,
        ];
        if iterative {
            row.push(share);
        }
        row
    }

    /// The distance of a point from the runs; see [`least_squares::leverage`].
    pub(crate) fn leverage(&self, runs: &[Run], point: &Point) -> f64 {
        let iterative = !Range::from_values(runs.iter().map(|run| run.at.iterations)).is_point();
        let rows: Vec<Vec<f64>> = runs
            .iter()
            .map(|run| self.row(&run.at, iterative))
            .collect();
        let scales: Vec<f64> = runs.iter().map(|run| run.seconds).collect();
        let seconds = self.seconds(point);
        if seconds <= 0.0 {
            return 0.0;
        }
        least_squares::leverage(&rows, &scales, &self.row(point, iterative), seconds)
    }

    pub(crate) fn is_possible(&self) -> bool {
        let factors = [
            self.preparation,
            self.initialization,
            self.sharing,
            self.execution,
            self.communication,
        ];
        factors
            .iter()
            .all(|factor| factor.is_finite() && *factor >= 0.0)
            && self.base_bytes.is_finite()
            && self.base_bytes > 0.0
    }
}

/// The median of the measured preparations, s; T_prep.
pub(crate) fn preparation(runs: &[&Run]) -> f64 {
    let mut seconds: Vec<f64> = runs.iter().map(|run| run.phases.preparation).collect();
    seconds.sort_by(f64::total_cmp);
    let middle = seconds.len() / 2;
    match seconds.as_slice() {
        [] => 0.0,
        odd if odd.len() % 2 == 1 => odd[middle],
        even => (even[middle - 1] + even[middle]) / 2.0,
    }
}

/// Fails if runs for a fit are missing.
fn missing(runs: usize, ranges: &Ranges) -> Result<(), SizingError> {
    let least = if ranges.iterations.is_point() { 4 } else { 5 };
    let mut wanted = Vec::new();
    if ranges.slots.is_point() && runs > 0 {
        wanted.push(format!(
            "runs with other numbers of slots than {:.0}: begin with half and twice as many",
            ranges.slots.most
        ));
    }
    if runs < least {
        let more = least - runs;
        wanted.push(format!(
            "{more} more {} (a fit needs {least}, and better twice that; let slots and, if you will ask about them, \
             size and iterations differ)",
            if more == 1 { "run" } else { "runs" }
        ));
    }
    if wanted.is_empty() {
        return Ok(());
    }
    Err(SizingError::MissingRuns(format!(
        "{runs} {} not enough for a fit; missing: {}",
        if runs == 1 { "run is" } else { "runs are" },
        wanted.join("; ")
    )))
}
