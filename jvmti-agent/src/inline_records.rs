//! jvmticmlr.h: the `compile_info` that HotSpot passes to CompiledMethodLoad.

use std::ffi::c_void;

use jvmti_bindings::sys::jni::{jint, jmethodID};

const KIND_INLINE_INFO: jint = 2;

#[repr(C)]
struct Record {
    kind: jint,
    major_version: jint,
    minor_version: jint,
    next: *const Record,
}

#[repr(C)]
struct InlineRecord {
    header: Record,
    count: jint,
    entries: *const RawPc,
}

#[repr(C)]
struct RawPc {
    pc: *const c_void,
    depth: jint,
    methods: *const jmethodID,
    bcis: *const jint,
}

/// A described pc with its inlined methods, innermost first.
pub(crate) struct DescribedPc<'a> {
    pub(crate) pc: u64,
    pub(crate) methods: &'a [jmethodID],
    pub(crate) bcis: &'a [jint],
}

/// The described pcs of a compiled method, in order; empty without an inline record.
///
/// # Safety
/// `compile_info` is that of the CompiledMethodLoad event now being handled.
pub(crate) unsafe fn described_pcs<'a>(compile_info: *const c_void) -> Vec<DescribedPc<'a>> {
    let mut record = compile_info.cast::<Record>();
    // SAFETY: HotSpot's records are valid for the length of the event and linked by `next`.
    unsafe {
        while !record.is_null() {
            if (*record).kind == KIND_INLINE_INFO {
                let inline = &*record.cast::<InlineRecord>();
                let entries = slice(inline.entries, inline.count);
                return entries
                    .iter()
                    .map(|entry| DescribedPc {
                        pc: entry.pc as u64,
                        methods: slice(entry.methods, entry.depth),
                        bcis: slice(entry.bcis, entry.depth),
                    })
                    .collect();
            }
            record = (*record).next;
        }
    }
    Vec::new()
}

unsafe fn slice<'a, T>(start: *const T, count: jint) -> &'a [T] {
    match usize::try_from(count) {
        // SAFETY: the caller passes a pointer and count that HotSpot gave together.
        Ok(count) if count > 0 && !start.is_null() => unsafe {
            std::slice::from_raw_parts(start, count)
        },
        _ => &[],
    }
}
