//! JVMs that may run on some CPUs of their host only, as static CPU managers give them to containers.

use std::collections::{BTreeMap, BTreeSet};

use unfuse_format::{HostRow, OutsideRow};

use super::hosts::{drop_gaps, span};

/// Changes the rows of hosts to describe the CPUs on which their JVMs may run, and those of processes beside them to what
/// these could use there. Where JVMs of one host had different sets at the same time, all CPUs of the machine count.
/// Returns notes.
pub(super) fn apply(hosts: &mut Vec<HostRow>, outside: &mut [OutsideRow]) -> Vec<String> {
    if hosts.iter().all(|row| row.cpu_set.is_none()) {
        return Vec::new();
    }
    drop_gaps(hosts, |row| row.cpu_set.is_some());
    let differ = differing(hosts);
    let mut own = BTreeSet::new();
    for (index, row) in hosts.iter_mut().enumerate() {
        if row.cpu_set.is_some() && !differ.contains(&index) {
            row.stolen_cpu_s = row.usable_stolen_cpu_s();
            (row.cpus, row.cpu_s) = (row.usable_cpus(), row.usable_cpu_s());
            own.insert((row.host.clone(), row.pid));
        }
    }
    let of = |host: &HostRow| (host.host.clone(), host.pid);
    let mixed: BTreeSet<_> = differ.iter().map(|index| of(&hosts[*index])).collect();
    for row in outside {
        let jvm = (row.host.clone(), row.pid);
        if own.contains(&jvm) && !mixed.contains(&jvm) {
            row.cpu_s = row.set_cpu_s.unwrap_or(row.cpu_s);
        }
    }
    let hosts: BTreeSet<&String> = mixed.iter().map(|(host, _)| host).collect();
    let note = |host: &&String| {
        format!(
            "profiled JVMs on {host} may run on different CPUs: all CPUs of the machine count for each of them"
        )
    };
    hosts.iter().map(note).collect()
}

/// Indices of rows during which another JVM of the host had another set, or none.
fn differing(rows: &[HostRow]) -> BTreeSet<usize> {
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by_key(|index| rows[*index].start_ns);
    // The latest row of each JVM so far.
    let mut latest: BTreeMap<&str, BTreeMap<u32, usize>> = BTreeMap::new();
    let mut differ = BTreeSet::new();
    for index in order {
        let row = &rows[index];
        let of_host = latest.entry(&row.host).or_default();
        for other in of_host.values() {
            let overlaps = span(&rows[*other]).end > span(row).start;
            if rows[*other].pid != row.pid && overlaps && rows[*other].cpu_set != row.cpu_set {
                differ.extend([*other, index]);
            }
        }
        of_host.insert(row.pid, index);
    }
    differ
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(pid: u32, start_ns: i64, set: Option<&str>) -> HostRow {
        HostRow {
            host: "h".to_owned(),
            pid,
            start_ns,
            end_ns: start_ns + 10,
            cpus: 8,
            cpu_s: 7.0,
            stolen_cpu_s: Some(0.5),
            cpu_set: set.map(str::to_owned),
            set_cpus: set.map(|_| 2),
            set_cpu_s: set.map(|_| 1.5),
            set_stolen_cpu_s: set.map(|_| 0.1),
            ..HostRow::default()
        }
    }

    /// CPUs, their use and what was stolen.
    type Cpus = (u32, f64, Option<f64>);

    /// The CPUs of each row; CPU time of a process beside the first JVM; number of notes.
    fn applied(mut rows: Vec<HostRow>) -> (Vec<Cpus>, f64, usize) {
        let mut outside = [OutsideRow {
            host: "h".to_owned(),
            pid: 1,
            cpu_s: 5.0,
            set_cpu_s: Some(0.2),
            ..OutsideRow::default()
        }];
        let notes = apply(&mut rows, &mut outside).len();
        let rows = rows.iter();
        let rows = rows.map(|row| (row.cpus, row.cpu_s, row.stolen_cpu_s));
        (rows.collect(), outside[0].cpu_s, notes)
    }

    const OWN: Cpus = (2, 1.5, Some(0.1));
    const ALL: Cpus = (8, 7.0, Some(0.5));

    #[test]
    fn the_set_counts_where_all_jvms_have_it() {
        let (a, b) = (Some("0-1"), Some("2-3"));
        assert_eq!(
            applied(vec![row(1, 0, a), row(2, 5, a)]),
            (vec![OWN; 2], 0.2, 0)
        );
        assert_eq!(
            applied(vec![row(1, 0, a), row(2, 5, b)]),
            (vec![ALL; 2], 5.0, 1)
        );
        assert_eq!(
            applied(vec![row(1, 0, a), row(2, 5, None)]),
            (vec![ALL; 2], 5.0, 1)
        );
        assert_eq!(applied(vec![row(1, 0, None)]), (vec![ALL], 5.0, 0));
        // One after the other.
        assert_eq!(
            applied(vec![row(1, 0, a), row(2, 10, b)]),
            (vec![OWN; 2], 0.2, 0)
        );
    }

    #[test]
    fn a_set_may_change() {
        let rows = vec![
            row(1, 0, Some("0-1")),
            row(1, 10, None),
            row(1, 20, Some("2-3")),
        ];
        assert_eq!(applied(rows), (vec![OWN; 2], 0.2, 0));
    }
}
