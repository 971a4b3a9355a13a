//! The JVM's events that every session needs, launched or attached.

use std::ptr;

use jvmti_bindings::env::Jvmti;
use jvmti_bindings::sys::jvmti::{
    JVMTI_EVENT_COMPILED_METHOD_LOAD, JVMTI_EVENT_COMPILED_METHOD_UNLOAD,
    JVMTI_EVENT_DYNAMIC_CODE_GENERATED, JVMTI_EVENT_GARBAGE_COLLECTION_START, jvmtiEvent,
    jvmtiEventCallbacks,
};

use crate::agent::Agent;
use crate::{code_events, evictions, threads};

/// The reason why the agent ends if JVMTI does not send its events.
pub(crate) const EVENTS_REFUSED: &str = "this JVM refuses the events the profiler needs";

/// What keeps the code map up to date.
pub(crate) const CODE_EVENTS: [jvmtiEvent; 4] = [
    JVMTI_EVENT_COMPILED_METHOD_LOAD,
    JVMTI_EVENT_COMPILED_METHOD_UNLOAD,
    JVMTI_EVENT_DYNAMIC_CODE_GENERATED,
    JVMTI_EVENT_GARBAGE_COLLECTION_START,
];

/// The capabilities for descriptions of code.
pub(crate) fn add_capabilities(jvmti: &Jvmti) -> Result<(), String> {
    jvmti
        .add_capabilities_with(|capabilities| {
            capabilities.set_can_generate_compiled_method_load_events(true);
            capabilities.set_can_generate_garbage_collection_events(true);
            capabilities.set_can_get_source_file_name(true);
            capabilities.set_can_get_line_numbers(true);
            capabilities.set_can_get_bytecodes(true);
            capabilities.set_can_get_constant_pool(true);
        })
        .map(drop)
        .map_err(|_| {
            "this JVM has no CompiledMethodLoad events, line tables or bytecodes; use HotSpot"
                .to_owned()
        })
}

/// Adds the capability to patch loaded classes.
pub(crate) fn add_transforming(jvmti: &Jvmti) -> Result<(), String> {
    jvmti
        .add_capabilities_with(|capabilities| capabilities.set_can_retransform_classes(true))
        .map(drop)
        .map_err(|_| "this JVM does not transform loaded classes; use -agentpath".to_owned())
}

/// The callbacks of every session, launched or attached.
pub(crate) fn code_and_thread_callbacks() -> jvmtiEventCallbacks {
    let mut callbacks = jvmtiEventCallbacks::default();
    callbacks.ThreadStart = Some(threads::thread_start);
    callbacks.ThreadEnd = Some(threads::thread_end);
    callbacks.CompiledMethodLoad = Some(code_events::compiled_method_load);
    callbacks.CompiledMethodUnload = Some(code_events::compiled_method_unload);
    callbacks.GarbageCollectionStart = Some(evictions::garbage_collection_start);
    callbacks.DynamicCodeGenerated = Some(code_events::dynamic_code_generated);
    callbacks
}

/// Enables an event in all threads.
pub(crate) fn enable(agent: &Agent, event: jvmtiEvent) -> Option<()> {
    set_event(agent, event, true)
}

/// Enables or disables an event in all threads.
pub(crate) fn set_event(agent: &Agent, event: jvmtiEvent, on: bool) -> Option<()> {
    // SAFETY: a global switching (no thread) of an event whose callback is set.
    unsafe {
        agent
            .jvmti
            .set_event_notification_mode(on, event, ptr::null_mut())
    }
    .ok()
}
