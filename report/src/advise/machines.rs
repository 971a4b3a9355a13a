//! What the machines and JVMs of an application leave unused, or lack.

use std::collections::BTreeMap;

use unfuse_format::HostRow;
use unfuse_sizing::what_if::PartKind;

use super::facts::{Facts, task_s};
use super::found::Found;
use crate::stages::Attempt;
use crate::what_if::{Remedy, Saving};
use crate::words::{self, count};

const MIB: u64 = 1 << 20;

/// The machines of an application.
pub(super) struct Machines<'a> {
    /// What was used of them, by time.
    pub(super) rows: Vec<&'a HostRow>,
    /// Number of executors; 0 if unknown.
    pub(super) executors: usize,
    /// Whether all slots are in the driver.
    pub(super) is_local: bool,
}

/// What was used of a host.
#[derive(Default)]
struct Use {
    cpus: f64,
    cpu_s: f64,
    seconds: f64,
}

/// Stages with more tasks than slots, while CPUs of the machines were idle.
pub(super) fn idle_cpus(facts: &Facts<'_>, machines: &Machines<'_>) -> Vec<Found> {
    let waiting: Vec<&Attempt> = facts
        .stages
        .iter()
        .filter(|(_, tasks)| tasks.len() > facts.slots)
        .map(|(attempt, _)| attempt)
        .collect();
    let tasks = || waiting.iter().flat_map(|attempt| facts.stages[*attempt]);
    let from = tasks().map(|task| task.launched_ms).min();
    let to = tasks().map(|task| task.finished_ms).max();
    let (Some(from), Some(to)) = (from, to) else {
        return Vec::new();
    };
    let of_hosts = machines.used((from, to));
    // A slot needs a whole CPU.
    let idle = |host: &Use| (host.cpus - host.cpu_s / host.seconds).max(0.0);
    let free: f64 = of_hosts.values().map(|host| idle(host).round()).sum();
    let executors = machines.executors.max(1);
    let of_each = (facts.slots + free as usize) / executors;
    let better = of_each * executors;
    if better <= facts.slots {
        return Vec::new();
    }
    let cpus: f64 = of_hosts.values().map(|host| host.cpus).sum();
    let unused: f64 = of_hosts.values().map(idle).sum();
    vec![Found {
        subject: count(of_hosts.len(), "host"),
        detail: format!(
            "{} of {cpus:.0} CPUs were idle on average, and Spark has {}",
            words::number(unused),
            count(facts.slots, "slot")
        ),
        value: if machines.is_local {
            format!("spark.master=local[{better}]")
        } else {
            format!("spark.executor.cores={of_each}")
        },
        seconds: tasks().map(task_s).sum(),
        remedy: Remedy::Slots(better),
        ..Found::default()
    }]
}

/// Waits of tasks for garbage collection.
pub(super) fn heap(facts: &Facts<'_>, machines: &Machines<'_>) -> Vec<Found> {
    let with_tasks = || {
        machines
            .rows
            .iter()
            .filter(|row| row.memory_bytes.is_some())
    };
    let Some(heap) = with_tasks().filter_map(|row| row.heap_bytes).max() else {
        return Vec::new();
    };
    let live = with_tasks().filter_map(|row| row.live_bytes).max();
    let larger = (heap.saturating_mul(2) / MIB).max(1);
    let role = if machines.is_local {
        "driver"
    } else {
        "executor"
    };
    vec![Found {
        subject: role.to_owned(),
        detail: match live {
            Some(live) => format!(
                "; after collections, up to {} of the heap of {} was still in use",
                words::bytes(live),
                words::bytes(heap)
            ),
            None => format!("; the heap has {}", words::bytes(heap)),
        },
        value: format!("spark.{role}.memory={larger}m"),
        seconds: facts.waited_in_all_s(PartKind::Gc),
        remedy: Remedy::Saving(Saving {
            waits: vec![PartKind::Gc],
            ..Saving::default()
        }),
        ..Found::default()
    }]
}

impl Machines<'_> {
    /// What was used of each host in a span, ms since the epoch. Each JVM of a host writes rows about all of it; those of one count.
    fn used(&self, (from, to): (i64, i64)) -> BTreeMap<&str, Use> {
        let ms = |ns: i64| ns.div_euclid(1_000_000);
        let within = |row: &&&HostRow| ms(row.start_ns) < to && from < ms(row.end_ns);
        let mut of_jvms: BTreeMap<(&str, u32), Use> = BTreeMap::new();
        for row in self.rows.iter().filter(within) {
            let cpus = f64::from(row.usable_cpus());
            let limit = row.cpu_limit.filter(|limit| *limit > 0.0 && *limit < cpus);
            let used = of_jvms.entry((&row.host, row.pid)).or_default();
            used.cpus = used.cpus.max(limit.unwrap_or(cpus));
            used.cpu_s += match limit {
                Some(_) => row.group_cpu_s.unwrap_or_else(|| row.usable_cpu_s()),
                None => row.usable_cpu_s(),
            };
            used.seconds += row.end_ns.saturating_sub(row.start_ns).max(0) as f64 / 1e9;
        }
        let mut hosts: BTreeMap<&str, Use> = BTreeMap::new();
        for ((host, _), used) in of_jvms {
            let known = hosts.entry(host).or_default();
            if used.seconds > known.seconds {
                *known = used;
            }
        }
        hosts
    }
}
