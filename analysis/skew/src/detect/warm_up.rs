//! How much of the time of a stage's first tasks is for warming up.

use super::stats::{chance_if_spread_known, chance_of_outlier, median, spread};

/// Relative spreads are no less, as they are divided by.
const LEAST: f64 = 1e-9;

/// What first tasks are like, and the others; all relative to what is expected of each task.
pub(super) struct WarmUp {
    /// Of the first tasks what is left, sorted.
    first: Vec<f64>,
    first_spread: f64,
    later: f64,
    later_spread: f64,
    tasks: usize,
    /// How often chance may make a task look slow.
    most: f64,
}

impl WarmUp {
    pub(super) fn new(relative: &[f64], is_first: &[bool], most: f64) -> Self {
        let those = |first: bool| -> Vec<f64> {
            let values = relative.iter().zip(is_first);
            let values = values.filter(|(_, is)| **is == first);
            values.map(|(own, _)| *own).collect()
        };
        let (mut first, later) = (those(true), those(false));
        first.sort_by(f64::total_cmp);
        Self {
            first_spread: spread(&first),
            first,
            later: median(later.iter().copied()),
            later_spread: spread(&later),
            tasks: relative.len(),
            most,
        }
    }

    /// What is for warming up of what is left of a first task. Some take much longer to warm up than others, so it is all that is
    /// left, but of two kinds no more than the others have: of what is not slow beyond chance, and of what is even among the first.
    pub(super) fn part(&self, own: f64) -> f64 {
        let usual = (self.of_others(own) - self.later).max(0.0);
        let slow = (own - self.later) / self.later_spread.max(LEAST);
        let all = chance_of_outlier(slow, self.tasks) < self.most && !self.stands_out(own);
        if all { own } else { own.min(usual) }.max(0.0)
    }

    /// Whether it is slow even among the first tasks. How they differ says so where they are many. Where they are few, that says
    /// little: then they are taken to differ by about as much as they warm up, so that none of them warms up for several times as
    /// long as any other. A slow record in one of two first tasks is no warm-up because the other took some ms more.
    fn stands_out(&self, own: f64) -> bool {
        let n = self.first.len();
        let among = (own - median(self.first.iter().copied())) / self.first_spread.max(LEAST);
        let slowest = self.slowest_other(own);
        let scale = (slowest - self.later).max(self.later_spread).max(LEAST);
        chance_of_outlier(among, n) < self.most
            || chance_if_spread_known((own - slowest) / scale, n) < self.most
    }

    /// The most that another of the first tasks has; its own if there are none.
    fn slowest_other(&self, own: f64) -> f64 {
        match self.first.as_slice() {
            [.., other, last] => {
                if own < *last {
                    *last
                } else {
                    *other
                }
            }
            _ => own,
        }
    }

    /// The median of the other first tasks; its own if there are none.
    fn of_others(&self, own: f64) -> f64 {
        let Some(others) = self.first.len().checked_sub(1).filter(|n| *n > 0) else {
            return own;
        };
        let itself = self.first.partition_point(|other| *other < own);
        let other = |at: usize| self.first[at + usize::from(at >= itself)];
        f64::midpoint(other((others - 1) / 2), other(others / 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is for warming up of each of some first tasks, whose others have 0 within a hundredth.
    fn parts(first: &[f64]) -> Vec<f64> {
        let later = (0..40).map(|at| f64::from(at % 5 - 2) / 200.0);
        let all: Vec<f64> = first.iter().copied().chain(later).collect();
        let is_first: Vec<bool> = (0..all.len()).map(|at| at < first.len()).collect();
        let warm_up = WarmUp::new(&all, &is_first, 0.01);
        first.iter().map(|own| warm_up.part(*own)).collect()
    }

    #[test]
    fn first_tasks_may_warm_up_for_different_times() {
        assert_eq!(parts(&[8.0, 12.0]), [8.0, 12.0]);
        assert_eq!(parts(&[3.0, 9.0, 5.0, 7.0]), [3.0, 9.0, 5.0, 7.0]);
        assert_eq!(parts(&[9.0]), [9.0]);
    }

    #[test]
    fn one_that_takes_many_times_as_long_as_its_like_has_as_much_as_they() {
        let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(close(parts(&[0.1, 30.0])[1], 0.1));
        assert!(close(parts(&[1.0, 1.2, 1.1, 30.0])[3], 1.1));
        let mut many = vec![5.0; 30];
        many.iter_mut()
            .zip(0..)
            .for_each(|(own, at)| *own += f64::from(at % 3) / 10.0);
        many[7] = 50.0;
        assert!(close(parts(&many)[7], 5.1));
    }

    #[test]
    fn where_one_warms_up_another_may() {
        let first = [14.0, 14.1, 14.2, 25.0, 0.01, 0.01, 0.01, 0.01];
        assert_eq!(parts(&first)[..4], first[..4]);
    }

    #[test]
    fn those_that_are_not_slow_have_no_more_than_is_usual() {
        assert_eq!(parts(&[0.02, 0.02, 0.03]), [0.02, 0.02, 0.02]);
        // The other is slow for itself.
        assert_eq!(parts(&[0.01, 30.0]), [0.01, 0.01]);
        assert_eq!(parts(&[-0.01, 30.0])[0], 0.0);
    }
}
