//! Parses records of the ring. No record, however broken, may panic.

use perf_event_open_sys::bindings::{
    PERF_RECORD_LOST, PERF_RECORD_LOST_SAMPLES, PERF_RECORD_MISC_CPUMODE_MASK,
    PERF_RECORD_MISC_KERNEL, PERF_RECORD_MISC_SWITCH_OUT, PERF_RECORD_MISC_SWITCH_OUT_PREEMPT,
    PERF_RECORD_SAMPLE, PERF_RECORD_SWITCH, PERF_RECORD_SWITCH_CPU_WIDE,
};

use crate::arch::{self, Registers, Role};

/// Bytes of `perf_event_header`.
pub(super) const HEADER_BYTES: usize = 8;

/// Callchain entries from here on are context markers, not addresses (`PERF_CONTEXT_MAX`).
const CONTEXT_MARKERS: u64 = (-4095i64) as u64;
/// Except this one, which was in the place of a return address.
pub(crate) const NO_ADDRESS: u64 = u64::MAX;

/// One record.
#[derive(Debug, PartialEq)]
pub enum Record<'a> {
    /// A sample of the running thread.
    Sample(Sample<'a>),
    /// A sample of the thread as it leaves its CPU. The record of the switch follows, and its target is given here if that
    /// record is in the ring already.
    Leaving(Sample<'a>, Option<SwitchTarget>),
    /// The thread leaves its CPU or returns to one.
    Switch(Switch),
    /// A CPU goes from one thread to another.
    Handover(Handover),
    /// The kernel dropped this many records.
    Lost(u64),
    /// Another or an invalid record.
    Other,
}

/// A context switch of the thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switch {
    /// CLOCK_MONOTONIC ns.
    pub time: u64,
    /// Its direction.
    pub to: SwitchTarget,
}

/// The target of a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SwitchTarget {
    /// Onto a CPU.
    Cpu,
    /// Off its CPU, to wait for something.
    Wait,
    /// Off its CPU although it could continue: another thread has the CPU now.
    Queue,
}

/// A CPU gets another thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handover {
    /// CLOCK_MONOTONIC ns.
    pub time: u64,
    /// The thread that leaves the CPU; none in the record of the thread that comes.
    pub from: Option<HostThread>,
    /// Whether that one could continue.
    pub preempted: bool,
    /// The thread that gets the CPU.
    pub to: HostThread,
}

/// A thread of the host, as this process numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HostThread {
    /// Its process; 0 for an idle CPU, and where processes of another namespace run.
    pub pid: u32,
    /// Its number; 0 as above.
    pub tid: u32,
}

/// A sample as in the ring.
#[derive(Debug, PartialEq)]
pub struct Sample<'a> {
    /// The kernel's id of its event.
    pub id: u64,
    /// CLOCK_MONOTONIC ns.
    pub time: u64,
    /// The event's count since it was opened: CPU time of the thread, ns, or its context switches.
    pub cpu_time: u64,
    /// Whether the sample hit the kernel.
    pub in_kernel: bool,
    /// The interpreter keeps the `Method*` there while it makes the frame.
    pub method_register: u64,
    /// The frame pointer, with any content.
    pub frame_pointer: u64,
    /// The stack pointer.
    pub stack_pointer: u64,
    /// The link register, with any content; 0 where the processor has none.
    pub link_register: u64,
    /// The interpreter keeps its bytecode pointer there.
    pub bytecode_register: u64,
    callchain: &'a [u8],
    stack: &'a [u8],
}

impl<'a> Sample<'a> {
    /// User addresses, leaf first; one of them may be `NO_ADDRESS`.
    pub fn callchain(&self) -> impl Iterator<Item = u64> + 'a {
        words(self.callchain).filter(|ip| *ip < CONTEXT_MARKERS || *ip == NO_ADDRESS)
    }

    /// The registers at the leaf's address `pc`.
    pub(crate) fn registers(&self, pc: u64) -> Registers {
        Registers {
            pc,
            sp: self.stack_pointer,
            fp: self.frame_pointer,
            link: self.link_register,
        }
    }

    /// The word at an address, if it is in the copy of the stack.
    pub fn stack_word(&self, address: u64) -> Option<u64> {
        let offset = usize::try_from(address.checked_sub(self.stack_pointer)?).ok()?;
        let word = self.stack.get(offset..offset.checked_add(8)?)?;
        word.try_into().ok().map(u64::from_ne_bytes)
    }

    /// A sample with only a copy of the stack.
    #[cfg(test)]
    pub(crate) fn from_stack(stack_pointer: u64, stack: &'a [u8]) -> Self {
        Self {
            id: 0,
            time: 0,
            cpu_time: 0,
            in_kernel: false,
            method_register: 0,
            frame_pointer: 0,
            stack_pointer,
            link_register: 0,
            bytecode_register: 0,
            callchain: &[],
            stack,
        }
    }

    /// Words of the user stack from `stack_pointer` upward.
    pub fn stack(&self) -> impl Iterator<Item = u64> + 'a {
        words(self.stack)
    }
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    bytes
        .as_chunks::<8>()
        .0
        .iter()
        .map(|word| u64::from_ne_bytes(*word))
}

/// The target of a switch, from a record's header; `None` for another record.
pub(super) fn switch_target(header: [u8; HEADER_BYTES]) -> Option<SwitchTarget> {
    let mut cursor = Cursor(&header);
    let kind = cursor.u32()?;
    let misc = cursor.u32()?;
    (kind == PERF_RECORD_SWITCH).then(|| target(misc))
}

fn target(misc: u32) -> SwitchTarget {
    match (
        misc & PERF_RECORD_MISC_SWITCH_OUT != 0,
        misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT != 0,
    ) {
        (false, _) => SwitchTarget::Cpu,
        (true, false) => SwitchTarget::Wait,
        (true, true) => SwitchTarget::Queue,
    }
}

/// The size field of a record's header.
pub(super) fn header_size(header: [u8; HEADER_BYTES]) -> usize {
    usize::from(u16::from_ne_bytes([header[6], header[7]]))
}

impl<'a> Record<'a> {
    /// Parses one complete record, with its header.
    pub fn parse(bytes: &'a [u8]) -> Self {
        Self::try_parse(bytes).unwrap_or(Self::Other)
    }

    fn try_parse(bytes: &'a [u8]) -> Option<Self> {
        let mut cursor = Cursor(bytes);
        let kind = cursor.u32()?;
        let misc_and_size = cursor.u32()?;
        match kind {
            PERF_RECORD_SAMPLE => {
                let mode = misc_and_size & PERF_RECORD_MISC_CPUMODE_MASK;
                cursor
                    .sample(mode == PERF_RECORD_MISC_KERNEL)
                    .map(Self::Sample)
            }
            PERF_RECORD_LOST => {
                cursor.u64()?;
                cursor.u64().map(Self::Lost)
            }
            PERF_RECORD_SWITCH => cursor.switch(misc_and_size).map(Record::Switch),
            PERF_RECORD_SWITCH_CPU_WIDE => cursor.handover(misc_and_size).map(Self::Handover),
            PERF_RECORD_LOST_SAMPLES => cursor.u64().map(Self::Lost),
            _ => Some(Self::Other),
        }
    }
}

struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(head)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_ne_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take(8)?.try_into().ok().map(u64::from_ne_bytes)
    }

    /// A switch has only the fields of every record.
    fn switch(&mut self, misc: u32) -> Option<Switch> {
        let _pid_and_tid = self.u64()?;
        let time = self.u64()?;
        let _id = self.u64()?;
        let to = target(misc);
        Some(Switch { time, to })
    }

    fn thread(&mut self) -> Option<HostThread> {
        // The kernel says -1 for a thread that has no number any more.
        let mut number = || self.u32().map(|number| number.cast_signed().max(0) as u32);
        let (pid, tid) = (number()?, number()?);
        Some(HostThread { pid, tid })
    }

    /// There is a record of the thread that leaves, and one of the thread that comes. An idle CPU's own thread has none.
    fn handover(&mut self, misc: u32) -> Option<Handover> {
        let other = self.thread()?;
        let own = self.thread()?;
        let time = self.u64()?;
        let leaves = misc & PERF_RECORD_MISC_SWITCH_OUT != 0;
        let is_preempted = leaves && misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT != 0;
        Some(Handover {
            time,
            from: leaves.then_some(own),
            preempted: is_preempted,
            to: if leaves { other } else { own },
        })
    }

    /// The fields in the order of perf_event_open(2) for the sample type of `event`.
    fn sample(&mut self, in_kernel: bool) -> Option<Sample<'a>> {
        let id = self.u64()?;
        let _ip = self.u64()?;
        let _pid_and_tid = self.u64()?;
        let time = self.u64()?;
        let cpu_time = self.u64()?;
        let entries = usize::try_from(self.u64()?).ok()?;
        let callchain = self.take(entries.checked_mul(8)?)?;
        let no_registers = self.u64()? == 0;
        let [mut method_register, mut bytecode_register] = [0; 2];
        let [mut frame_pointer, mut stack_pointer, mut link_register] = [0; 3];
        if !no_registers {
            for (_, role) in arch::SAMPLED {
                let register = match role {
                    Role::Method => &mut method_register,
                    Role::Bytecode => &mut bytecode_register,
                    Role::FramePointer => &mut frame_pointer,
                    Role::StackPointer => &mut stack_pointer,
                    Role::Link => &mut link_register,
                };
                *register = self.u64()?;
            }
        }
        let reserved = usize::try_from(self.u64()?).ok()?;
        let mut stack: &[u8] = &[];
        if reserved > 0 {
            let all = self.take(reserved)?;
            let valid = usize::try_from(self.u64()?).ok()?;
            stack = all.get(..valid.min(reserved))?;
        }
        Some(Sample {
            id,
            time,
            cpu_time,
            in_kernel,
            method_register,
            frame_pointer,
            stack_pointer,
            link_register,
            bytecode_register,
            callchain,
            stack,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample_bytes(chain: &[u64], stack: &[u64], valid: u64) -> Vec<u8> {
        let mut body = vec![77, 1, 2, 30, 40, chain.len() as u64];
        body.extend(chain);
        body.push(2);
        body.extend(arch::SAMPLED.map(|(_, role)| match role {
            Role::Method => 0xc,
            Role::FramePointer => 0xb,
            Role::StackPointer => 0x5,
            Role::Link => 0x6,
            Role::Bytecode => 0x13,
        }));
        body.push(stack.len() as u64 * 8);
        body.extend(stack);
        if !stack.is_empty() {
            body.push(valid);
        }
        let mut bytes = PERF_RECORD_SAMPLE.to_ne_bytes().to_vec();
        bytes.extend(2u16.to_ne_bytes());
        bytes.extend(((8 + body.len() * 8) as u16).to_ne_bytes());
        bytes.extend(body.iter().flat_map(|w| w.to_ne_bytes()));
        bytes
    }

    #[test]
    fn a_sample_gives_its_chain_without_markers_and_its_stack() {
        let bytes = sample_bytes(&[(-512i64) as u64, 10, 20], &[7, 8, 9], 16);
        let Record::Sample(sample) = Record::parse(&bytes) else {
            panic!("not a sample")
        };
        assert_eq!(sample.callchain().collect::<Vec<_>>(), [10, 20]);
        assert_eq!(sample.stack().collect::<Vec<_>>(), [7, 8]);
        assert_eq!(
            (
                sample.id,
                sample.time,
                sample.cpu_time,
                sample.stack_pointer
            ),
            (77, 30, 40, 5)
        );
        assert!(!sample.in_kernel);
        assert_eq!(
            (sample.method_register, sample.bytecode_register),
            (0xc, 0x13)
        );
        let expected = Registers {
            pc: 10,
            sp: 0x5,
            fp: 0xb,
            link: if arch::HAS_LINK { 0x6 } else { 0 },
        };
        assert_eq!(sample.registers(10), expected);
        assert_eq!(switch_target(*bytes.first_chunk().unwrap()), None);
    }

    fn switch_bytes(misc: u32, words: &[u64]) -> Vec<u8> {
        let mut bytes = PERF_RECORD_SWITCH.to_ne_bytes().to_vec();
        bytes.extend((misc as u16).to_ne_bytes());
        bytes.extend(((8 + words.len() * 8) as u16).to_ne_bytes());
        bytes.extend(words.iter().flat_map(|w| w.to_ne_bytes()));
        bytes
    }

    #[test]
    fn a_switch_says_when_and_where_to() {
        let out = PERF_RECORD_MISC_SWITCH_OUT;
        for (misc, to) in [
            (0, SwitchTarget::Cpu),
            (out, SwitchTarget::Wait),
            (
                out | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT,
                SwitchTarget::Queue,
            ),
        ] {
            let switch = Switch { time: 30, to };
            let bytes = switch_bytes(misc, &[2, 30, 77]);
            assert_eq!(switch_target(*bytes.first_chunk().unwrap()), Some(to));
            assert_eq!(Record::parse(&bytes), Record::Switch(switch));
        }
        assert_eq!(
            Record::parse(&switch_bytes(out, &[2, 30])),
            Record::Other,
            "one without its trailer"
        );
    }

    #[test]
    fn a_handover_names_both_threads() {
        let bytes = |misc: u32, words: &[u64]| {
            let mut bytes = switch_bytes(misc, words);
            bytes[..4].copy_from_slice(&PERF_RECORD_SWITCH_CPU_WIDE.to_ne_bytes());
            bytes
        };
        let words = [7 | 8 << 32, 5 | u64::from(u32::MAX) << 32, 30];
        let out = PERF_RECORD_MISC_SWITCH_OUT;
        let both = out | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
        let (own, other) = (HostThread { pid: 5, tid: 0 }, HostThread { pid: 7, tid: 8 });
        for (misc, from, preempted, to) in [
            (out, Some(own), false, other),
            (both, Some(own), true, other),
            (0, None, false, own),
        ] {
            let handover = Handover {
                time: 30,
                from,
                preempted,
                to,
            };
            let record = bytes(misc, &words);
            assert_eq!(Record::parse(&record), Record::Handover(handover));
        }
        assert_eq!(Record::parse(&bytes(out, &words[..2])), Record::Other);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            if let Record::Sample(sample) = Record::parse(&bytes) {
                let _ = (sample.callchain().count(), sample.stack().count());
            }
        }

        #[test]
        fn a_cut_sample_is_no_sample(cut in 1usize..100) {
            let bytes = sample_bytes(&[1, 2, 3], &[4, 5], 16);
            let cut = cut.min(bytes.len());
            prop_assert_eq!(Record::parse(&bytes[..bytes.len() - cut]), Record::Other);
        }
    }
}
