//! Who had the CPUs while tasks waited for one, counted from the context switches of all CPUs (option `switches`).

mod queues;

use std::collections::HashMap;
use std::os::fd::BorrowedFd;

use unfuse_codemap::{CodeMap, MarkCursor};
use unfuse_format::{CpuWaitRow, GARBAGE_COLLECTION, JIT_COMPILATION};

use self::queues::{RunQueues, WaitPart};
use super::internal::InternalThreads;
use super::outside::{OutsideMeter, ProcessName, ProcessNames};
use crate::clock::{EpochOffset, monotonic_ns};
use crate::perf_event::{CpuRecord, HostSwitches, HostThread};
use crate::task_spans::TaskSpans;
use crate::wire::TaskAttempt;

/// With more records than this between two heartbeats, the rest is not recorded: reading them would cost too much. A switch has one
/// record or two.
const MOST_RECORDS: usize = 400_000;
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
    /// Records since the last heartbeat.
    count: usize,
    paused: bool,
    waits: HashMap<(TaskAttempt, CpuUser), Sum>,
}

/// What had the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum CpuUser {
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

    /// Reads what the kernel has recorded up to a moment, CLOCK_MONOTONIC ns, which it returns.
    pub(super) fn read(&mut self, map: &CodeMap) -> u64 {
        // The rings are read one after the other. Beyond this time, the first may lack records that are older than those of the last.
        let until = monotonic_ns();
        let mut records = std::mem::take(&mut self.early);
        let mut last = vec![0; self.switches.cpus()];
        self.switches.drain(|cpu, record| {
            let last = last.get_mut(cpu);
            let time = match (record, last) {
                (CpuRecord::Handover(handover), Some(last)) => {
                    *last = handover.time;
                    handover.time
                }
                (CpuRecord::Handover(handover), None) => handover.time,
                // It has no time of its own, so it follows the record before it.
                (CpuRecord::Lost, last) => last.map_or(0, |last| *last),
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
        if !self.paused {
            let (queues, mut add) = self.counting();
            for (_, cpu, record) in records {
                match record {
                    CpuRecord::Handover(handover) => queues.hand_over(cpu, &handover, &mut add),
                    CpuRecord::Lost => queues.lose(cpu),
                }
            }
        }
        if self.count > MOST_RECORDS {
            self.set_paused(true);
        }
        until
    }

    /// Records nothing until the next heartbeat, and drops the waits since the last one: the user has paused the profiler.
    pub(super) fn pause(&mut self) {
        self.set_paused(true);
        self.waits.clear();
    }

    /// The queues of the CPUs, and what adds the waits that they find.
    fn counting(&mut self) -> (&mut RunQueues, impl FnMut(WaitPart)) {
        let Self {
            queues,
            tasks,
            waits,
            jvm,
            ..
        } = self;
        (queues, |part| add(waits, tasks, *jvm, part))
    }

    /// The waits since the last heartbeat.
    pub(super) fn rows(
        &mut self,
        map: &CodeMap,
        clock: EpochOffset,
        internal: &InternalThreads,
        outside: &mut OutsideMeter,
    ) -> Vec<CpuWaitRow> {
        let now = self.read(map);
        let (queues, add) = self.counting();
        queues.count_until(now, add);
        self.tasks.retain(|_, tasks| {
            tasks.forget_before(now);
            !tasks.is_empty()
        });
        let waits = std::mem::take(&mut self.waits);
        self.count = 0;
        self.set_paused(false);
        let names = outside.names();
        let mut rows: HashMap<(TaskAttempt, Name), Sum> = HashMap::new();
        for ((task, by), sum) in waits {
            if let Some(name) = name_of(by, internal, &names) {
                let all = rows.entry((task, name));
                all.and_modify(|all| all.add(&sum)).or_insert(sum);
            }
        }
        let row = |((task, name), sum): ((TaskAttempt, Name), Sum)| CpuWaitRow {
            stage: task.stage,
            attempt: task.stage_attempt,
            task: task.task,
            start_ns: clock.epoch_ns(sum.start),
            end_ns: clock.epoch_ns(sum.end),
            waited_ns: sum.ns.cast_signed(),
            ..name.row(outside)
        };
        rows.into_iter().map(row).collect()
    }

    fn set_paused(&mut self, paused: bool) {
        if self.paused == paused {
            return;
        }
        self.paused = paused;
        self.switches.set_paused(paused);
        // The records of this time are incomplete.
        self.switches.drain(|_, _| {});
        self.early.clear();
        self.queues.restart();
    }
}

/// Adds a part of a wait, if a task waits. Time in which the CPU was idle or its user is unknown is left out.
fn add(
    waits: &mut HashMap<(TaskAttempt, CpuUser), Sum>,
    tasks: &HashMap<u32, TaskSpans<TaskAttempt>>,
    jvm: u32,
    part: WaitPart,
) {
    let WaitPart {
        waiting,
        running: HostThread { pid, tid },
        start,
        end,
    } = part;
    let task_of = |tid: u32, time: u64| tasks.get(&tid).and_then(|spans| spans.at(time));
    let Some(task) = task_of(waiting, start) else {
        return;
    };
    let by = match pid {
        0 => return,
        pid if pid == jvm => task_of(tid, start).map_or(CpuUser::Thread(tid), CpuUser::Task),
        pid => CpuUser::Process(pid),
    };
    if waits.len() >= MOST_PAIRS && !waits.contains_key(&(task, by)) {
        return;
    }
    let sum = waits.entry((task, by)).or_insert(Sum { start, end, ns: 0 });
    sum.add(&Sum {
        start,
        end,
        ns: end - start,
    });
}

impl Sum {
    fn add(&mut self, more: &Self) {
        self.start = self.start.min(more.start);
        self.end = self.end.max(more.end);
        self.ns = self.ns.saturating_add(more.ns);
    }
}

/// The user of a CPU, as rows name it: several processes may have one name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Name {
    Task(TaskAttempt),
    /// `gc`, `jit` or `jvm`.
    Jvm(&'static str),
    Process(ProcessName),
}

/// None for the JVM's children, which work for tasks, and for processes that were not seen.
fn name_of(by: CpuUser, internal: &InternalThreads, outside: &ProcessNames<'_>) -> Option<Name> {
    Some(match by {
        CpuUser::Task(task) => Name::Task(task),
        CpuUser::Thread(tid) => Name::Jvm(match internal.work_of(tid) {
            Some(GARBAGE_COLLECTION) => "gc",
            Some(JIT_COMPILATION) => "jit",
            _ => "jvm",
        }),
        CpuUser::Process(pid) => Name::Process(outside.name_of(pid)?),
    })
}

impl Name {
    /// A row with these columns.
    fn row(self, outside: &mut OutsideMeter) -> CpuWaitRow {
        let behind = match &self {
            Self::Task(_) => "task",
            Self::Jvm(work) => work,
            Self::Process(_) => "process",
        };
        let row = CpuWaitRow {
            behind: behind.to_owned(),
            ..CpuWaitRow::default()
        };
        match self {
            Self::Task(task) => CpuWaitRow {
                behind_stage: Some(task.stage),
                behind_attempt: Some(task.stage_attempt),
                behind_task: Some(task.task),
                ..row
            },
            Self::Jvm(_) => row,
            Self::Process(name) => {
                let process = outside.named(name);
                CpuWaitRow {
                    command: Some(process.command),
                    user: Some(process.user),
                    cgroup: process.cgroup,
                    container: process.container,
                    behind_jvm: process.jvm,
                    ..row
                }
            }
        }
    }
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
                execution: -1,
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
            let part = WaitPart {
                waiting,
                running,
                start,
                end,
            };
            add(&mut waits, &tasks, JVM, part);
        };
        pass(10, (JVM, 11), 110, 120);
        pass(10, (JVM, 11), 150, 155);
        pass(10, (JVM, 12), 120, 125);
        pass(10, (9, 90), 125, 130);
        // An idle CPU, a wait outside tasks, and one after the end of the waiting thread's task.
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
                (1, CpuUser::Task(attempt(2)), 110, 155, 15),
                (1, CpuUser::Thread(12), 120, 125, 5),
                (1, CpuUser::Process(9), 125, 130, 5),
            ]
        );
    }

    #[test]
    fn what_had_the_cpu_has_a_name() {
        let internal = InternalThreads::default();
        // This process is outside a JVM that is not there.
        let mut outside = OutsideMeter::new(u32::MAX, true);
        let [own, missing, thread, task] = {
            let names = outside.names();
            [
                CpuUser::Process(std::process::id()),
                CpuUser::Process(u32::MAX - 1),
                CpuUser::Thread(5),
                CpuUser::Task(attempt(4)),
            ]
            .map(|by| name_of(by, &internal, &names))
        };
        assert_eq!(missing, None);
        let mut row = |name: Option<Name>| name.expect("a name").row(&mut outside);
        let own = row(own);
        assert_eq!(own.behind, "process");
        assert!(own.command.is_some_and(|command| !command.is_empty()) && own.user.is_some());
        assert_eq!(row(thread).behind, "jvm");
        let task = row(task);
        assert_eq!((task.behind.as_str(), task.behind_task), ("task", Some(4)));
    }
}
