//! Repairs callchains that native code broke, if the library has no call frame information that can be read (see
//! `native.rs`).
//!
//! The kernel follows frame pointers. Java code, stubs and libjvm keep them. A native library that was built without
//! them (such as a codec called through JNI) uses that register for something else, and the kernel's chain ends before the first
//! Java frame. The sample's copy of the stack still contains the link that the first Java frame saved: a frame pointer
//! that points further up the stack, and a return address into generated code. From there the frame pointers can be
//! followed.
//!
//! Three cases are less obvious. A library may keep the address of a frame further up in the frame pointer: the kernel's
//! chain then looks complete and skips callers. A few of HotSpot's own routines (SHA-512 on x86-64) use it for a table: the
//! chain then ends after its leaf. And calls that have returned leave links in the stack, which lead to frames that still
//! exist: if the frame pointer is a frame of libjvm, a true link leads to that frame, and a link of an earlier call leads
//! past it. If the kernel's walk reaches libjvm through other native code (`clock_gettime` of libc and the vDSO), all links are those of earlier
//! calls. If only libc is above libjvm (a thread that waits), libjvm's own links are the innermost true ones: its frames
//! have buffers that still contain links of earlier calls.

use super::interpreted::TaggedFrames;
use crate::arch::code_address;
use crate::maps::Maps;
use crate::perf_event::Sample;

/// Longest chain, as in the kernel.
const MAX_FRAMES: usize = 127;

/// Maximum number of links tried; the true one is among the first.
const MAX_CANDIDATES: usize = 64;
/// Largest frame, bytes.
const LARGEST_FRAME: u64 = 1 << 20;

/// The result of a repair.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Chain {
    /// The chain was complete.
    Whole,
    /// The chain was repaired in place.
    Repaired,
    /// The chain ends before its Java callers, and the stack does not contain the rest.
    Broken,
}

/// Repairs `chain` (leaf first) if it contains no generated code, skips some, or ends at a leaf of it. `is_described`
/// says whether the JVM has described the code at an address.
pub(super) fn repair(
    chain: &mut Vec<u64>,
    sample: &Sample<'_>,
    maps: &Maps,
    is_described: impl Fn(u64) -> bool,
) -> Chain {
    let in_code = |word: u64| maps.in_code_cache(word);
    let generated = chain.iter().position(|ip| in_code(*ip));
    // Generated code or the JVM calls generated code.
    let is_caller = |word: u64| in_code(word) || maps.in_jvm(word);
    let is_lost = generated == Some(0) && !chain.get(1).is_some_and(|word| is_caller(*word));
    if let Some(first) = generated
        && !is_lost
        && chain[..first].iter().all(|ip| maps.in_jvm(*ip))
    {
        return Chain::Whole;
    }
    let stack: Vec<u64> = sample.stack().collect();
    let base = sample.stack_pointer;
    // libjvm waits and allocates in libc. The stack of a leaf elsewhere has links of libjvm only from earlier calls.
    let by_jvm = match chain.first() {
        Some(leaf) if generated.is_none() && !maps.in_other_library(*leaf) => {
            let other = stack.iter().position(|word| maps.in_other_library(*word));
            other.unwrap_or(stack.len())
        }
        _ => 0,
    };
    // Numbers may look like addresses of the large range for generated code, so described code goes first.
    let is_described = |word: u64| in_code(word) && is_described(word);
    let view = View::new(base, &stack, maps, is_described);
    let any_code = || View::new(base, &stack, maps, in_code);
    let best = view.best_chain(by_jvm);
    let best = best.or_else(|| any_code().best_chain(by_jvm));
    if let (Some(generated @ 2..), Some((from, _))) = (generated, &best)
        && let Some(entry) = view.entry(sample.frame_pointer, &chain[1..generated], maps)
        && match entry {
            // The kernel walked from a frame of libjvm: true callers that it skipped lead to this frame.
            Entry::Jvm(frame) => !any_code().leads_to(*from, frame),
            Entry::Native => true,
        }
    {
        return Chain::Whole;
    }
    let best = best.map(|(_, callers)| callers);
    if let Some(generated) = generated.filter(|_| !is_lost) {
        if let Some(callers) =
            best.and_then(|callers| left_out(callers, &chain[generated..], &stack))
        {
            chain.splice(1..generated, callers);
            return Chain::Repaired;
        }
        return Chain::Whole;
    }
    if is_lost && best.is_none() && chain.iter().skip(1).any(|word| is_caller(*word)) {
        return Chain::Whole;
    }
    // The leaf is correct; the words after it were read through a register that was no frame pointer.
    let first = || {
        let described = stack.iter().find(|word| is_described(**word));
        described.or_else(|| stack.iter().find(|word| in_code(**word)))
    };
    let Some(callers) = best.or_else(|| Some(vec![*first()?])) else {
        return Chain::Broken;
    };
    chain.truncate(1);
    chain.extend(callers);
    Chain::Repaired
}

/// Drops callers outside code, and returns whether there were any. Must follow the tagging of interpreted frames, which
/// are found along the links that such callers are a part of.
pub(super) fn drop_non_code_frames(
    chain: &mut Vec<u64>,
    tagged: &TaggedFrames,
    maps: &Maps,
) -> bool {
    let walked = chain.len();
    let mut is_leaf = true;
    chain.retain(|ip| {
        std::mem::take(&mut is_leaf) || maps.is_code(*ip) || tagged.get(*ip).is_some()
    });
    chain.len() < walked
}

/// Callers (leaf first) that the kernel's walk skipped before it reached `walked`: native code had a frame's address in the
/// frame pointer, but not that of its own frame.
fn left_out(mut callers: Vec<u64>, walked: &[u64], stack: &[u64]) -> Option<Vec<u64>> {
    let first = *walked.first()?;
    match callers.iter().position(|ip| *ip == first) {
        Some(joins) => callers.truncate(joins),
        // Further up than the copy.
        None if !stack.iter().any(|word| code_address(*word) == first) => {}
        None => return None,
    }
    (!callers.is_empty()).then_some(callers)
}

/// The owner of the frame in the frame pointer.
enum Entry {
    /// libjvm, or code called by it, at an index of the copy.
    Jvm(usize),
    /// Native code that libjvm called through other native code, as `clock_gettime` of libc calls the vDSO. It does not
    /// call Java, so all links below libjvm's frames are those of earlier calls.
    Native,
}

/// The owner of a return address.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Caller {
    Code,
    Jvm,
}

/// The copy of the stack, by address.
struct View<'a> {
    base: u64,
    words: &'a [u64],
    /// For each word that is a frame pointer that leads up, followed by a return address: the owner of the address.
    links: Vec<Option<Caller>>,
}

impl<'a> View<'a> {
    /// Links to generated code, by `is_code`, and to libjvm.
    fn new(base: u64, words: &'a [u64], maps: &Maps, is_code: impl Fn(u64) -> bool) -> Self {
        let caller = |word: u64| match code_address(word) {
            ip if maps.in_jvm(ip) => Some(Caller::Jvm),
            ip => is_code(ip).then_some(Caller::Code),
        };
        let pairs = (base..).step_by(8).zip(words.windows(2));
        let links = pairs.map(|(own, pair)| {
            let leads_up = pair[0] > own && pair[0] - own < LARGEST_FRAME;
            leads_up.then(|| caller(pair[1])).flatten()
        });
        Self {
            base,
            words,
            links: links.collect(),
        }
    }

    fn address(&self, index: usize) -> u64 {
        self.base + 8 * index as u64
    }

    fn index(&self, address: u64) -> Option<usize> {
        let offset = address.checked_sub(self.base)?;
        let index = usize::try_from(offset / 8).ok()?;
        (offset.is_multiple_of(8) && index < self.links.len()).then_some(index)
    }

    /// The innermost link that leads furthest up, and the return addresses from there: a link to generated code, or to
    /// libjvm below word `by_jvm`. Buffers in native frames contain data of earlier calls, including old links: such a
    /// link breaks off, joins the true chain further up, or leads past all of Java.
    fn best_chain(&self, by_jvm: usize) -> Option<(usize, Vec<u64>)> {
        let candidates = (0..self.links.len()).filter(|slot| match self.links[*slot] {
            Some(Caller::Code) => true,
            Some(Caller::Jvm) => *slot < by_jvm,
            None => false,
        });
        let mut best: Option<(u64, usize)> = None;
        for slot in candidates.take(MAX_CANDIDATES) {
            let last = self.follow(slot).last().unwrap_or(slot);
            let leads_to_java = || {
                self.follow(slot)
                    .any(|slot| self.links[slot] == Some(Caller::Code))
            };
            let reach = self.reach(last);
            if best.is_none_or(|(furthest, _)| reach > furthest) && leads_to_java() {
                best = Some((reach, slot));
            }
        }
        let (_, from) = best?;
        Some((
            from,
            self.follow(from)
                .map(|slot| code_address(self.words[slot + 1]))
                .collect(),
        ))
    }

    /// The owner of the frame pointer if generated code called libjvm, and libjvm called the current code. `walked` are the
    /// return addresses that the kernel found from there on, up to generated code.
    fn entry(&self, frame_pointer: u64, walked: &[u64], maps: &Maps) -> Option<Entry> {
        let native = walked.iter().rposition(|ip| !maps.in_jvm(*ip));
        let native = native.map_or(0, |last| last + 1);
        let first = self.index(frame_pointer)?;
        let mut frame = first;
        for ip in &walked[..native] {
            if code_address(self.words[frame + 1]) != *ip {
                return None;
            }
            frame = self.index(self.words[frame])?;
        }
        let caller = self.words.get(frame + 1).map(|word| code_address(*word));
        let is_called_by_jvm = caller.as_ref() == walked.get(native);
        is_called_by_jvm.then_some(if native == 0 {
            Entry::Jvm(first)
        } else {
            Entry::Native
        })
    }

    /// Whether links lead from one slot to another one further up.
    fn leads_to(&self, from: usize, to: usize) -> bool {
        let mut slot = from;
        while slot < to && self.links[slot].is_some() {
            match self.index(self.words[slot]) {
                Some(next) => slot = next,
                None => return false,
            }
        }
        slot == to
    }

    /// The slots of a link and of those that it leads to, at most as many as a chain has frames.
    fn follow(&self, from: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(from), |slot| {
            self.index(self.words[*slot])
                .filter(|next| self.links[*next].is_some())
        })
        .take(MAX_FRAMES)
    }

    /// The highest address to which a chain leads that ends with this link.
    fn reach(&self, last: usize) -> u64 {
        match self.index(self.words[last]) {
            Some(_) => self.address(last),
            // Outside the copy, where nothing is visible.
            None => self.words[last],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The range of generated code.
    const CODE: std::ops::Range<u64> = 0x1000..0x2000;
    /// Its first address that is not described.
    const UNDESCRIBED: u64 = 0x1f00;
    const STACK: u64 = 0x8000;
    /// Not in code, though it looks like an interpreted frame.
    const STRAY: u64 = 0xbff8_0000_0000_0000;

    fn repaired(chain: Vec<u64>, stack: &[u64]) -> (Chain, Vec<u64>) {
        repaired_from(0, chain, stack)
    }

    /// The same if the frame pointer points to a word of the stack.
    fn repaired_from(frame_pointer: u64, mut chain: Vec<u64>, stack: &[u64]) -> (Chain, Vec<u64>) {
        let mut maps = Maps::open(std::process::id()).unwrap();
        maps.set_code_cache(CODE);
        maps.set_jvm(jvm(), jvm() + 1);
        let bytes: Vec<u8> = stack.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let mut sample = Sample::from_stack(STACK, &bytes);
        sample.frame_pointer = frame_pointer;
        let state = repair(&mut chain, &sample, &maps, |word| word < UNDESCRIBED);
        drop_non_code_frames(&mut chain, &TaggedFrames::new(None), &maps);
        (state, chain)
    }

    /// An address in a library.
    fn native() -> u64 {
        repaired as fn(Vec<u64>, &[u64]) -> (Chain, Vec<u64>) as usize as u64
    }

    /// An address in libc, which stands for libjvm here.
    fn jvm() -> u64 {
        libc::getpid as *const () as u64
    }

    #[test]
    fn words_between_a_library_and_its_caller_are_no_callers() {
        let (state, chain) = repaired(vec![native(), STRAY, 0x1010, 0x1020], &[STRAY]);
        assert_eq!(
            (state, chain),
            (Chain::Whole, vec![native(), 0x1010, 0x1020])
        );
        let whole = vec![native(), native(), 0x1010];
        assert_eq!(repaired(whole.clone(), &[STRAY]), (Chain::Whole, whole));
    }

    #[test]
    fn a_leaf_whose_callers_are_nowhere_stands_alone() {
        for chain in [vec![0x1010], vec![0x1010, STRAY]] {
            assert_eq!(repaired(chain, &[STRAY]), (Chain::Broken, vec![0x1010]));
        }
        // A stub through which native code calls Java.
        let upcall = vec![0x1010, native()];
        assert_eq!(repaired(upcall.clone(), &[STRAY]), (Chain::Broken, upcall));
        let further_up = vec![0x1010, STRAY, 0x1020, 0x1030];
        let expected = (Chain::Whole, vec![0x1010, 0x1020, 0x1030]);
        assert_eq!(repaired(further_up, &[STRAY]), expected);
        assert_eq!(
            repaired(vec![native(), STRAY], &[]),
            (Chain::Broken, vec![native()])
        );
    }

    #[test]
    fn callers_are_found_by_the_link_that_leads_furthest() {
        // A link that leads nowhere, then the true one, which leads to another.
        let stack = [
            STACK + 16,
            0x1100,
            0,
            STACK + 48,
            0x1020,
            0,
            STACK + 4096,
            0x1030,
        ];
        let expected = (Chain::Repaired, vec![native(), 0x1020, 0x1030]);
        assert_eq!(repaired(vec![native(), STRAY], &stack), expected);
        let expected = (Chain::Repaired, vec![0x1010, 0x1020, 0x1030]);
        assert_eq!(repaired(vec![0x1010, STRAY], &stack), expected);
    }

    #[test]
    fn a_number_that_looks_like_code_is_no_caller() {
        #[rustfmt::skip]
        let stack = [
            STACK + 48, UNDESCRIBED + 2, UNDESCRIBED, 0,
            STACK + 4096, 0x1010,
        ];
        let expected = (Chain::Repaired, vec![native(), 0x1010]);
        assert_eq!(repaired(vec![native()], &stack), expected);
        // Code that is not described yet: nothing better is known.
        let expected = (Chain::Repaired, vec![native(), UNDESCRIBED + 2]);
        assert_eq!(repaired(vec![native()], &stack[..4]), expected);
    }

    /// A library that libjvm called, and a link at the top of the stack to the frame at `leads_to`. The frame pointer is
    /// libjvm's frame at word 4, which leads to generated code at word 8.
    fn called_by_the_jvm(leads_to: u64) -> (Chain, Vec<u64>) {
        let [frame, caller] = [4, 8].map(|word| STACK + 8 * word);
        #[rustfmt::skip]
        let stack = [
            STACK + 8 * leads_to, 0x1020, 0, 0,
            caller, jvm(), 0, 0,
            STACK + 4096, 0x1010,
        ];
        repaired_from(frame, vec![native(), jvm(), 0x1010], &stack)
    }

    #[test]
    fn a_link_of_an_earlier_call_is_no_caller_of_libjvm() {
        let whole = vec![native(), jvm(), 0x1010];
        assert_eq!(called_by_the_jvm(8), (Chain::Whole, whole));
    }

    #[test]
    fn callers_are_found_that_libjvm_called() {
        let complete = vec![native(), 0x1020, jvm(), 0x1010];
        assert_eq!(called_by_the_jvm(4), (Chain::Repaired, complete));
    }

    /// A thread that waits: `leaf`, libjvm's frame at word 4, and between it and its Java caller's frame at word 10 a
    /// link of an earlier call, which leads to the same frame of Java.
    fn waits_in(leaf: u64) -> (Chain, Vec<u64>) {
        let [wrapper, caller, further] = [10, 14, 512].map(|word| STACK + 8 * word);
        #[rustfmt::skip]
        let stack = [
            0, 0, 0, 0,
            wrapper, jvm(), caller, 0x1100, 0, 0,
            caller, 0x1010, 0, 0,
            further, 0x1020,
        ];
        repaired(vec![leaf], &stack)
    }

    #[test]
    fn links_of_libjvm_that_lead_past_java_are_no_callers() {
        let [wrapper, past] = [8, 1024].map(|word| STACK + 8 * word);
        #[rustfmt::skip]
        let stack = [
            0, 0, past, jvm(),
            wrapper, jvm(), 0, 0,
            STACK + 4096, 0x1010,
        ];
        let leaf = libc::getppid as *const () as u64;
        let whole = vec![leaf, jvm(), 0x1010];
        assert_eq!(repaired(vec![leaf], &stack), (Chain::Repaired, whole));
    }

    #[test]
    fn a_link_in_a_frame_of_libjvm_is_no_caller_of_libc() {
        let leaf = libc::getppid as *const () as u64;
        let whole = vec![leaf, jvm(), 0x1010, 0x1020];
        assert_eq!(waits_in(leaf), (Chain::Repaired, whole));
        // The frames of another library, or of a routine with a table in the frame pointer, contain links of libjvm's earlier
        // calls.
        for leaf in [native(), 0x1200] {
            let (state, chain) = waits_in(leaf);
            assert_eq!((state, &chain[..1]), (Chain::Repaired, &[leaf][..]));
            assert!(!chain.contains(&jvm()), "{chain:x?}");
        }
    }

    #[test]
    fn links_of_earlier_calls_are_no_callers_of_the_clock() {
        // The frame pointer is the vDSO's frame at word 6; libc has saved it at word 8 and not changed it; libjvm's frame is at
        // word 10.
        let [vdso, libc, jvms, caller] = [6, 8, 10, 12].map(|word| STACK + 8 * word);
        let whole = vec![native(), native(), jvm(), 0x1010, 0x1030];
        for leads_to in [libc, jvms, caller] {
            #[rustfmt::skip]
            let stack = [
                0, 0, leads_to, 0x1020, 0, 0,
                jvms, native(), jvms, jvm(),
                caller, jvm(), STACK + 8 * 14, 0x1010,
                STACK + 4096, 0x1030,
            ];
            let found = repaired_from(vdso, whole.clone(), &stack);
            assert_eq!(found, (Chain::Whole, whole.clone()), "{leads_to:#x}");
        }
    }
}
