//! From addresses to frames.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{DefaultHasher, Hash, Hasher};

use unfuse_codemap::{CodeMap, Kind, Lookup, Resolved};
use unfuse_format::Frame;

use super::interpreted::{INTERPRETER, Words};
use super::outbox::Outbox;
use crate::interpreter::InterpretedMethod;
use crate::maps::Maps;
use crate::wire::WireFrame;

/// Callchains remembered with their answer.
const CACHE_ENTRIES: usize = 8192;

/// The stub through which the VM enters Java; what is rootward of it is the VM's own thread code.
const ENTRY_STUB: &str = "call_stub";

/// What the thread does below the frames of its callchain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Leaf {
    /// It runs the innermost frame.
    Frame,
    /// It runs in the kernel.
    Kernel,
    /// It waits.
    Wait,
    /// It waits for a CPU.
    Queue,
    /// It waits, and not in the innermost frame, which is one from before.
    Guess,
}

impl Leaf {
    fn frame(self) -> Option<WireFrame> {
        match self {
            Self::Frame | Self::Wait => None,
            Self::Kernel => Some(frame("kernel", "[kernel]")),
            Self::Queue => Some(frame("wait", "[run queue]")),
            Self::Guess => Some(frame("wait", "[waiting]")),
        }
    }
}

#[derive(Clone, Copy)]
struct Known {
    stack: i64,
    /// State of the code map the answer was found in.
    version: u64,
    /// Sample times for which it holds.
    from: u64,
    to: u64,
}

/// Resolves callchains of one JVM.
pub(super) struct Resolver<'a> {
    map: &'a CodeMap,
    maps: Maps,
    known: HashMap<u64, Known>,
    resolved: Resolved,
}

impl<'a> Resolver<'a> {
    pub(super) fn new(map: &'a CodeMap, maps: Maps) -> Self {
        Self {
            map,
            maps,
            known: HashMap::new(),
            resolved: Resolved::default(),
        }
    }

    pub(super) fn maps(&mut self) -> &mut Maps {
        &mut self.maps
    }

    /// The id of a callchain's stack; a stack not seen before goes to the outbox.
    pub(super) fn resolve(
        &mut self,
        time: u64,
        leaf: Leaf,
        chain: &[u64],
        words: &Words,
        outbox: &mut Outbox<'_>,
    ) -> i64 {
        let version = self.map.version();
        let mut hasher = DefaultHasher::new();
        (chain, leaf).hash(&mut hasher);
        let key = hasher.finish();
        if let Some(known) = self.known.get(&key)
            && known.version == version
            && (known.from..known.to).contains(&time)
        {
            return known.stack;
        }
        let mut window = (0, u64::MAX);
        let frames = self.frames(time, leaf, chain, words, &mut window);
        let stack = outbox.stack(frames);
        if self.known.len() >= CACHE_ENTRIES {
            self.known.clear();
        }
        let known = Known {
            stack,
            version,
            from: window.0,
            to: window.1,
        };
        match self.known.entry(key) {
            Entry::Occupied(mut entry) => *entry.get_mut() = known,
            Entry::Vacant(entry) => drop(entry.insert(known)),
        }
        stack
    }

    /// Frames, root first.
    fn frames(
        &mut self,
        time: u64,
        leaf: Leaf,
        chain: &[u64],
        words: &Words,
        window: &mut (u64, u64),
    ) -> Vec<WireFrame> {
        let mut leaf_first = Vec::with_capacity(chain.len() + 8);
        leaf_first.extend(leaf.frame());
        // Where the VM entered Java: the thread's start, or class loading in the midst of it.
        let mut entered = None;
        for (depth, ip) in chain.iter().enumerate() {
            if let Some((method, bci)) = words.get(*ip) {
                leaf_first.push(interpreted_frame(method, bci));
                continue;
            }
            // In the kernel, the user's address is that after the system call.
            let exact = depth == 0 && leaf != Leaf::Kernel;
            match self
                .map
                .reader()
                .resolve(*ip, time, exact, &mut self.resolved)
            {
                Lookup::Found => {
                    window.0 = window.0.max(self.resolved.valid_from);
                    window.1 = window.1.min(self.resolved.valid_to);
                    if self.resolved.kind == Kind::Stub {
                        let name = self
                            .resolved
                            .frames
                            .first()
                            .map_or("", |f| f.method.as_str());
                        if name == ENTRY_STUB {
                            entered = Some(leaf_first.len());
                        }
                        let kind = if name == INTERPRETER {
                            "interpreted"
                        } else {
                            "stub"
                        };
                        leaf_first.push(frame(kind, name));
                    } else {
                        leaf_first.extend(self.resolved.frames.drain(..).rev().map(java_frame));
                    }
                }
                Lookup::NotFound | Lookup::Torn => leaf_first.push(self.native(*ip)),
            }
        }
        if let Some(root) = entered
            && !leaf_first[root..]
                .iter()
                .any(|wire| !wire.frame.class.is_empty())
        {
            leaf_first.truncate(root);
        }
        leaf_first.reverse();
        leaf_first
    }

    fn native(&self, ip: u64) -> WireFrame {
        match self.maps.find(ip) {
            Some(mapping) if !mapping.path.is_empty() => WireFrame {
                frame: Frame {
                    file: mapping.path.clone(),
                    ..frame("native", "").frame
                },
                address: ip - mapping.start + mapping.offset,
            },
            Some(_) => frame("unknown", "[code cache]"),
            None => frame("unknown", "[unknown]"),
        }
    }
}

fn frame(kind: &str, method: &str) -> WireFrame {
    let frame = Frame {
        kind: kind.to_owned(),
        method: method.to_owned(),
        bci: -1,
        ..Frame::default()
    };
    WireFrame { frame, address: 0 }
}

fn interpreted_frame(method: &InterpretedMethod, bci: Option<u16>) -> WireFrame {
    let names = method.names.clone();
    let frame = Frame {
        kind: "interpreted".to_owned(),
        class: names.class,
        method: names.name,
        signature: names.signature,
        file: names.file,
        line: bci.map_or(0, |bci| method.line(bci)),
        bci: bci.map_or(-1, i32::from),
        inlined: false,
    };
    WireFrame { frame, address: 0 }
}

fn java_frame(frame: unfuse_codemap::Frame) -> WireFrame {
    let frame = Frame {
        kind: "java".to_owned(),
        class: frame.class,
        method: frame.method,
        signature: frame.signature,
        file: frame.file,
        line: frame.line,
        bci: frame.bci,
        inlined: frame.inlined,
    };
    WireFrame { frame, address: 0 }
}
