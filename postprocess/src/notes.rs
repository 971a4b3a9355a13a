//! Notes on missing data.

use unfuse_format::{EVENT_LOG, ProcessRow, counted};

/// A sentence for each kind of loss in a process.
pub fn notes(processes: &[ProcessRow]) -> Vec<String> {
    let sum = |count: fn(&ProcessRow) -> u64| -> u64 {
        processes
            .iter()
            .fold(0, |sum, process| sum.saturating_add(count(process)))
    };
    let brief_s = sum(|p| p.brief_ns) as f64 / 1e9;
    let brief = format!("ended too early to be sampled, after {brief_s:.1} s of CPU time in total");
    let brief_threads = if brief_s < 0.05 {
        0
    } else {
        sum(|p| p.brief_threads)
    };
    let unended = |process: &ProcessRow| {
        u64::from(process.ended == Some(false) && process.source != EVENT_LOG)
    };
    let waiting_ns = sum(|p| p.waiting_ns);
    // A smaller part is not worth a note.
    let percent = |ns: u64| {
        let percent = ns.saturating_mul(100).checked_div(waiting_ns);
        percent.filter(|percent| *percent >= 5).unwrap_or(0)
    };
    let counts = [
        (
            sum(unended),
            "JVM",
            "did not finish recording: still running, or killed before the last data was written or copied",
        ),
        (brief_threads, "thread", brief.as_str()),
        (sum(|p| p.lost_samples), "sample", "lost by the kernel"),
        (
            sum(|p| p.lost_ranges),
            "compiled method",
            "did not fit into the code map (agent option map=MiB)",
        ),
        (
            sum(|p| p.lost_marks),
            "task mark",
            "lost: overwritten before a sampler read it",
        ),
        (
            sum(|p| p.lost_events),
            "event",
            "lost (plans, stages, sources)",
        ),
        (
            sum(|p| p.broken_chains),
            "callchain",
            "ended before reaching Java callers",
        ),
    ];
    let parts = [
        (
            percent(sum(|p| p.guessed_ns)),
            "is shown where its thread was last seen running: context switches cannot be sampled here \
             (kernel.perf_event_paranoid above 1)",
        ),
        (
            percent(sum(|p| p.stackless_ns)),
            "has no stack, so its operator is unknown",
        ),
    ];
    let counts = counts.into_iter().filter(|(count, ..)| *count > 0);
    let parts = parts.into_iter().filter(|(percent, _)| *percent > 0);
    let paused_s = sum(|p| p.paused_ns) as f64 / 1e9;
    let paused = (paused_s > 0.0).then(|| {
        format!("recording was paused for {paused_s:.1} s (`unfuse pause`), summed over JVMs")
    });
    counts
        .map(|(count, what, how)| format!("{} {how}", counted(count, what)))
        .chain(parts.map(|(percent, how)| format!("{percent}% of the waiting time {how}")))
        .chain(paused)
        .chain(processes.iter().filter_map(completeness))
        .collect()
}

/// The time after which the recording of an attached JVM is complete; `None` if all of it is, or if this is unknown.
pub fn completeness(process: &ProcessRow) -> Option<String> {
    let from_ns = process.complete_from_ns?.checked_sub(process.start_ns)?;
    if from_ns <= 0 {
        return None;
    }
    let (incomplete, all) = (process.incomplete_samples, process.samples);
    let percent = 100.0 * incomplete as f64 / all.max(1) as f64;
    Some(format!(
        "the recording of JVM {} is complete from {:.1} s on; {incomplete} of its {all} samples ({percent:.1}%) are in code \
         that the JVM had not described, or have unknown callers",
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
        // Older profiles do not have this value.
        assert!(notes(&[process(None), process(Some(true))]).is_empty());
        let said = notes(&[process(Some(false)), process(Some(true))]);
        assert!(said[0].starts_with("1 JVM did not finish"), "{said:?}");
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
