//! Resources that tasks contend for, and kinds of waits.

use serde::{Deserialize, Serialize};

use crate::{ProcessId, StageId};

/// A resource of a host. Its unit is whatever makes "units a second" a rate that has a capacity.
///
/// | resource | unit | capacity, units a second |
/// |---|---|---|
/// | CPU | CPU second | cores |
/// | memory | byte · second held | bytes of the pool |
/// | IO | byte | bytes a second |
/// | network | byte | bytes a second |
/// | slots | slot · second held | slots |
///
/// Memory and slots count what is *held*, while section 5.2 of the paper counts what is acquired: a query that filled
/// the memory before the victim began (the paper's own Mem-Internal experiment) acquires nothing while they overlap,
/// yet the victim waits for its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Resource {
    /// Processors.
    Cpu,
    /// Memory that Spark manages.
    Memory,
    /// Disks.
    Io,
    /// Network.
    Network,
    /// Task slots of the executors.
    Slots,
}

impl Resource {
    /// All of them.
    pub const ALL: [Resource; 5] = [
        Resource::Cpu,
        Resource::Memory,
        Resource::Io,
        Resource::Network,
        Resource::Slots,
    ];

    /// Its name in exports.
    pub fn name(self) -> &'static str {
        match self {
            Resource::Cpu => "CPU",
            Resource::Memory => "memory",
            Resource::Io => "IO",
            Resource::Network => "network",
            Resource::Slots => "slots",
        }
    }
}

/// The kind of a wait (res' of the paper's explanations), finer than the resource. Consumption is by resource, since
/// reads and writes share a disk; blocked time is by kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Kind {
    /// Waiting for a lock or monitor (counts as CPU, section 5.2).
    Lock,
    /// Runnable, waiting for a core.
    RunQueue,
    /// Stopped with all threads of its JVM, most often for garbage collection; no other query is the culprit.
    Pause,
    /// Waiting for storage memory.
    StorageMemory,
    /// Waiting for execution memory.
    ExecutionMemory,
    /// Waiting for a read.
    IoRead,
    /// Waiting for a write.
    IoWrite,
    /// Waiting for shuffle blocks.
    NetworkFetch,
    /// Waiting for a task slot.
    Slot,
    /// Waiting for a task slot while all CPUs are busy: another slot would not have helped.
    SlotOnBusyCpu,
}

impl Kind {
    /// Whether tasks wait for slots that others hold.
    pub fn is_for_slots(self) -> bool {
        matches!(self, Kind::Slot | Kind::SlotOnBusyCpu)
    }

    /// The resource that such a task waits for.
    pub fn resource(self) -> Resource {
        match self {
            Kind::Lock | Kind::RunQueue | Kind::Pause | Kind::SlotOnBusyCpu => Resource::Cpu,
            Kind::StorageMemory | Kind::ExecutionMemory => Resource::Memory,
            Kind::IoRead | Kind::IoWrite => Resource::Io,
            Kind::NetworkFetch => Resource::Network,
            Kind::Slot => Resource::Slots,
        }
    }

    /// All of them.
    pub const ALL: [Kind; 10] = [
        Kind::Lock,
        Kind::RunQueue,
        Kind::Pause,
        Kind::StorageMemory,
        Kind::ExecutionMemory,
        Kind::IoRead,
        Kind::IoWrite,
        Kind::NetworkFetch,
        Kind::Slot,
        Kind::SlotOnBusyCpu,
    ];

    /// Its word in tables.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Lock => "lock",
            Kind::RunQueue => "cpu",
            Kind::Pause => "pause",
            Kind::StorageMemory => "storage-memory",
            Kind::ExecutionMemory => "execution-memory",
            Kind::IoRead => "io-read",
            Kind::IoWrite => "io-write",
            Kind::NetworkFetch => "network",
            Kind::Slot => "slot",
            Kind::SlotOnBusyCpu => "slot-cpu",
        }
    }

    /// Parses the word that tables use.
    pub fn from_word(word: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.word() == word)
    }

    /// Its name in exports.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Lock => "lock wait",
            Kind::RunQueue => "run-queue wait",
            Kind::Pause => "GC or safepoint",
            Kind::StorageMemory => "storage memory",
            Kind::ExecutionMemory => "execution memory",
            Kind::IoRead => "IO read",
            Kind::IoWrite => "IO write",
            Kind::NetworkFetch => "network fetch",
            Kind::Slot => "task slot",
            Kind::SlotOnBusyCpu => "task slot, CPUs busy",
        }
    }
}

/// Processes that are not queries but have a name (section 5.1), with one task on every host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum KnownProcess {
    /// Garbage collection of the JVMs.
    Gc,
    /// The part of it that was necessary because of what a stage allocated and held. The stage's query is the culprit.
    GcFor(StageId),
    /// Just-in-time compilation of the JVMs.
    Jit,
    /// Other work of the JVMs outside tasks: scheduling, the driver; in profiles of earlier versions also compilation.
    Jvm,
    /// CPU use of the host outside all tasks.
    ExternalCpu,
    /// Disk use of the host outside all tasks.
    ExternalIo,
    /// Network use of the host outside all tasks.
    ExternalNetwork,
    /// A process outside Spark with a name: a part of what would be external otherwise.
    Outside(ProcessId),
    /// The CPU limit of the tasks' own control group, while it held them back: no neighbour used that time.
    OwnLimit,
    /// The hypervisor, while it gave the host's CPUs to other machines (steal).
    Hypervisor,
}

impl KnownProcess {
    /// The process to which use of a resource outside all tasks is attributed; memory and slots are Spark's own.
    pub fn external(resource: Resource) -> Option<KnownProcess> {
        match resource {
            Resource::Cpu => Some(KnownProcess::ExternalCpu),
            Resource::Io => Some(KnownProcess::ExternalIo),
            Resource::Network => Some(KnownProcess::ExternalNetwork),
            Resource::Memory | Resource::Slots => None,
        }
    }

    /// Its name, in the paper if that has it. For a process with a name of its own, see
    /// [`Workload::process_name`](crate::Workload::process_name).
    pub fn name(self) -> &'static str {
        match self {
            KnownProcess::Gc | KnownProcess::GcFor(_) => "GC_Q",
            KnownProcess::Jit => "JIT",
            KnownProcess::Jvm => "JVM",
            KnownProcess::ExternalCpu => "External-CPU",
            KnownProcess::ExternalIo => "External-IO",
            KnownProcess::ExternalNetwork => "External-Network",
            KnownProcess::Outside(_) => "External process",
            KnownProcess::OwnLimit => "Own limit",
            KnownProcess::Hypervisor => "Hypervisor",
        }
    }
}
