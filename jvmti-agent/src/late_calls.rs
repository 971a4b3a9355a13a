//! Corrects code that C2 describes as a call that it has inlined late, see [`crate::calls`].

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use jvmti_bindings::env::Jvmti;
use jvmti_bindings::sys::jni::jmethodID;
use unfuse_codemap::{FrameRec, PcRec};

use crate::arch;
use crate::calls::{FixedCall, boxing_methods};
use crate::methods::Method;

/// A call site that describes at least this many pcs, or bytes up to one of them, may describe code of other places.
const TIMES: u32 = 2;
const BYTES: u32 = 32;

/// Described code, and the methods of its frames.
pub(crate) struct DescribedCode<'a> {
    pub(crate) jvmti: &'a Jvmti,
    pub(crate) code: &'a [u8],
    pub(crate) methods: &'a [(jmethodID, Arc<Method>)],
    pub(crate) frames: &'a [FrameRec],
}

/// Replaces descriptions as an inlined call by the description of the code before. `pcs` are in order of their offsets.
pub(crate) fn correct(described: &DescribedCode<'_>, pcs: &mut [PcRec]) {
    let inlined: HashSet<u32> = described.frames.iter().map(|frame| frame.parent).collect();
    let mut answers = AnswerCache::default();
    let calls: HashSet<u32> = candidates(described.code, pcs)
        .into_iter()
        .filter(|frame| answers.is_inlined(described, *frame, inlined.contains(frame)))
        .collect();
    replace(described.code, pcs, &calls);
}

/// Frames that may describe code of other places. Most frames describe few bytes at one pc and need no question to the
/// JVM.
fn candidates(code: &[u8], pcs: &[PcRec]) -> HashSet<u32> {
    let mut times: HashMap<u32, u32> = HashMap::new();
    let mut begin = 0;
    for pc in pcs {
        let bytes = pc
            .offset
            .saturating_sub(std::mem::replace(&mut begin, pc.offset));
        if !is_return_address(code, pc.offset) {
            *times.entry(pc.frame).or_default() += if bytes >= BYTES { TIMES } else { 1 };
        }
    }
    times.retain(|_, times| *times >= TIMES);
    times.into_keys().collect()
}

/// Replaces the descriptions of pcs that are described as these calls, and follow no call instruction, by the one
/// before them.
fn replace(code: &[u8], pcs: &mut [PcRec], calls: &HashSet<u32>) {
    let mut before = None;
    for pc in pcs {
        if !calls.contains(&pc.frame) {
            before = Some(pc.frame);
        } else if !is_return_address(code, pc.offset) {
            pc.frame = before.unwrap_or(pc.frame);
        }
    }
}

/// Whether a call instruction ends at an offset. True for every offset if the code could not be read.
fn is_return_address(code: &[u8], offset: u32) -> bool {
    let call = (offset as usize).checked_sub(arch::CALL_BYTES);
    call.is_some_and(|call| {
        let instruction = code.get(call..).and_then(<[u8]>::first_chunk);
        instruction.is_none_or(|instruction| arch::is_call(*instruction))
    })
}

/// The JVM's answers, for one compiled method.
#[derive(Default)]
struct AnswerCache<'a> {
    bytecodes: HashMap<u32, Vec<u8>>,
    /// Indices of methods that box numbers, by class and file: generated classes share names, but not files.
    boxing: HashMap<(&'a str, &'a str), Vec<u16>>,
}

impl<'a> AnswerCache<'a> {
    /// Whether a frame is at a call that was inlined; `has_callee` if any code of the callee is described.
    fn is_inlined(&mut self, described: &DescribedCode<'a>, frame: u32, has_callee: bool) -> bool {
        let FrameRec {
            method: index, bci, ..
        } = described.frames[frame as usize];
        let (id, method) = &described.methods[index as usize];
        // SAFETY: `id` came with the event being handled, so its class is still loaded; local references
        // made here die with the event.
        let bytecodes = self
            .bytecodes
            .entry(index)
            .or_insert_with(|| unsafe { described.jvmti.get_bytecodes(*id) }.unwrap_or_default());
        match FixedCall::at_bci(bytecodes, bci) {
            None => false,
            Some(_) if has_callee => true,
            Some(FixedCall::Other) => false,
            Some(FixedCall::Static(callee)) => {
                let boxing = self
                    .boxing
                    .entry((&method.class, &method.file))
                    .or_insert_with(|| {
                        // SAFETY: as above.
                        let pool = unsafe {
                            let class = described.jvmti.get_method_declaring_class(*id);
                            class.and_then(|class| described.jvmti.get_constant_pool(class))
                        };
                        boxing_methods(&pool.unwrap_or_default())
                    });
                boxing.contains(&callee)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pcs(described: &[(u32, u32)]) -> Vec<PcRec> {
        let pc = |(offset, frame): &(u32, u32)| PcRec {
            offset: *offset,
            frame: *frame,
        };
        described.iter().map(pc).collect()
    }

    /// Code with a call right before offset 20.
    fn code() -> Vec<u8> {
        let mut code = vec![0x90; 200];
        code[20 - arch::CALL_BYTES..20].copy_from_slice(&arch::CALL);
        code
    }

    #[test]
    fn a_place_is_looked_at_if_it_describes_much() {
        let found = |described: &[(u32, u32)]| candidates(&code(), &pcs(described));
        assert!(found(&[(8, 1), (12, 2), (18, 3)]).is_empty());
        assert_eq!(found(&[(8, 1), (12, 2), (18, 1)]), HashSet::from([1]));
        assert_eq!(found(&[(8, 1), (50, 2), (52, 3)]), HashSet::from([2]));
        assert!(found(&[(8, 1), (20, 1)]).is_empty(), "a call is one");
    }

    #[test]
    fn code_without_a_call_gets_the_description_before() {
        let mut described = pcs(&[(4, 7), (8, 1), (12, 2), (20, 7), (24, 7), (30, 3), (34, 7)]);
        replace(&code(), &mut described, &HashSet::from([7]));
        let frames: Vec<u32> = described.iter().map(|pc| pc.frame).collect();
        assert_eq!(frames, [7, 1, 2, 7, 2, 3, 3]);
    }

    #[test]
    fn code_that_cannot_be_read_keeps_its_descriptions() {
        let described = [(8, 1), (12, 7), (90, 7)];
        let mut kept = pcs(&described);
        replace(&[], &mut kept, &HashSet::from([7]));
        assert_eq!(kept, pcs(&described));
        assert!(candidates(&[], &kept).is_empty());
    }
}
