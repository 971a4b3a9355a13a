//! Containers with a CPU limit: queries contend for the limit, not for the CPUs of the machine.

use std::collections::BTreeMap;

use unfuse_format::HostRow;

use super::hosts::drop_gaps;

/// A note is worth it if the limit was reached in a larger part of its periods.
const WORTH_A_WORD: f64 = 0.05;

/// The number of CPUs that a row's processes can use together.
pub(super) fn cpus(row: &HostRow) -> f64 {
    row.cpu_limit.unwrap_or(f64::from(row.cpus))
}

/// If all profiled JVMs of a host are in one control group with a CPU limit, changes the host's rows to describe that
/// group instead of the machine: `cpu_s` becomes the group's use, plus the part of its unused allowance that others
/// took from the rest of the machine. Other limits are dropped. Returns notes.
pub(super) fn apply(rows: &mut Vec<HostRow>) -> Vec<String> {
    drop_gaps(rows, |row| row.cpu_group.is_some());
    let mut by_host: BTreeMap<String, Vec<&mut HostRow>> = BTreeMap::new();
    for row in rows {
        by_host.entry(row.host.clone()).or_default().push(row);
    }
    let mut notes = Vec::new();
    for (host, mut rows) in by_host {
        let group = rows.iter().find_map(|row| row.cpu_group.clone());
        let Some(group) = group else { continue };
        let contained = |row: &&mut HostRow| row.cpu_group.as_ref() == Some(&group);
        if !rows.iter().all(contained) {
            notes.push(format!(
                "profiled JVMs on {host} have CPU limits of their own, or some have none: the CPUs of the whole machine count as \
                 the capacity{}",
                match rows.iter().any(|row| row.throttled_s.is_some()) {
                    true => "",
                    false => ", and waits because of a limit are attributed to no culprit",
                }
            ));
            rows.iter_mut().for_each(|row| row.cpu_limit = None);
            continue;
        }
        let (mut seconds, mut throttled, mut most) = (0.0, 0.0, 0.0_f64);
        let known = rows.iter().any(|row| row.throttled_s.is_some());
        for row in rows {
            contain(row);
            if let Some(limit) = row.cpu_limit {
                most = most.max(limit);
                seconds += length(row);
                throttled += length(row) * row.throttled_part.unwrap_or(0.0);
            }
        }
        let throttled = throttled / seconds;
        let group = group.split('#').next().unwrap_or_default();
        if throttled > WORTH_A_WORD {
            notes.push(format!(
                "on {host} the CPU limit of {most} ({group}) was used up in {:.0}% of its periods: a higher limit would \
                 shorten the waits for the CPU{}",
                throttled * 100.0,
                // The culprit `Own limit` says the same, with its share.
                if known { "" } else { ", whichever culprit is blamed for them" }
            ));
        }
    }
    notes
}

/// Length of a row, s.
fn length(row: &HostRow) -> f64 {
    row.end_ns.saturating_sub(row.start_ns).max(0) as f64 / 1e9
}

fn contain(row: &mut HostRow) {
    let machine = f64::from(row.cpus);
    let limit = row.cpu_limit.filter(|limit| *limit < machine);
    let (Some(limit), Some(used)) = (limit, row.group_cpu_s) else {
        row.cpu_limit = None;
        return;
    };
    let seconds = length(row);
    let rest = machine * seconds - used;
    let others = (row.cpu_s - used).max(0.0);
    let unused = (limit * seconds - used).max(0.0);
    let taken = if rest > 0.0 {
        (others / rest).min(1.0)
    } else {
        0.0
    };
    let contained = used + unused * taken;
    // The hypervisor takes the same part of what the group does.
    if row.cpu_s > 0.0 {
        row.stolen_cpu_s = row
            .stolen_cpu_s
            .map(|stolen| stolen * contained / row.cpu_s);
    }
    row.cpu_s = contained;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(pid: u32, group: &str, used: f64) -> HostRow {
        HostRow {
            host: "h".to_owned(),
            pid,
            end_ns: 10_000_000_000,
            cpus: 8,
            cpu_s: 41.0,
            cpu_limit: Some(2.0),
            cpu_group: Some(group.to_owned()),
            group_cpu_s: Some(used),
            throttled_part: Some(0.5),
            ..HostRow::default()
        }
    }

    #[test]
    fn the_limit_is_the_capacity_of_a_container() {
        let leaving = HostRow {
            cpu_group: None,
            cpu_limit: None,
            start_ns: 10_000_000_000,
            end_ns: 11_000_000_000,
            ..row(1, "", 0.0)
        };
        let mut rows = vec![row(1, "/a#7", 20.0), row(1, "/a#7", 11.0), leaving];
        let notes = apply(&mut rows);
        assert_eq!((rows.len(), cpus(&rows[0])), (2, 2.0));
        // All of its allowance; then, of the 9 s that it did not use, the part that others took: 30 of the machine's
        // other 69.
        assert_eq!(rows[0].cpu_s, 20.0);
        assert!((rows[1].cpu_s - (11.0 + 9.0 * 30.0 / 69.0)).abs() < 1e-9);
        assert!(
            notes[0].contains("CPU limit of 2 (/a) was used up in 50%"),
            "{notes:?}"
        );
    }

    #[test]
    fn containers_beside_each_other_share_the_machine() {
        let mut rows = vec![row(1, "/a#7", 20.0), row(2, "/a#8", 20.0)];
        let notes = apply(&mut rows);
        assert_eq!((cpus(&rows[0]), rows[0].cpu_s), (8.0, 41.0));
        assert!(notes[0].contains("CPU limits of their own"), "{notes:?}");
        let mut rows = vec![row(1, "/a#7", 20.0)];
        rows[0].cpus = 2;
        assert_eq!(apply(&mut rows), [""; 0]);
        assert_eq!((cpus(&rows[0]), rows[0].cpu_s), (2.0, 41.0));
    }
}
