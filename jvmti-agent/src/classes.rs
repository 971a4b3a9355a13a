//! Class loading: detects Spark by its classes, and patches the target classes.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_uchar};
use std::sync::OnceLock;

use jni::Env;
use jvmti_bindings::sys::jni::{JNIEnv, jclass, jint, jobject};
use jvmti_bindings::sys::jvmti::jvmtiEnv;

use crate::agent::{Agent, with_agent};
use crate::jni_env::with_event_env;
use crate::spark_jar::Patches;
use crate::threads;

static PATCHES: OnceLock<Option<Patches>> = OnceLock::new();

thread_local! {
    /// Set while this thread loads the patches. Loading them can load classes of Spark, which must not wait for them.
    static LOADING: Cell<bool> = const { Cell::new(false) };
}

/// Classes that only a JVM with a Spark application loads (the launcher does not).
const SPARK: [&str; 2] = [
    "org/apache/spark/SparkContext",
    "org/apache/spark/executor/Executor",
];

pub(crate) unsafe extern "system" fn class_file_load_hook(
    _: *mut jvmtiEnv,
    env: *mut JNIEnv,
    redefined: jclass,
    _loader: jobject,
    name: *const c_char,
    _: jobject,
    length: jint,
    data: *const c_uchar,
    new_length: *mut jint,
    new_data: *mut *mut c_uchar,
) {
    if name.is_null() || env.is_null() {
        return;
    }
    // SAFETY: a NUL-terminated name, valid during the event.
    let name = unsafe { CStr::from_ptr(name) };
    // A cheap test for the many classes that are not Spark's; our own must not trigger it.
    if !name.to_bytes().starts_with(b"org/apache/spark/") {
        return;
    }
    with_agent(|agent| {
        let Ok(name) = name.to_str() else { return };
        // An agent without the capability to retransform receives its own patched class here; with it, the original.
        if !redefined.is_null() && !agent.options.plugin {
            return;
        }
        if SPARK.contains(&name) {
            threads::spark_found(agent);
        }
        let patched = |env: &mut Env<'_>| {
            let patches = load_patches(agent, env);
            let Some(patches) = patches.filter(|patches| patches.wants(name)) else {
                return Ok(None);
            };
            // SAFETY: the JVM passes a buffer and its length.
            let class_file = unsafe { std::slice::from_raw_parts(data, length.max(0) as usize) };
            Ok(patches.patch(env, name, class_file))
        };
        // SAFETY: the JVM passes this thread's environment.
        if let Some(patched) = unsafe { with_event_env(env, patched) }.flatten() {
            // SAFETY: out-parameters of this event.
            unsafe { hand_over(agent, &patched, new_length, new_data) };
        }
    });
}

/// The patches, loaded by the first caller; `None` while it loads them, or if they cannot be loaded.
pub(crate) fn load_patches(agent: &Agent, env: &mut Env<'_>) -> Option<&'static Patches> {
    if LOADING.get() {
        return None;
    }
    let patches = PATCHES.get_or_init(|| {
        LOADING.set(true);
        let patches = Patches::load(agent, env);
        LOADING.set(false);
        patches
    });
    patches.as_ref()
}

unsafe fn hand_over(agent: &Agent, bytes: &[u8], length: *mut jint, data: *mut *mut c_uchar) {
    // SAFETY: JVMTI wants memory from its own allocator, which it frees; sizes agree.
    unsafe {
        if let Ok(buffer) = agent.jvmti.allocate_raw(bytes.len() as i64) {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), buffer, bytes.len());
            *data = buffer;
            *length = bytes.len() as jint;
        }
    }
}
