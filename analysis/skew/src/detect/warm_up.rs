//! The part of the first tasks' time that is warm-up.

use super::stats::{chance_if_spread_known, chance_of_outlier, median, spread};

/// Lower limit of relative spreads, which are divisors.
const LEAST: f64 = 1e-9;

/// The first tasks and the others; all values are relative to the expected time of each task.
pub(super) struct WarmUp {
    /// The rest of the first tasks' time, sorted.
    first: Vec<f64>,
    first_spread: f64,
    later: f64,
    later_spread: f64,
    tasks: usize,
    /// Maximum probability that chance makes a task look slow.
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

    /// The warm-up in a first task's rest: all of it if it is slow beyond chance and does not stand out even among the
    /// first tasks, as tasks differ much in their warm-up; else at most the median rest of the other first tasks.
    pub(super) fn part(&self, own: f64) -> f64 {
        let usual = (self.of_others(own) - self.later).max(0.0);
        let slow = (own - self.later) / self.later_spread.max(LEAST);
        let all = chance_of_outlier(slow, self.tasks) < self.most && !self.stands_out(own);
        if all { own } else { own.min(usual) }.max(0.0)
    }

    /// Whether it is slow even among the first tasks. With many of them, their spread decides. With few, it says
    /// little: then they are assumed to differ by about as much as they warm up, so none of them warms up for several
    /// times as long as any other. A slow record in one of two first tasks is no warm-up just because the other took
    /// some ms more.
    fn stands_out(&self, own: f64) -> bool {
        let n = self.first.len();
        let among = (own - median(self.first.iter().copied())) / self.first_spread.max(LEAST);
        let slowest = self.slowest_other(own);
        let scale = (slowest - self.later).max(self.later_spread).max(LEAST);
        chance_of_outlier(among, n) < self.most
            || chance_if_spread_known((own - slowest) / scale, n) < self.most
    }

    /// The largest rest among the other first tasks; its own if there are none.
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

    /// The median rest of the other first tasks; its own if there are none.
    fn of_others(&self, own: f64) -> f64 {
        let Some(others) = self.first.len().checked_sub(1).filter(|n| *n > 0) else {
            return own;
        };
        let itself = self.first.partition_point(|other| *other < own);
        let other = |index: usize| self.first[index + usize::from(index >= itself)];
        f64::midpoint(other((others - 1) / 2), other(others / 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The warm-up of each of some first tasks; the other tasks have 0 within 1%.
    fn parts(first: &[f64]) -> Vec<f64> {
        let later = (0..40).map(|index| f64::from(index % 5 - 2) / 200.0);
        let all: Vec<f64> = first.iter().copied().chain(later).collect();
        let is_first: Vec<bool> = (0..all.len()).map(|index| index < first.len()).collect();
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
            .for_each(|(own, index)| *own += f64::from(index % 3) / 10.0);
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
        // The other one is slow for a reason of its own.
        assert_eq!(parts(&[0.01, 30.0]), [0.01, 0.01]);
        assert_eq!(parts(&[-0.01, 30.0])[0], 0.0);
    }
}
