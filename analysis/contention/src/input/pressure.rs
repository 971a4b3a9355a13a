//! Pressure on memory, which no wait of a task names.

use std::collections::BTreeMap;

use unfuse_format::{HostRow, OutsideRow};

use super::hosts::{by_host, one_after_the_other, span};
use super::neighbours::name;

/// A note is worth it if processes waited for memory in a larger part of the time.
const WORTH_A_WORD: f64 = 0.05;
/// A process is named if its memory grew by at least this much, GiB.
const LEAST_GROWTH: f64 = 0.1;

/// Notes on hosts whose memory is scarce.
pub(super) fn notes(rows: &[HostRow], outside: &[OutsideRow]) -> Vec<String> {
    let hosts = by_host(rows).into_iter();
    let notes = hosts.filter_map(|(host, rows)| {
        let (mut all, mut waited) = (0.0, 0.0);
        for row in one_after_the_other(&rows) {
            let seconds = span(row).seconds();
            if let Some(pressure) = row.memory_pressure_s.filter(|s| s.is_finite()) {
                all += seconds;
                waited += pressure.clamp(0.0, seconds);
            }
        }
        let part = waited / all;
        (part > WORTH_A_WORD).then(|| {
            format!(
                "on {host} processes waited for memory (swap, reclaim) in {:.0}% of the time: such waits of tasks count as \
                 waits for a disk or without a known cause{}",
                part * 100.0,
                largest(host, outside)
            )
        })
    });
    notes.collect()
}

/// The process outside Spark whose resident memory grew most.
fn largest(host: &str, outside: &[OutsideRow]) -> String {
    let mut growth: BTreeMap<(u32, String), f64> = BTreeMap::new();
    for row in outside.iter().filter(|row| row.host == host) {
        let gib = row.resident_growth_bytes as f64 / f64::from(1 << 30);
        *growth.entry((row.pid, name(row))).or_default() += gib;
    }
    let most = growth.into_iter().max_by(|(_, a), (_, b)| a.total_cmp(b));
    match most {
        Some(((_, name), gib)) if gib >= LEAST_GROWTH => {
            format!(". In that time, the memory of {name} grew by {gib:.1} GiB")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scarce_memory_is_worth_a_note() {
        let row = |memory_pressure_s| HostRow {
            host: "h".to_owned(),
            end_ns: 10_000_000_000,
            memory_pressure_s,
            ..HostRow::default()
        };
        for little in [None, Some(0.1), Some(f64::NAN), Some(-1.0)] {
            assert_eq!(notes(&[row(little)], &[]), [""; 0]);
        }
        let grown = OutsideRow {
            host: "h".to_owned(),
            command: "hog".to_owned(),
            user: "bob".to_owned(),
            resident_growth_bytes: 1 << 30,
            ..OutsideRow::default()
        };
        let found = notes(&[row(Some(5.0))], &[grown.clone(), grown]);
        assert!(found[0].contains("in 50% of the time"), "{found:?}");
        assert!(
            found[0].ends_with("memory of hog (user bob) grew by 2.0 GiB"),
            "{found:?}"
        );
        let found = notes(&[row(Some(99.0))], &[]);
        assert!(found[0].contains("in 100%"), "{found:?}");
    }
}
