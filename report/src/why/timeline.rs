//! The wall time of a query, divided among the stages that ran and the gaps between them.

/// A stage attempt and its tasks, in ms since the epoch.
#[derive(Debug, Clone, Default)]
pub(super) struct Span {
    pub(super) from: i64,
    pub(super) to: i64,
    /// Launch and end of each task attempt.
    pub(super) tasks: Vec<(i64, i64)>,
}

/// What a stage attempt has of the wall time, and of the time of the slots.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Part {
    /// Wall time, ms. Stages that run at the same time share it equally.
    pub(super) wall: f64,
    /// Slots that had no task of the query meanwhile, slot-ms, shared in the same way.
    pub(super) idle: f64,
    /// Of these, slots that had tasks of other queries.
    pub(super) taken: f64,
}

/// Wall time in which no stage ran, ms.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Gaps {
    /// Before the first stage.
    pub(super) before: f64,
    /// Between stages.
    pub(super) between: f64,
    /// After the last stage.
    pub(super) after: f64,
}

/// Something that changes at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    StageEnds(usize),
    TaskEnds,
    OtherEnds,
    StageBegins(usize),
    TaskBegins,
    OtherBegins,
}

/// Divides the time `from..to` of a query that has so many slots. Wall times of all stages and the gaps add up to its length.
/// `others` has launch and end of tasks of other queries.
pub(super) fn divide(
    (from, to): (i64, i64),
    spans: &[Span],
    others: &[(i64, i64)],
    slots: f64,
) -> (Vec<Part>, Gaps) {
    let within = |time: i64| time.clamp(from, to);
    let mut changes: Vec<(i64, Change)> = Vec::new();
    for (stage, span) in spans.iter().enumerate() {
        if within(span.from) < within(span.to) {
            changes.push((within(span.from), Change::StageBegins(stage)));
            changes.push((within(span.to), Change::StageEnds(stage)));
        }
        for (launched, finished) in &span.tasks {
            if within(*launched) < within(*finished) {
                changes.push((within(*launched), Change::TaskBegins));
                changes.push((within(*finished), Change::TaskEnds));
            }
        }
    }
    for (launched, finished) in others {
        if within(*launched) < within(*finished) {
            changes.push((within(*launched), Change::OtherBegins));
            changes.push((within(*finished), Change::OtherEnds));
        }
    }
    changes.sort_unstable();
    let mut parts = vec![Part::default(); spans.len()];
    // What a stage that runs from the beginning on would have by now.
    let mut sum = Part::default();
    let (mut gaps, mut now) = (Gaps::default(), from);
    let (mut running, mut tasks, mut begun) = (0usize, 0usize, false);
    let mut beside = 0usize;
    for (time, change) in changes.into_iter().chain([(to, Change::TaskEnds)]) {
        let ms = (time - now) as f64;
        now = time;
        if running > 0 {
            sum.wall += ms / running as f64;
            let idle = (slots - tasks as f64).max(0.0);
            sum.idle += ms * idle / running as f64;
            sum.taken += ms * idle.min(beside as f64) / running as f64;
        } else if begun {
            gaps.after += ms;
        } else {
            gaps.before += ms;
        }
        match change {
            Change::StageBegins(stage) => {
                if running == 0 {
                    gaps.between += std::mem::take(&mut gaps.after);
                }
                (running, begun) = (running + 1, true);
                parts[stage].wall -= sum.wall;
                parts[stage].idle -= sum.idle;
                parts[stage].taken -= sum.taken;
            }
            Change::StageEnds(stage) => {
                running -= 1;
                parts[stage].wall += sum.wall;
                parts[stage].idle += sum.idle;
                parts[stage].taken += sum.taken;
            }
            Change::TaskBegins => tasks += 1,
            Change::TaskEnds => tasks = tasks.saturating_sub(1),
            Change::OtherBegins => beside += 1,
            Change::OtherEnds => beside = beside.saturating_sub(1),
        }
    }
    (parts, gaps)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn span(from: i64, to: i64, tasks: &[(i64, i64)]) -> Span {
        Span {
            from,
            to,
            tasks: tasks.to_vec(),
        }
    }

    #[test]
    fn stages_share_the_time_in_which_they_run_together() {
        let spans = [
            span(10, 30, &[(10, 30), (10, 20)]),
            span(20, 40, &[(20, 40)]),
            span(60, 80, &[(60, 70), (60, 80)]),
        ];
        let (parts, gaps) = divide((0, 100), &spans, &[], 2.0);
        let expected = Gaps {
            before: 10.0,
            between: 20.0,
            after: 20.0,
        };
        assert_eq!(gaps, expected);
        assert_eq!(
            parts.iter().map(|part| part.wall).collect::<Vec<_>>(),
            [15.0, 15.0, 20.0]
        );
        // From 30 to 40 one slot has no task, and from 70 to 80 too.
        assert_eq!(
            parts.iter().map(|part| part.idle).collect::<Vec<_>>(),
            [0.0, 10.0, 10.0]
        );
    }

    #[test]
    fn slots_that_have_tasks_of_other_queries_are_taken() {
        let spans = [span(0, 40, &[(0, 10), (20, 30), (30, 40)])];
        // Both slots from 10 to 20, one from 20 to 25, and one from 35 on.
        let others = [(10, 20), (10, 25), (35, 40)];
        let (parts, _) = divide((0, 40), &spans, &others, 2.0);
        assert_eq!(parts[0].idle, 50.0);
        assert_eq!(parts[0].taken, 30.0);
    }

    proptest! {
        #[test]
        fn all_adds_up(
            spans in prop::collection::vec((0i64..1000, 0i64..300, prop::collection::vec((-50i64..1100, -10i64..200), 0..6)), 0..8),
            to in 0i64..900,
        ) {
            let spans: Vec<Span> = spans
                .into_iter()
                .map(|(from, length, tasks)| span(from, from + length, &tasks.into_iter().map(|(at, ms)| (at, at + ms)).collect::<Vec<_>>()))
                .collect();
            let (parts, gaps) = divide((0, to), &spans, &[(100, 400), (200, 300)], 4.0);
            let sum: f64 = parts.iter().map(|part| part.wall).sum::<f64>() + gaps.before + gaps.between + gaps.after;
            prop_assert!((sum - to as f64).abs() < 1e-6, "{sum} of {to}");
            prop_assert!(parts.iter().all(|part| part.wall > -1e-6 && part.taken > -1e-6 && part.idle > part.taken - 1e-6));
        }
    }
}
