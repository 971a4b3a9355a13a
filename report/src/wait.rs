//! What the answers say about each reason of a wait. A new reason gets its line here; the compiler asks for it.

use unfuse_postprocess::WaitReason;
use unfuse_sizing::what_if::PartKind;

use crate::why::CauseKind;

/// How the answers treat a reason.
pub(crate) struct WaitFacts {
    /// The words after "waited for" and "waiting for".
    pub(crate) words: &'static str,
    /// The kind of cause that `unfuse why` shows.
    pub(crate) cause: CauseKind,
    /// The part of a task's time that `unfuse what-if` can take away.
    pub(crate) part: Option<PartKind>,
    /// Whether `unfuse why` counts it for another plan: such waits come from moving rows between stages.
    pub(crate) moves_rows: bool,
    /// Whether the reason names what was waited for.
    pub(crate) is_known: bool,
}

impl WaitFacts {
    /// The facts of a reason.
    pub(crate) fn from_reason(reason: WaitReason) -> Self {
        let waits = |words| Self {
            words,
            cause: CauseKind::Waiting,
            part: None,
            moves_rows: false,
            is_known: true,
        };
        match reason {
            WaitReason::RunQueue => Self {
                cause: CauseKind::Contention,
                part: Some(PartKind::CpuWait),
                ..waits("a CPU")
            },
            WaitReason::DiskRead => Self {
                part: Some(PartKind::Disk),
                ..waits("reads from disk")
            },
            WaitReason::DiskWrite => Self {
                part: Some(PartKind::Disk),
                moves_rows: true,
                ..waits("writes to disk")
            },
            WaitReason::ShuffleFetch => Self {
                part: Some(PartKind::Network),
                moves_rows: true,
                ..waits(reason.name())
            },
            WaitReason::Network => Self {
                part: Some(PartKind::Network),
                ..waits("the network")
            },
            WaitReason::Python => Self {
                cause: CauseKind::Python,
                part: Some(PartKind::Python),
                ..waits("Python workers")
            },
            WaitReason::Safepoint => Self {
                cause: CauseKind::Gc,
                part: Some(PartKind::Gc),
                ..waits(reason.name())
            },
            WaitReason::Memory => waits("memory that other tasks had"),
            WaitReason::Lock => waits("locks"),
            WaitReason::Sleep | WaitReason::Idle => waits(reason.name()),
            WaitReason::Other | WaitReason::Unknown => Self {
                is_known: false,
                ..waits(reason.name())
            },
        }
    }
}
