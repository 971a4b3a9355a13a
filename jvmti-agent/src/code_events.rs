//! JIT events → code map.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_void};
use std::sync::Arc;

use jvmti_bindings::sys::jni::{jint, jmethodID};
use jvmti_bindings::sys::jvmti::{
    JVMTI_EVENT_COMPILED_METHOD_LOAD, JVMTI_EVENT_DYNAMIC_CODE_GENERATED, jvmtiAddrLocationMap,
    jvmtiEnv,
};
use unfuse_codemap::{CodeRange, FrameRec, Kind, Method as MapMethod, PcRec};
use unfuse_profiler::clock::monotonic_ns;

use crate::agent::{Agent, with_agent};
use crate::inline_records::{DescribedPc, described_pcs};
use crate::methods::{Method, is_loaded};
use crate::{late_calls, memory};

const OUTERMOST: u32 = u32::MAX;
/// Largest compiled method, bytes.
const MOST_CODE: u32 = 64 << 20;

thread_local! {
    /// Set while this thread replays code that was compiled before descriptions were enabled.
    static REPLAYING: Cell<bool> = const { Cell::new(false) };
    /// The methods of that code.
    static REPLAYED: RefCell<Vec<jmethodID>> = const { RefCell::new(Vec::new()) };
}

/// Replays all existing code; `described` if its descriptions are as good as those of new code. Returns the methods for
/// which they are not.
pub(crate) fn replay(agent: &Agent, described: bool) -> Vec<jmethodID> {
    for event in [
        JVMTI_EVENT_DYNAMIC_CODE_GENERATED,
        JVMTI_EVENT_COMPILED_METHOD_LOAD,
    ] {
        REPLAYING.set(!described && event == JVMTI_EVENT_COMPILED_METHOD_LOAD);
        let _ = agent.jvmti.generate_events(event);
        REPLAYING.set(false);
    }
    REPLAYED.take()
}

/// Whether the code that is there now is already known from its own, better event.
fn is_known(agent: &Agent, start: u64, now: u64) -> bool {
    let shape = agent.session.map().reader().shape(start, now);
    shape.is_some_and(|shape| shape.code_start == start)
}

/// Words of the frame of the code at an address; 0 if unknown or not needed.
fn frame_words(agent: &Agent, code_start: u64) -> u32 {
    let blobs = agent.code_blobs.as_ref();
    blobs
        .and_then(|blobs| blobs.frame_words(code_start))
        .unwrap_or(0)
}

pub(crate) unsafe extern "system" fn compiled_method_load(
    _: *mut jvmtiEnv,
    method: jmethodID,
    code_size: jint,
    code_addr: *const c_void,
    map_length: jint,
    map: *const jvmtiAddrLocationMap,
    compile_info: *const c_void,
) {
    let now = monotonic_ns();
    with_agent(|agent| {
        let start = code_addr as u64;
        let mut builder = Builder::new(agent, start);
        // SAFETY: the arguments are those of this event.
        let described = unsafe { described_pcs(compile_info) };
        for pc in &described {
            builder.add(pc);
        }
        if described.is_empty() {
            let entries = match usize::try_from(map_length) {
                // SAFETY: HotSpot gave pointer and length together.
                Ok(length) if !map.is_null() => unsafe { std::slice::from_raw_parts(map, length) },
                _ => &[],
            };
            for entry in entries {
                let (methods, bcis) = ([method], [entry.location as jint]);
                let pc = entry.start_address as u64;
                builder.add(&DescribedPc {
                    pc,
                    methods: &methods,
                    bcis: &bcis,
                });
            }
        }
        if builder.pcs.is_empty() {
            // A native wrapper: only its name is known.
            builder.add(&DescribedPc {
                pc: start,
                methods: &[method],
                bcis: &[-1],
            });
        }
        if !(REPLAYING.get() && is_known(agent, start, now)) {
            if REPLAYING.get() {
                REPLAYED.with_borrow_mut(|replayed| replayed.push(method));
            }
            builder.insert(code_size as u32, now);
        }
    });
}

pub(crate) unsafe extern "system" fn compiled_method_unload(
    _: *mut jvmtiEnv,
    method: jmethodID,
    code_addr: *const c_void,
) {
    let now = monotonic_ns();
    with_agent(|agent| {
        let writer = agent.session.map().writer();
        let class_is_loaded = || is_loaded(&agent.jvmti, method);
        let time = agent.evictions.time(now, class_is_loaded);
        writer.unload(code_addr as u64, time);
        writer.maintain(now);
    });
}

pub(crate) unsafe extern "system" fn dynamic_code_generated(
    _: *mut jvmtiEnv,
    name: *const c_char,
    address: *const c_void,
    length: jint,
) {
    let now = monotonic_ns();
    with_agent(|agent| {
        // SAFETY: a NUL-terminated name, valid during the event.
        let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
        let method = MapMethod {
            class: "",
            name: &name,
            signature: "",
            file: "",
        };
        let _ = agent.session.map().writer().insert(&CodeRange {
            start: address as u64,
            size: length.max(0) as u32,
            load_time: now,
            kind: Kind::Stub,
            frame_words: frame_words(agent, address as u64),
            sparse: false,
            methods: &[method],
            frames: &[FrameRec {
                parent: OUTERMOST,
                method: 0,
                bci: -1,
                line: 0,
            }],
            pcs: &[PcRec {
                offset: 0,
                frame: 0,
            }],
        });
    });
}

/// Builds a range: each method once, inline chains as a tree.
struct Builder<'a> {
    agent: &'a Agent,
    start: u64,
    methods: Vec<(jmethodID, Arc<Method>)>,
    frames: Vec<FrameRec>,
    children: HashMap<(u32, u32, jint), u32>,
    pcs: Vec<PcRec>,
}

impl<'a> Builder<'a> {
    fn new(agent: &'a Agent, start: u64) -> Self {
        Self {
            agent,
            start,
            methods: Vec::new(),
            frames: Vec::new(),
            children: HashMap::new(),
            pcs: Vec::new(),
        }
    }

    fn add(&mut self, described: &DescribedPc<'_>) {
        let Some(offset) = described
            .pc
            .checked_sub(self.start)
            .and_then(|o| u32::try_from(o).ok())
        else {
            return;
        };
        let mut parent = OUTERMOST;
        for (id, bci) in described.methods.iter().zip(described.bcis).rev() {
            parent = self.frame(parent, *id, *bci);
        }
        if parent != OUTERMOST {
            self.pcs.push(PcRec {
                offset,
                frame: parent,
            });
        }
    }

    fn frame(&mut self, parent: u32, id: jmethodID, bci: jint) -> u32 {
        let method = self.method(id);
        if let Some(known) = self.children.get(&(parent, method, bci)) {
            return *known;
        }
        let line = self.methods[method as usize].1.line(bci);
        let frame = self.frames.len() as u32;
        self.frames.push(FrameRec {
            parent,
            method,
            bci,
            line,
        });
        self.children.insert((parent, method, bci), frame);
        frame
    }

    fn method(&mut self, id: jmethodID) -> u32 {
        let known = self.methods.iter().position(|(known, _)| *known == id);
        known.unwrap_or_else(|| {
            self.methods
                .push((id, self.agent.methods.get(&self.agent.jvmti, id)));
            self.methods.len() - 1
        }) as u32
    }

    fn insert(mut self, size: u32, load_time: u64) {
        self.pcs.sort_by_key(|pc| pc.offset);
        let mut code = vec![0; size.min(MOST_CODE) as usize];
        let read = memory::read(self.start, &mut code);
        code.truncate(read);
        let described = late_calls::DescribedCode {
            jvmti: &self.agent.jvmti,
            code: &code,
            methods: &self.methods,
            frames: &self.frames,
        };
        late_calls::correct(&described, &mut self.pcs);
        let methods: Vec<_> = self
            .methods
            .iter()
            .map(|(_, m)| MapMethod {
                class: &m.class,
                name: &m.name,
                signature: &m.signature,
                file: &m.file,
            })
            .collect();
        // A full map counts what it drops; nothing else can be done here.
        let _ = self.agent.session.map().writer().insert(&CodeRange {
            start: self.start,
            size,
            load_time,
            kind: Kind::Java,
            frame_words: frame_words(self.agent, self.start),
            sparse: REPLAYING.get(),
            methods: &methods,
            frames: &self.frames,
            pcs: &self.pcs,
        });
    }
}
