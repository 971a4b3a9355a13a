//! What is not in the numbers.

use unfuse_format::ProcessRow;

/// A sentence for each thing that was lost in some process.
pub fn notes(processes: &[ProcessRow]) -> Vec<String> {
    let sum = |count: fn(&ProcessRow) -> u64| -> u64 {
        processes
            .iter()
            .fold(0, |sum, process| sum.saturating_add(count(process)))
    };
    let brief_s = sum(|p| p.brief_ns) as f64 / 1e9;
    let brief = format!("threads ended before they could be sampled; they used {brief_s:.1} s");
    let brief_threads = if brief_s < 0.05 {
        0
    } else {
        sum(|p| p.brief_threads)
    };
    let unended = |process: &ProcessRow| u64::from(process.ended == Some(false));
    let waiting_ns = sum(|p| p.waiting_ns);
    // Of few of them nobody need know.
    let percent = |ns: u64| {
        let percent = ns.saturating_mul(100).checked_div(waiting_ns);
        percent.filter(|percent| *percent >= 5).unwrap_or(0)
    };
    [
        (
            sum(unended),
            "JVMs did not finish their profiles: they still run, or were killed and lack what was not yet written or copied",
        ),
        (brief_threads, brief.as_str()),
        (sum(|p| p.lost_samples), "samples were lost by the kernel"),
        (
            sum(|p| p.lost_ranges),
            "compiled methods did not fit into the code map (agent option map=MiB)",
        ),
        (
            sum(|p| p.lost_marks),
            "task marks were overwritten before they were read",
        ),
        (
            sum(|p| p.lost_events),
            "events (plans, stages, sources) were lost",
        ),
        (
            sum(|p| p.broken_chains),
            "callchains ended before their Java callers",
        ),
        (
            percent(sum(|p| p.guessed_ns)),
            "% of the waiting is shown where its thread was last seen running: context switches cannot be sampled \
             here (kernel.perf_event_paranoid above 1)",
        ),
        (
            percent(sum(|p| p.stackless_ns)),
            "% of the waiting has no stack, so that its operator is not known",
        ),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, what)| match what.strip_prefix('%') {
        Some(what) => format!("{count}%{what}"),
        None => format!("{count} {what}"),
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_jvm_that_says_so_has_not_ended() {
        let process = |ended| ProcessRow {
            ended,
            ..ProcessRow::default()
        };
        // Older profiles do not say.
        assert!(notes(&[process(None), process(Some(true))]).is_empty());
        let said = notes(&[process(Some(false)), process(Some(true))]);
        assert!(said[0].starts_with("1 JVMs did not finish"), "{said:?}");
    }
}
