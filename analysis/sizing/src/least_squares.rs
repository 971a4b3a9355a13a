//! Least squares with non-negative factors, like times, by the interior-point solver.

use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettings, DefaultSolver, IPSolver, NonnegativeConeT, SolverStatus};

use crate::SizingError;

/// Factors below this part of the largest contribution count as zero.
const NOTHING: f64 = 1e-7;

/// Settings of every solve.
pub(crate) fn settings() -> DefaultSettings<f64> {
    DefaultSettings {
        verbose: false,
        max_threads: 1,
        ..DefaultSettings::default()
    }
}

/// Whether a solver converged.
pub(crate) fn is_solved(status: SolverStatus) -> bool {
    matches!(status, SolverStatus::Solved | SolverStatus::AlmostSolved)
}

/// The factors x ≥ 0 that minimise Σ ((rowᵢ·x − targetᵢ) / scaleᵢ)²: errors are relative to the scales, which must be
/// above zero.
///
/// # Errors
/// If the solver does not converge.
pub(crate) fn fit(
    rows: &[Vec<f64>],
    targets: &[f64],
    scales: &[f64],
) -> Result<Vec<f64>, SizingError> {
    let width = rows.first().map_or(0, Vec::len);
    if width == 0 {
        return Ok(Vec::new());
    }
    let weighted: Vec<Vec<f64>> = rows
        .iter()
        .zip(scales)
        .map(|(row, scale)| row.iter().map(|value| value / scale).collect())
        .collect();
    // Columns of equal length; else the solver sees bytes next to ones.
    let lengths: Vec<f64> = (0..width)
        .map(|column| {
            let squares: f64 = weighted.iter().map(|row| row[column].powi(2)).sum();
            if squares > 0.0 { squares.sqrt() } else { 1.0 }
        })
        .collect();
    let mut normal = vec![vec![0.0; width]; width];
    let mut linear = vec![0.0; width];
    for (row, (target, scale)) in weighted.iter().zip(targets.iter().zip(scales)) {
        let row: Vec<f64> = row
            .iter()
            .zip(&lengths)
            .map(|(value, length)| value / length)
            .collect();
        for (sum, value) in linear.iter_mut().zip(&row) {
            *sum -= value * target / scale;
        }
        add_products(&mut normal, &row);
    }
    // Among factors that the runs cannot separate, the smallest.
    for (index, row) in normal.iter_mut().enumerate() {
        row[index] += 1e-10;
    }
    let quadratic = CscMatrix::from(&normal).to_triu();
    let signs = (0..width).map(|row| {
        let mut signs = vec![0.0; width];
        signs[row] = -1.0;
        signs
    });
    let negative = CscMatrix::from(&signs.collect::<Vec<_>>());
    let zeros = vec![0.0; width];
    let cones = [NonnegativeConeT(width)];
    let solver = DefaultSolver::new(&quadratic, &linear, &negative, &zeros, &cones, settings());
    let mut solver = solver.map_err(|error| SizingError::Solver(error.to_string()))?;
    solver.solve();
    if !is_solved(solver.solution.status) {
        return Err(SizingError::Solver(format!("{:?}", solver.solution.status)));
    }
    let scaled = &solver.solution.x;
    let largest = scaled.iter().copied().fold(0.0, f64::max);
    Ok(scaled
        .iter()
        .zip(&lengths)
        .map(|(x, length)| {
            if *x > NOTHING * largest {
                x / length
            } else {
                0.0
            }
        })
        .collect())
}

/// The leverage of a new row with its scale: x'(X'X)⁻¹x, with the same weights. Above 1 far outside the data.
pub(crate) fn leverage(rows: &[Vec<f64>], scales: &[f64], new: &[f64], value: f64) -> f64 {
    let width = new.len();
    let mut lengths = vec![0.0; width];
    for (row, scale) in rows.iter().zip(scales) {
        for (length, value) in lengths.iter_mut().zip(row) {
            *length += (value / scale).powi(2);
        }
    }
    let unit = |row: &[f64], scale: f64| -> Vec<f64> {
        let scaled = row.iter().zip(&lengths);
        scaled
            .map(|(value, length)| {
                if *length > 0.0 {
                    value / scale / length.sqrt()
                } else {
                    0.0
                }
            })
            .collect()
    };
    let mut matrix = vec![vec![0.0; width + 1]; width];
    let wanted = unit(new, value);
    for (row, scale) in rows.iter().zip(scales) {
        add_products(&mut matrix, &unit(row, *scale));
    }
    for (index, row) in matrix.iter_mut().enumerate() {
        // Directions without runs would be infinitely uncertain; other code refuses questions about them.
        row[index] += 1e-6;
        row[width] = wanted[index];
    }
    let solved = eliminate(matrix);
    let product: f64 = wanted.iter().zip(&solved).map(|(a, b)| a * b).sum();
    if product.is_finite() {
        product.max(0.0)
    } else {
        0.0
    }
}

/// Adds the products of a row with itself.
fn add_products(matrix: &mut [Vec<f64>], row: &[f64]) {
    for (sums, a) in matrix.iter_mut().zip(row) {
        for (sum, b) in sums.iter_mut().zip(row) {
            *sum += a * b;
        }
    }
}

/// Gaussian elimination for a positive definite matrix with the right side as its last column.
fn eliminate(mut matrix: Vec<Vec<f64>>) -> Vec<f64> {
    let width = matrix.len();
    for pivot in 0..width {
        let row = matrix[pivot].clone();
        for other in (0..width).filter(|other| *other != pivot) {
            let factor = matrix[other][pivot] / row[pivot];
            for (value, above) in matrix[other].iter_mut().zip(&row) {
                *value -= factor * above;
            }
        }
    }
    (0..width)
        .map(|index| matrix[index][width] / matrix[index][index])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_found_and_never_negative() {
        let rows: Vec<Vec<f64>> = (1..9)
            .map(|n| vec![1.0, f64::from(n), 1.0 / f64::from(n)])
            .collect();
        let exact: Vec<f64> = rows
            .iter()
            .map(|row| 3.0 + 0.5 * row[1] + 20.0 * row[2])
            .collect();
        let found = fit(&rows, &exact, &exact).expect("a solution");
        for (found, true_value) in found.iter().zip([3.0, 0.5, 20.0]) {
            assert!((found - true_value).abs() < 1e-4, "{found} {true_value}");
        }
        let falling: Vec<f64> = rows.iter().map(|row| 30.0 - row[1]).collect();
        assert!(
            fit(&rows, &falling, &falling)
                .expect("a solution")
                .iter()
                .all(|x| *x >= 0.0)
        );
    }

    #[test]
    fn leverage_grows_outside() {
        let rows: Vec<Vec<f64>> = (1..9).map(|n| vec![1.0, f64::from(n)]).collect();
        let ones = vec![1.0; rows.len()];
        let inside = leverage(&rows, &ones, &[1.0, 4.5], 1.0);
        assert!((inside - 0.125).abs() < 1e-3, "{inside}");
        assert!(leverage(&rows, &ones, &[1.0, 40.0], 1.0) > 10.0);
    }
}
