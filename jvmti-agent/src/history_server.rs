//! A JVM that shows profiles and is not profiled itself (`ui=only`), such as a History Server: it gets the Spark jar
//! and the path of the profile. Nothing is forked, and nothing is written.

use std::ptr;
use std::sync::OnceLock;

use jni::Env;
use jvmti_bindings::env::Jvmti;
use jvmti_bindings::sys::jni::{JNIEnv, JavaVM, jthread};
use jvmti_bindings::sys::jvmti::{JVMTI_EVENT_VM_INIT, jvmtiEnv, jvmtiEventCallbacks};
use unfuse_profiler::options::Options;

use crate::jni_env::{clear_exception, with_event_env};
use crate::library::jar_path;
use crate::log;
use crate::properties::{program_properties, set_properties};

/// Options for [`vm_init`], whose work is impossible in `Agent_OnLoad`: HotSpot accepts no new system properties there,
/// and there is no class loader yet.
static OPTIONS: OnceLock<Options> = OnceLock::new();

/// Prepares a starting JVM.
pub(crate) fn start(vm: *mut JavaVM, options: Options) -> Result<(), String> {
    // SAFETY: the JVM passes a valid VM.
    let jvmti = unsafe { Jvmti::from_java_vm_raw(vm) }
        .map_err(|code| format!("this JVM offers no JVMTI (code {code})"))?;
    let _ = OPTIONS.set(options);
    let refused = |_| "this JVM refuses the event that the tab in its pages needs".to_owned();
    let mut callbacks = jvmtiEventCallbacks::default();
    callbacks.VMInit = Some(vm_init);
    jvmti.set_event_callbacks(callbacks).map_err(refused)?;
    // SAFETY: a global switching (no thread) of an event whose callback is set.
    unsafe { jvmti.set_event_notification_mode(true, JVMTI_EVENT_VM_INIT, ptr::null_mut()) }
        .map_err(refused)
}

unsafe extern "system" fn vm_init(env: *mut jvmtiEnv, jni: *mut JNIEnv, _: jthread) {
    let added = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let options = OPTIONS.get()?;
        let tell = |env: &mut Env<'_>| {
            let set = set_properties(env, &program_properties(options));
            clear_exception(env);
            set
        };
        // SAFETY: the JVM passes the environment that the event was switched on in, and this thread's own.
        let jvmti = unsafe {
            with_event_env(jni, tell)?;
            Jvmti::from_raw(env)
        };
        jar_path().and_then(|jar| jvmti.add_to_system_class_loader_search(&jar).ok())
    }));
    if !matches!(added, Ok(Some(()))) {
        log::say("the jar for Spark could not be loaded: there will be no tab Operators");
    }
}
