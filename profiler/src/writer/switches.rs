//! Who had the CPUs while tasks waited for one, counted from the context switches of all CPUs (option `switches`).

mod queues;

use std::collections::HashMap;
use std::os::fd::BorrowedFd;

use unfuse_codemap::{CodeMap, MarkCursor};
use unfuse_format::{CpuWaitRow, GARBAGE_COLLECTION, JIT_COMPILATION};

use self::queues::{Behind, RunQueues};
use super::internal::InternalThreads;
use super::outside::OutsideMeter;
use crate::clock::{EpochOffset, monotonic_ns};
use crate::perf_event::{CpuRecord, Handover, HostSwitches, HostThread};
use crate::task_spans::TaskSpans;
use crate::wire::TaskAttempt;

/// With more switches than this between two heartbeats, the rest is not recorded: reading them would cost too much.
const MOST_SWITCHES: usize = 400_000;
/// Pairs of a waiting task and a thread that ran, between two heartbeats.
const MOST_PAIRS: usize = 20_000;

/// Watches the CPUs.
pub(super) struct SwitchMeter {
    switches: HostSwitches,
    queues: RunQueues,
    jvm: u32,
    cursor: MarkCursor,
    tasks: HashMap<u32, TaskSpans<TaskAttempt>>,
    /// Records that came while others were read: those of another CPU may be older.
    early: Vec<(u64, usize, CpuRecord)>,
    /// Switches since the last heartbeat.
    count: usize,
    paused: bool,
    waits: HashMap<(TaskAttempt, By), Sum>,
}

/// Who had the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum By {
    Task(TaskAttempt),
    /// A thread of the JVM without a task.
    Thread(u32),
    Process(u32),
}

/// How long a task waited because of one of these.
#[derive(Debug, Clone, Copy)]
struct Sum {
    start: u64,
    end: u64,
    ns: u64,
}

impl SwitchMeter {
    /// Of the threads of a JVM, whose tasks the code map marks.
    pub(super) fn new(switches: HostSwitches, jvm: u32, map: &CodeMap) -> Self {
        Self {
            queues: RunQueues::new(jvm, switches.cpus()),
            switches,
            jvm,
            cursor: map.marks().reader(),
            tasks: HashMap::new(),
            early: Vec::new(),
            count: 0,
            paused: false,
            waits: HashMap::new(),
        }
    }

    /// Poll readable when there is something to read.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.switches.descriptors()
    }

    /// Reads what the kernel has recorded.
    pub(super) fn read(&mut self, map: &CodeMap) {
        // What comes later on one CPU may have come before something that is read of another one.
        let until = monotonic_ns();
        let mut records = std::mem::take(&mut self.early);
        self.switches.drain(|cpu, record| {
            let time = match record {
                CpuRecord::Handover(handover) => handover.time,
                // Of unknown time: before all else of this CPU that was not read yet.
                CpuRecord::Lost => 0,
            };
            records.push((time, cpu, record));
        });
        while let Some(mark) = map.marks().next(&mut self.cursor) {
            self.tasks
                .entry(mark.tid)
                .or_default()
                .add(&mark, |task| task);
        }
        records.sort_by_key(|(time, ..)| *time);
        let ready = records.partition_point(|(time, ..)| *time <= until);
        self.early = records.split_off(ready);
        self.count += records.len();
        for (_, cpu, record) in records {
            match record {
                CpuRecord::Handover(handover) => self.hand_over(cpu, &handover),
                CpuRecord::Lost => self.queues.lose(cpu),
            }
        }
        if self.count > MOST_SWITCHES {
            self.set_paused(true);
        }
    }

    fn hand_over(&mut self, cpu: usize, handover: &Handover) {
        let Self {
            queues,
            tasks,
            waits,
            jvm,
            ..
        } = self;
        let mut each = |behind| add(waits, tasks, *jvm, behind);
        queues.hand_over(cpu, handover, &mut each);
    }

    /// The waits since the last heartbeat.
    pub(super) fn rows(
        &mut self,
        map: &CodeMap,
        clock: EpochOffset,
        internal: &InternalThreads,
        outside: &mut OutsideMeter,
    ) -> Vec<CpuWaitRow> {
        self.read(map);
        let now = monotonic_ns();
        let Self {
            queues,
            tasks,
            waits,
            jvm,
            ..
        } = self;
        queues.settle(now, |behind| add(waits, tasks, *jvm, behind));
        self.tasks.retain(|_, tasks| {
            tasks.forget_before(now);
            !tasks.is_empty()
        });
        let waits = std::mem::take(&mut self.waits);
        self.count = 0;
        self.set_paused(false);
        // Of a process it is slow to find out.
        let mut known: HashMap<By, Option<CpuWaitRow>> = HashMap::new();
        let row = |((task, by), sum): ((TaskAttempt, By), Sum)| {
            let by = known
                .entry(by)
                .or_insert_with(|| named(by, internal, outside));
            Some(CpuWaitRow {
                stage: task.stage,
                attempt: task.stage_attempt,
                task: task.task,
                start_ns: clock.epoch_ns(sum.start),
                end_ns: clock.epoch_ns(sum.end),
                waited_ns: sum.ns.cast_signed(),
                ..by.clone()?
            })
        };
        waits.into_iter().filter_map(row).collect()
    }

    fn set_paused(&mut self, paused: bool) {
        if self.paused == paused {
            return;
        }
        self.paused = paused;
        self.switches.set_paused(paused);
        if paused {
            (0..self.switches.cpus()).for_each(|cpu| self.queues.lose(cpu));
            self.early.clear();
        }
    }
}

/// Adds a part of a wait, if a task waits. What nobody is known to have used is left out.
fn add(
    waits: &mut HashMap<(TaskAttempt, By), Sum>,
    tasks: &HashMap<u32, TaskSpans<TaskAttempt>>,
    jvm: u32,
    behind: Behind,
) {
    let Behind {
        waiting,
        running: HostThread { pid, tid },
        start,
        end,
    } = behind;
    let task_of = |tid: u32, time: u64| tasks.get(&tid).and_then(|spans| spans.at(time));
    let Some(task) = task_of(waiting, start) else {
        return;
    };
    let by = match pid {
        0 => return,
        pid if pid == jvm => task_of(tid, start).map_or(By::Thread(tid), By::Task),
        pid => By::Process(pid),
    };
    if waits.len() >= MOST_PAIRS && !waits.contains_key(&(task, by)) {
        return;
    }
    let sum = waits.entry((task, by)).or_insert(Sum { start, end, ns: 0 });
    sum.start = sum.start.min(start);
    sum.end = sum.end.max(end);
    sum.ns = sum.ns.saturating_add(end - start);
}

/// A row that says who had the CPU; none for the JVM's children, which work for tasks.
fn named(by: By, internal: &InternalThreads, outside: &mut OutsideMeter) -> Option<CpuWaitRow> {
    let row = |behind: &str| CpuWaitRow {
        behind: behind.to_owned(),
        ..CpuWaitRow::default()
    };
    Some(match by {
        By::Task(task) => CpuWaitRow {
            behind_stage: Some(task.stage),
            behind_attempt: Some(task.stage_attempt),
            behind_task: Some(task.task),
            ..row("task")
        },
        By::Thread(tid) => match internal.work_of(tid) {
            Some(GARBAGE_COLLECTION) => row("gc"),
            Some(JIT_COMPILATION) => row("jit"),
            _ => row("jvm"),
        },
        By::Process(pid) => {
            let process = outside.process(pid)?;
            CpuWaitRow {
                command: Some(process.command),
                user: Some(process.user),
                cgroup: process.cgroup,
                container: process.container,
                behind_jvm: process.jvm,
                ..row("process")
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use unfuse_codemap::{Mark, MarkKind};

    use super::*;

    const JVM: u32 = 7;

    fn attempt(task: i64) -> TaskAttempt {
        TaskAttempt {
            stage: 3,
            stage_attempt: 0,
            task,
        }
    }

    /// A thread that runs one task from 100 to 200.
    fn spans(tid: u32, task: i64) -> (u32, TaskSpans<TaskAttempt>) {
        let mut spans = TaskSpans::default();
        for (time, kind) in [(100, MarkKind::Start), (200, MarkKind::End)] {
            let mark = Mark {
                time,
                tid,
                kind,
                stage: 3,
                stage_attempt: 0,
                task,
            };
            spans.add(&mark, |task| task);
        }
        (tid, spans)
    }

    #[test]
    fn only_waits_of_tasks_count_behind_what_is_known() {
        let tasks = HashMap::from([spans(10, 1), spans(11, 2)]);
        let mut waits = HashMap::new();
        let mut pass = |waiting, (pid, tid): (u32, u32), start, end| {
            let running = HostThread { pid, tid };
            let behind = Behind {
                waiting,
                running,
                start,
                end,
            };
            add(&mut waits, &tasks, JVM, behind);
        };
        pass(10, (JVM, 11), 110, 120);
        pass(10, (JVM, 11), 150, 155);
        pass(10, (JVM, 12), 120, 125);
        pass(10, (9, 90), 125, 130);
        // An idle CPU, a wait outside tasks, and one behind a thread whose task is over.
        pass(10, (0, 0), 130, 140);
        pass(12, (9, 90), 110, 190);
        pass(10, (9, 90), 210, 220);
        let mut found: Vec<_> = waits
            .into_iter()
            .map(|((task, by), sum)| (task.task, by, sum.start, sum.end, sum.ns))
            .collect();
        found.sort_by_key(|(_, _, start, ..)| *start);
        assert_eq!(
            found,
            [
                (1, By::Task(attempt(2)), 110, 155, 15),
                (1, By::Thread(12), 120, 125, 5),
                (1, By::Process(9), 125, 130, 5),
            ]
        );
    }

    #[test]
    fn what_had_the_cpu_has_a_name() {
        let internal = InternalThreads::default();
        // This process is outside a JVM that is not there.
        let mut outside = OutsideMeter::new(u32::MAX, true);
        let own = named(By::Process(std::process::id()), &internal, &mut outside).unwrap();
        assert_eq!(own.behind, "process");
        assert!(own.command.is_some_and(|command| !command.is_empty()) && own.user.is_some());
        assert_eq!(
            named(By::Process(u32::MAX - 1), &internal, &mut outside),
            None
        );
        assert_eq!(
            named(By::Thread(5), &internal, &mut outside)
                .unwrap()
                .behind,
            "jvm"
        );
        let task = named(By::Task(attempt(4)), &internal, &mut outside).unwrap();
        assert_eq!((task.behind.as_str(), task.behind_task), ("task", Some(4)));
    }
}
