//! A JVM that shows profiles and is not profiled itself (`ui=only`), such as a History Server: it gets the
//! Spark jar and is told where the profile is. Nothing is forked, and nothing is written.

use std::path::Path;
use std::ptr;

use jvmti_bindings::env::Jvmti;
use jvmti_bindings::sys::jni::{JNIEnv, JavaVM, jthread};
use jvmti_bindings::sys::jvmti::{JVMTI_EVENT_VM_INIT, jvmtiEnv, jvmtiEventCallbacks};

use crate::log;
use crate::onload::own_path;
use crate::options::{Options, Tab};
use crate::spark_jar::jar_path;

/// System properties that `ReportProgram` reads: the profile directory, and the program that reads it,
/// which is expected beside this library.
pub(crate) fn properties(options: &Options) -> Vec<(&'static str, String)> {
    let of = || {
        let dir = std::path::absolute(&options.config.dir).ok()?;
        let program = Path::new(&own_path()?).with_file_name("unfuse");
        Some(vec![
            ("unfuse.ui.dir", dir.to_str()?.to_owned()),
            ("unfuse.ui.program", program.to_str()?.to_owned()),
        ])
    };
    match options.tab {
        Tab::Off => Vec::new(),
        Tab::On | Tab::Only => of().unwrap_or_default(),
    }
}

/// Prepares a JVM that is starting.
pub(crate) fn start(vm: *mut JavaVM, options: &Options) -> Result<(), String> {
    // SAFETY: the JVM passes a valid VM.
    let jvmti = unsafe { Jvmti::from_java_vm_raw(vm) }
        .map_err(|code| format!("this JVM offers no JVMTI (code {code})"))?;
    let refused = |_| "this JVM refuses what the tab in its pages needs".to_owned();
    for (name, value) in properties(options) {
        jvmti.set_system_property(name, &value).map_err(refused)?;
    }
    let mut callbacks = jvmtiEventCallbacks::default();
    callbacks.VMInit = Some(vm_init);
    jvmti.set_event_callbacks(callbacks).map_err(refused)?;
    // SAFETY: a global switching (no thread) of an event whose callback is set.
    unsafe { jvmti.set_event_notification_mode(true, JVMTI_EVENT_VM_INIT, ptr::null_mut()) }
        .map_err(refused)
}

/// The class path can take a file without a name only now that there is a class loader.
unsafe extern "system" fn vm_init(env: *mut jvmtiEnv, _: *mut JNIEnv, _: jthread) {
    let added = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        // SAFETY: the JVM passes the environment that the event was switched on in.
        let jvmti = unsafe { Jvmti::from_raw(env) };
        jar_path().and_then(|jar| jvmti.add_to_system_class_loader_search(&jar).ok())
    }));
    if !matches!(added, Ok(Some(()))) {
        log::say("the jar for Spark could not be loaded: there will be no tab Operators");
    }
}
