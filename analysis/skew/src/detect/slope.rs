//! Estimates how much longer a task takes for each unit of its data.

use super::stats::median;

/// Maximum number of pairs; of more, an even selection.
const PAIRS: usize = 1 << 14;

/// The slope of `y` on `x`: the median of the slopes of pairs, each weighted by its distance in x (Theil and Sen,
/// weights after Jaeckel). It is robust against a third of wild values. Not negative, as no task is faster with more
/// data. At most such that `y` for no `x` is not negative, as times are not: twice the data explains twice the time at
/// most, and more needs another reason.
pub(super) fn slope(x: &[f64], y: &[f64]) -> f64 {
    let n = x.len();
    if n < 2 {
        return 0.0;
    }
    let mut slopes: Vec<(f64, f64)> = Vec::new();
    // Pairs at several distances around a ring, so that every value is in equally many.
    let half = n / 2;
    let distances = (PAIRS / n).clamp(1, half);
    for k in 1..=distances {
        let distance = k * half / distances;
        for i in 0..n {
            let other = (i + distance) % n;
            let (dx, dy) = (x[other] - x[i], y[other] - y[i]);
            if dx != 0.0 {
                slopes.push((dy / dx, dx.abs()));
            }
        }
    }
    let slope = weighted_median(&mut slopes).max(0.0);
    let (x_typical, y_typical) = (median(x.iter().copied()), median(y.iter().copied()));
    if x_typical > 0.0 {
        slope.min(y_typical.max(0.0) / x_typical)
    } else {
        slope
    }
}

fn weighted_median(values: &mut [(f64, f64)]) -> f64 {
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    let half = values.iter().map(|(_, weight)| weight).sum::<f64>() / 2.0;
    let mut sum = 0.0;
    let reached = |(_, weight): &&(f64, f64)| {
        sum += weight;
        sum >= half
    };
    values.iter().find(reached).map_or(0.0, |(value, _)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_found_among_wild_values() {
        let x: Vec<f64> = (1..=40).map(f64::from).collect();
        let mut y: Vec<f64> = x.iter().map(|x| 50.0 + 3.0 * x).collect();
        y[3] = 9000.0;
        y[20] = 9000.0;
        assert!((slope(&x, &y) - 3.0).abs() < 0.1);
    }

    #[test]
    fn the_data_of_one_task_explains_its_time_in_proportion_at_most() {
        let mut x = vec![100.0; 20];
        let mut y = vec![1000.0; 20];
        x[5] = 200.0;
        y[5] = 1900.0;
        assert!((slope(&x, &y) - 9.0).abs() < 1e-9);
        y[5] = 90_000.0;
        assert!((slope(&x, &y) - 10.0).abs() < 1e-9);
        y[5] = 500.0;
        assert_eq!(slope(&x, &y), 0.0);
    }

    #[test]
    fn nothing_to_tell_from_is_no_slope() {
        assert_eq!(slope(&[], &[]), 0.0);
        assert_eq!(slope(&[1.0], &[1.0]), 0.0);
        assert_eq!(slope(&[5.0; 9], &[1.0; 9]), 0.0);
        assert_eq!(slope(&[0.0, 0.0, 0.0, 8.0], &[1.0, 1.0, 1.0, 801.0]), 100.0);
    }
}
