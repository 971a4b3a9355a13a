//! Means, ratios and lines with their confidence intervals.

/// Median of a list.
pub fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => f64::midpoint(values[n / 2 - 1], values[n / 2]),
    }
}

/// A quantile of values (0 to 1), and its 95% confidence interval: the values whose ranks are 1.96 standard deviations of the binomial
/// distribution away.
pub fn quantile(values: &mut [f64], of: f64) -> (f64, [f64; 2]) {
    values.sort_by(f64::total_cmp);
    let count = values.len() as f64;
    let at = |rank: f64| {
        let index = (rank.round().max(1.0) as usize - 1).min(values.len().saturating_sub(1));
        values.get(index).copied().unwrap_or(f64::NAN)
    };
    let middle = of * count + 0.5;
    let half = 1.96 * (count * of * (1.0 - of)).sqrt();
    (at(middle), [at(middle - half), at(middle + half)])
}

/// The geometric mean of ratios, given as logarithms, and its 95% confidence interval (Student's t) if there are several.
pub fn geometric(logs: &[f64]) -> (f64, Option<[f64; 2]>) {
    let (mean, half) = mean_and_half_width(logs);
    let interval = half
        .is_finite()
        .then(|| [(mean - half).exp(), (mean + half).exp()]);
    (mean.exp(), interval)
}

/// The same as text.
pub fn geometric_text(logs: &[f64]) -> String {
    match geometric(logs) {
        (mean, Some([low, high])) => format!("{mean:.3} ({low:.3} to {high:.3})"),
        (mean, None) => format!("{mean:.3} (one run)"),
    }
}

/// A share and its 95% confidence interval (Wilson's); without trials nothing is known.
pub fn share(successes: f64, trials: f64) -> (f64, [f64; 2]) {
    let share = successes / trials;
    (share, unfuse_postprocess::wilson(share, trials).into())
}

/// Mean of values and half the width of its 95% confidence interval; unbounded for a single value.
pub fn mean_and_half_width(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    if values.len() < 2 {
        return (mean, f64::INFINITY);
    }
    let t = students_t(values.len() - 1);
    (mean, t * deviation(values) / count.sqrt())
}

/// Mean of a group of values and half the width of its 95% confidence interval, if all groups vary by the same share of their means;
/// unbounded if no group has two values.
pub fn mean_among(groups: &[&[f64]], group: &[f64]) -> (f64, f64) {
    let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
    let squares = |of: &&[f64]| -> f64 {
        let shares = of.iter().map(|value| value / mean(of) - 1.0);
        shares.map(|share| share * share).sum()
    };
    let freedom: usize = groups.iter().map(|of| of.len().saturating_sub(1)).sum();
    if freedom == 0 {
        return (mean(group), f64::INFINITY);
    }
    let deviation = (groups.iter().map(squares).sum::<f64>() / freedom as f64).sqrt();
    let half = students_t(freedom) * deviation * mean(group) / (group.len() as f64).sqrt();
    (mean(group), half)
}

/// Standard deviation of values; not finite for less than two.
pub fn deviation(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (count - 1.0)).sqrt()
}

/// A straight line through points by least squares.
#[derive(Debug, Clone, Copy)]
pub struct Line {
    /// Value at x = 0.
    pub start: f64,
    /// Increase of y for each unit of x.
    pub slope: f64,
    /// Half the width of the slope's 95% confidence interval; unbounded for less than three points.
    pub half_width: f64,
}

/// The line through points (x, y). Their errors must be independent for its interval to hold.
pub fn line(points: &[(f64, f64)]) -> Line {
    let count = points.len() as f64;
    let mean_x = points.iter().map(|(x, _)| x).sum::<f64>() / count;
    let mean_y = points.iter().map(|(_, y)| y).sum::<f64>() / count;
    let spread: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    let together: f64 = points
        .iter()
        .map(|(x, y)| (x - mean_x) * (y - mean_y))
        .sum();
    let slope = together / spread;
    let start = mean_y - slope * mean_x;
    let squares: f64 = points
        .iter()
        .map(|(x, y)| (y - start - slope * x).powi(2))
        .sum();
    let half_width = match points.len() {
        0..3 => f64::INFINITY,
        n => students_t(n - 2) * (squares / (count - 2.0) / spread).sqrt(),
    };
    Line {
        start,
        slope,
        half_width,
    }
}

/// Student's t for 95%, by degrees of freedom from 1.
fn students_t(freedom: usize) -> f64 {
    const T: [f64; 15] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131,
    ];
    // Beyond the table, the first terms of the expansion around the normal distribution's 1.96 are accurate to 0.001.
    let freedom_f = freedom as f64;
    let expansion = 1.96 + 2.37 / freedom_f + 2.8 / freedom_f.powi(2);
    T.get(freedom - 1).copied().unwrap_or(expansion)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_that_vary_alike_share_their_deviation() {
        let groups: [&[f64]; 3] = [&[9.0, 11.0], &[90.0, 110.0], &[5.0]];
        let (mean, half) = mean_among(&groups, groups[2]);
        // Deviations of 10% of the mean, twice, with two degrees of freedom: √(4 × 0.01 ÷ 2).
        assert!((mean - 5.0).abs() < 1e-9);
        assert!((half - 4.303 * 0.02f64.sqrt() * 5.0).abs() < 1e-9, "{half}");
        assert!(mean_among(&[&[5.0]], &[5.0]).1.is_infinite());
    }

    #[test]
    fn a_quantile_has_an_interval_of_ranks() {
        let mut values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        let (median, [low, high]) = quantile(&mut values, 0.5);
        assert!((median - 50.5).abs() < 1.0, "{median}");
        // 9.8 ranks.
        assert!(
            (40.0..42.0).contains(&low) && (60.0..62.0).contains(&high),
            "{low} {high}"
        );
        let (ninth, [_, most]) = quantile(&mut [1.0, 2.0, 3.0], 0.9);
        assert!(ninth == 3.0 && most == 3.0);
        assert!(quantile(&mut [], 0.5).0.is_nan());
    }

    #[test]
    fn a_share_has_an_interval_at_its_ends_too() {
        let (all, [low, high]) = share(1000.0, 1000.0);
        assert!(
            all == 1.0 && high == 1.0 && (low - 0.99617).abs() < 1e-5,
            "{low}"
        );
        let (half, [low, high]) = share(50.0, 100.0);
        assert!(half == 0.5 && (low - 0.40383).abs() < 1e-5 && (high - 0.59617).abs() < 1e-5);
    }

    #[test]
    fn students_t_goes_on_beyond_its_table() {
        for (freedom, t) in [(15, 2.131), (16, 2.120), (30, 2.042), (120, 1.980)] {
            assert!((students_t(freedom) - t).abs() < 2e-3, "{freedom}");
        }
    }

    #[test]
    fn a_line_has_its_slope_and_interval() {
        let points = [(1.0, 2.1), (2.0, 3.9), (3.0, 6.2), (4.0, 7.8), (5.0, 10.1)];
        let line = line(&points);
        assert!((line.slope - 1.99).abs() < 1e-9, "{line:?}");
        assert!((line.start - 0.05).abs() < 1e-9, "{line:?}");
        // 3.182 * sqrt(0.107 / 3 / 10)
        assert!((line.half_width - 0.190).abs() < 1e-3, "{line:?}");
        assert_eq!(super::line(&points[..2]).half_width, f64::INFINITY);
    }
}
