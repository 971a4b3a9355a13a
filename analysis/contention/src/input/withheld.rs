//! CPU time that no neighbour used: the limit of the JVMs' own control group held them back, or the hypervisor did.

use std::collections::{BTreeMap, BTreeSet};

use unfuse_format::HostRow;

use super::hosts::{Processes, by_host, one_after_the_other, span};
use super::{Builder, position};
use crate::windows::spread;
use crate::workload::is_amount;
use crate::{Executor, HostId, Kind, KnownProcess, Span, Withheld};

/// Adds what the hosts' counters say. Without the counters of earlier versions nothing is known.
pub(super) fn add(builder: &mut Builder, rows: &[HostRow], executors: &Processes) {
    let mut found = Vec::new();
    for (name, rows) in by_host(rows) {
        let host = builder.host(name);
        found.extend(
            one_after_the_other(&rows)
                .into_iter()
                .filter_map(|row| stolen(host, row)),
        );
        let mut groups: BTreeMap<&str, Group<'_>> = BTreeMap::new();
        for row in &rows {
            let Some(group) = &row.cpu_group else {
                continue;
            };
            let group = groups.entry(group).or_default();
            group.rows.push(row);
            let key = (row.app.clone(), row.host.clone(), row.pid);
            group.executors.extend(executors.get(&key));
        }
        for group in groups.values() {
            found.extend(group.throttled(builder, host));
        }
    }
    builder.tables.withheld.extend(found);
}

/// Steal: while a task waits for a CPU, that CPU runs another or is stolen, so the stolen part of the busy time is that of
/// the wait.
fn stolen(host: HostId, row: &HostRow) -> Option<Withheld> {
    let stolen = row.stolen_cpu_s.filter(|s| *s > 0.0 && is_amount(*s))?;
    let part = stolen / (stolen + row.cpu_s.max(0.0));
    (0.0..=1.0).contains(&part).then_some(Withheld {
        host,
        executor: None,
        process: KnownProcess::Hypervisor,
        span: span(row),
        part,
        units: stolen,
    })
}

/// The profiled JVMs of a control group with a CPU limit.
#[derive(Default)]
struct Group<'a> {
    rows: Vec<&'a HostRow>,
    executors: BTreeSet<Executor>,
}

impl Group<'_> {
    /// The part of its tasks' waits in which the limit held the group back.
    fn throttled(&self, builder: &Builder, host: HostId) -> Vec<Withheld> {
        let rows = one_after_the_other(&self.rows);
        let windows: Vec<Span> = rows.iter().map(|row| span(row)).collect();
        let demand = self.demand(builder, host, &windows);
        let parts = rows.into_iter().zip(windows).zip(demand);
        let parts = parts.filter_map(|((row, span), demand)| {
            let part = demand.throttled_part(row, span.seconds())?;
            Some(self.executors.iter().map(move |executor| Withheld {
                host,
                executor: Some(*executor),
                process: KnownProcess::OwnLimit,
                span,
                part,
                units: 0.0,
            }))
        });
        parts.flatten().collect()
    }

    fn demand(&self, builder: &Builder, host: HostId, windows: &[Span]) -> Vec<Demand> {
        let mut demand = vec![Demand::default(); windows.len()];
        for row in builder
            .tables
            .intervals
            .iter()
            .filter(|row| row.kind == Kind::RunQueue)
        {
            let task = &builder.tables.tasks[position(row.task)];
            if task.host != host || !self.executors.contains(&task.executor) {
                continue;
            }
            for (index, part) in spread(windows, row.span) {
                demand[index].used_s += row.units * part;
                demand[index].waited_s += row.blocked_ns as f64 / 1e9 * part;
            }
        }
        demand
    }
}

/// CPU time that tasks wanted in a window.
#[derive(Debug, Clone, Copy, Default)]
struct Demand {
    /// What they got, s.
    used_s: f64,
    /// The run-queue waits, s.
    waited_s: f64,
}

impl Demand {
    /// The part of the run-queue waits in which the limit held their group back, 0 to 1.
    ///
    /// The kernel counts for each CPU how long it held back a group that had work there. The CPUs with work of the group
    /// are at least as many as ran it or held it back, and, up to all, as many as it had tasks that wanted one. In the
    /// held-back part of that time no task of the group runs, and all that want to run wait.
    fn throttled_part(self, row: &HostRow, seconds: f64) -> Option<f64> {
        let throttled = row.throttled_s.filter(|s| *s > 0.0 && is_amount(*s))?;
        let group = row.group_cpu_s.filter(|s| is_amount(*s)).unwrap_or(0.0);
        let wanted = self.used_s + self.waited_s;
        let with_work = wanted
            .min(f64::from(row.usable_cpus()) * seconds)
            .max(throttled + group);
        let part = throttled / with_work * wanted / self.waited_s;
        (self.waited_s > 0.0 && part.is_finite()).then(|| part.min(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cpus: u32, throttled_s: f64, group_cpu_s: f64) -> HostRow {
        HostRow {
            cpus,
            throttled_s: Some(throttled_s),
            group_cpu_s: Some(group_cpu_s),
            ..HostRow::default()
        }
    }

    #[test]
    fn the_held_back_part_of_waits() {
        let part = |cpus, throttled, group, used_s, waited_s| {
            let demand = Demand { used_s, waited_s };
            let part = demand.throttled_part(&row(cpus, throttled, group), 1.0);
            part.map(|part| (part * 1e4).round() / 1e4)
        };
        // A limit of 1 on 2 CPUs, 24 tasks: each CPU is held back half of the time, and a task waits for 23 of 24 parts.
        assert_eq!(part(2, 1.0, 1.0, 1.0, 23.0), Some(0.5217));
        // The same limit, two tasks on 64 CPUs: they wait only while held back.
        assert_eq!(part(64, 1.0, 1.0, 1.0, 1.0), Some(1.0));
        // A limit of half a CPU on 2, and a neighbour as large as the group until the limit is used up.
        assert_eq!(part(2, 1.0, 0.5, 0.5, 1.5), Some(0.6667));
        assert_eq!(part(2, 0.0, 1.0, 1.0, 1.0), None);
        assert_eq!(part(2, 1.0, 1.0, 1.0, 0.0), None);
        assert_eq!(part(2, f64::NAN, 1.0, 1.0, 1.0), None);
        // Odd profiles.
        for group in [0.0, f64::INFINITY, f64::NAN, -1.0] {
            let part = part(0, 1e30, group, 1e-30, 1e-30);
            assert!(
                part.is_none_or(|part| (0.0..=1.0).contains(&part)),
                "{part:?}"
            );
        }
    }

    #[test]
    fn steal_is_a_part_of_the_busy_time() {
        let row = |stolen_cpu_s, cpu_s| HostRow {
            stolen_cpu_s,
            cpu_s,
            end_ns: 1_000_000_000,
            ..HostRow::default()
        };
        let part = |stolen, cpu_s| stolen_part(&row(stolen, cpu_s));
        fn stolen_part(row: &HostRow) -> Option<f64> {
            stolen(HostId(0), row).map(|withheld| withheld.part)
        }
        assert_eq!(part(Some(0.5), 1.5), Some(0.25));
        assert_eq!(part(Some(1.0), 0.0), Some(1.0));
        for nothing in [
            None,
            Some(0.0),
            Some(f64::NAN),
            Some(-1.0),
            Some(f64::INFINITY),
        ] {
            assert_eq!(part(nothing, 1.0), None);
        }
        assert_eq!(part(Some(1.0), f64::NAN), Some(1.0));
    }
}
