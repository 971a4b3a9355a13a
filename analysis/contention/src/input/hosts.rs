//! What hosts gave, and what of it was neither tasks' nor the JVMs'.

use std::collections::BTreeMap;

use unfuse_format::HostRow;

use super::Builder;
use crate::windows::spread;
use crate::{
    Capacity, Heartbeat, HostId, HostWindow, Kind, KnownProcess, KnownUse, Resource, Span,
};

/// Adds capacities, host windows, known processes and heartbeats; scales what tasks read to what came from disks.
pub(super) fn add(builder: &mut Builder, rows: &[HostRow]) {
    let mut by_host: BTreeMap<&str, BTreeMap<u32, Vec<&HostRow>>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.start_ns < row.end_ns) {
        by_host
            .entry(&row.host)
            .or_default()
            .entry(row.pid)
            .or_default()
            .push(row);
    }
    for (name, mut by_pid) in by_host {
        let host = builder.host(name);
        for rows in by_pid.values_mut() {
            rows.sort_by_key(|row| row.start_ns);
        }
        let memory: u64 = by_pid
            .values()
            .filter_map(|rows| rows.iter().filter_map(|row| row.memory_bytes).max())
            .sum();
        // Every JVM's writer tells of the whole host; the one that did so for longest is believed.
        let covered =
            |rows: &[&HostRow]| -> i64 { rows.iter().map(|row| row.end_ns - row.start_ns).sum() };
        let Some(whole) = by_pid.values().max_by_key(|rows| covered(rows)).cloned() else {
            continue;
        };
        capacities(builder, host, &whole, memory);
        let jvms = Jvms::of(&whole, by_pid.values().flatten());
        windows(builder, host, &whole, &jvms);
    }
}

fn span(row: &HostRow) -> Span {
    Span {
        start: row.start_ns.max(0),
        end: row.end_ns.max(0),
    }
}

fn capacities(builder: &mut Builder, host: HostId, rows: &[&HostRow], memory: u64) {
    let cpus = rows.iter().map(|row| row.cpus).max().unwrap_or(0);
    let network = rows.iter().filter_map(|row| row.network_bytes_per_s).max();
    let known = [
        (Resource::Cpu, f64::from(cpus)),
        (Resource::Memory, memory as f64),
        (Resource::Network, network.unwrap_or(0) as f64),
    ];
    for (resource, per_second) in known.into_iter().filter(|(_, amount)| *amount > 0.0) {
        builder.tables.capacities.push(Capacity {
            host,
            resource,
            per_second,
        });
    }
}

/// What all profiled JVMs of a host had, in each window of its.
struct Jvms {
    cpu_s: Vec<f64>,
    gc_s: Vec<f64>,
    read_bytes: Vec<f64>,
    write_bytes: Vec<f64>,
}

impl Jvms {
    fn of<'a>(whole: &[&HostRow], rows: impl Iterator<Item = &'a &'a HostRow>) -> Self {
        let windows: Vec<Span> = whole.iter().map(|row| span(row)).collect();
        let none = vec![0.0; windows.len()];
        let mut jvms = Self {
            cpu_s: none.clone(),
            gc_s: none.clone(),
            read_bytes: none.clone(),
            write_bytes: none,
        };
        for row in rows {
            for (at, part) in spread(&windows, span(row)) {
                jvms.cpu_s[at] += row.jvm_cpu_s * part;
                jvms.gc_s[at] += row.gc_cpu_s * part;
                jvms.read_bytes[at] += row.jvm_disk_read_bytes as f64 * part;
                jvms.write_bytes[at] += row.jvm_disk_write_bytes as f64 * part;
            }
        }
        jvms
    }
}

/// What tasks used in each window.
fn used_by_tasks(builder: &Builder, host: HostId, windows: &[Span], kind: Kind) -> Vec<f64> {
    let mut used = vec![0.0; windows.len()];
    for row in builder.tables.intervals.iter().filter(|r| r.kind == kind) {
        if builder.host_of(row.task) == host {
            for (at, part) in spread(windows, row.span) {
                used[at] += row.units * part;
            }
        }
    }
    used
}

/// Most of what tasks read comes from the page cache and costs nobody a disk: their bytes are scaled to what the
/// kernel says their JVMs caused to be read from disks.
fn scale_reads(builder: &mut Builder, host: HostId, windows: &[Span], factors: &[f64]) {
    let Builder { tables, rows, .. } = builder;
    for row in tables
        .intervals
        .iter_mut()
        .filter(|row| row.kind == Kind::IoRead)
    {
        if tables.tasks[rows[&row.task]].host == host {
            let parts: Vec<_> = spread(windows, row.span).collect();
            let inside: f64 = parts.iter().map(|(_, part)| part).sum();
            let scaled: f64 = parts.iter().map(|(at, part)| factors[*at] * part).sum();
            row.units *= scaled + (1.0 - inside).max(0.0);
        }
    }
}

fn windows(builder: &mut Builder, host: HostId, rows: &[&HostRow], jvms: &Jvms) {
    let spans: Vec<Span> = rows.iter().map(|row| span(row)).collect();
    let asked = used_by_tasks(builder, host, &spans, Kind::IoRead);
    let factors: Vec<f64> = asked
        .iter()
        .zip(&jvms.read_bytes)
        .map(|(asked, read)| if asked > read { read / asked } else { 1.0 })
        .collect();
    scale_reads(builder, host, &spans, &factors);
    let cpu = used_by_tasks(builder, host, &spans, Kind::RunQueue);
    let read = used_by_tasks(builder, host, &spans, Kind::IoRead);
    let written = used_by_tasks(builder, host, &spans, Kind::IoWrite);
    let fetched = used_by_tasks(builder, host, &spans, Kind::NetworkFetch);
    // What JVMs wrote into the page cache and the disks have not written yet.
    let mut unwritten = 0.0;
    for (at, row) in rows.iter().enumerate() {
        let jvm_rest = (jvms.cpu_s[at] - jvms.gc_s[at] - cpu[at]).max(0.0);
        let outside = (row.cpu_s - jvms.cpu_s[at]).max(0.0);
        let all_cpu = cpu[at] + jvms.gc_s[at] + jvm_rest + outside;
        unwritten += jvms.write_bytes[at];
        let own_writes = unwritten.min(row.disk_write_bytes as f64);
        unwritten -= own_writes;
        let jvm_read = (jvms.read_bytes[at] - read[at]).max(0.0);
        let outside = (row.disk_read_bytes as f64 - jvms.read_bytes[at]).max(0.0)
            + (row.disk_write_bytes as f64 - own_writes);
        let all_io = read[at] + written[at] + jvm_read + outside;
        let all_network = (row.network_in_bytes as f64).max(fetched[at]);
        let tables = &mut builder.tables;
        for (resource, units) in [
            (Resource::Cpu, all_cpu),
            (Resource::Io, all_io),
            (Resource::Network, all_network),
        ] {
            tables.host_windows.push(HostWindow {
                host,
                resource,
                span: spans[at],
                units,
            });
        }
        for (process, resource, units) in [
            (KnownProcess::Gc, Resource::Cpu, jvms.gc_s[at]),
            (KnownProcess::Jvm, Resource::Cpu, jvm_rest),
            (KnownProcess::Jvm, Resource::Io, jvm_read),
        ] {
            if units > 0.0 {
                tables.known.push(KnownUse {
                    host,
                    process,
                    resource,
                    span: spans[at],
                    units,
                });
            }
        }
        tables.heartbeats.push(Heartbeat {
            host,
            at: spans[at].end,
        });
    }
}
