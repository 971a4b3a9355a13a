//! The free part of a pool of memory.
//!
//! Spark divides execution memory evenly: with N tasks that use it, each may hold 1/N of what cached blocks leave. A task
//! with that much waits although memory is free, because the rest is kept for the other tasks. So they, and whoever filled
//! the cache, are the culprits, and not an unknown user.

/// Divides free memory among tasks that hold some, so that all of them have the same as far as possible. The results add
/// up to `free`, unless there are no tasks.
pub(crate) fn kept(held: &[f64], free: f64) -> Vec<f64> {
    let mut ascending = held.to_vec();
    ascending.sort_by(f64::total_cmp);
    // Raises the level from one task to the next, as long as the free memory suffices.
    let mut sum = free;
    let mut level = 0.0;
    for (index, held) in ascending.iter().enumerate() {
        if index > 0 && level <= *held {
            break;
        }
        sum += held;
        level = sum / (index + 1) as f64;
    }
    held.iter().map(|held| (level - held).max(0.0)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn all_tasks_get_the_same_as_far_as_possible() {
        assert_eq!(kept(&[10.0, 0.0], 50.0), [20.0, 30.0]);
        assert_eq!(kept(&[90.0, 0.0, 10.0], 20.0), [0.0, 15.0, 5.0]);
        assert_eq!(kept(&[5.0], 7.0), [7.0]);
        assert!(kept(&[], 7.0).is_empty());
    }

    proptest! {
        #[test]
        fn nothing_is_lost(held in prop::collection::vec(0.0..1e12_f64, 1..20), free in 0.0..1e12_f64) {
            let kept = kept(&held, free);
            let sum: f64 = kept.iter().sum();
            prop_assert!((sum - free).abs() <= 1e-9 * (free + held.iter().sum::<f64>()).max(1.0));
            prop_assert!(kept.iter().all(|kept| *kept >= 0.0));
        }
    }
}
