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
    .chain(processes.iter().filter_map(completeness))
    .collect()
}

/// From when on the recording of a JVM that ran before is complete; `None` where all of it is, or that is not known.
pub fn completeness(process: &ProcessRow) -> Option<String> {
    let from_ns = process.complete_from_ns?.checked_sub(process.start_ns)?;
    if from_ns <= 0 {
        return None;
    }
    let (incomplete, all) = (process.incomplete_samples, process.samples);
    let percent = 100.0 * incomplete as f64 / all.max(1) as f64;
    Some(format!(
        "the recording of JVM {} is complete from {:.1} s on; {incomplete} of its {all} samples ({percent:.1}%) are in code \
         that the JVM had not described, or have callers that are not known",
        process.pid,
        from_ns as f64 / 1e9,
    ))
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

    #[test]
    fn a_recording_that_begins_before_code_is_described_says_until_when() {
        let process = |complete_from_ns| ProcessRow {
            pid: 7,
            start_ns: 5_000_000_000,
            complete_from_ns,
            incomplete_samples: 30,
            samples: 240,
            ..ProcessRow::default()
        };
        let complete = [None, Some(5_000_000_000)].map(process);
        assert!(notes(&complete).is_empty());
        let said = notes(&[process(Some(8_200_000_000))]);
        let expected = "the recording of JVM 7 is complete from 3.2 s on; 30 of its 240 samples (12.5%) are in code";
        assert!(said[0].starts_with(expected), "{said:?}");
    }
}
