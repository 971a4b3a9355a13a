//! For a JVM whose Spark loads the agent as a plugin (`spark.plugins`), without `-agentpath`: the plugin loads this
//! library, starts `unfuse launch` and passes the options that it prints. The agent stays until the JVM ends.
//!
//! Classes of Spark that are loaded already are transformed again. Every later transformation of a class, by whatever
//! agent, passes the class as Spark compiled it, so it is patched each time.

use std::ffi::CString;
use std::time::Duration;

use jni::objects::{JClass, JObject, JString};
use jni::{Env, EnvUnowned};
use jvmti_bindings::sys::jni::jclass;
use jvmti_bindings::sys::jvmti::{JVMTI_EVENT_CLASS_FILE_LOAD_HOOK, JVMTI_EVENT_VM_DEATH};
use unfuse_profiler::options::Options;

use crate::agent::{Agent, is_installed};
use crate::events::{EVENTS_REFUSED, enable};
use crate::jni_env::{clear_exception, with_caller};
use crate::library::own_path;
use crate::{attach, classes, log, natives};

/// How long the plugin waits for the agent; Spark waits for the plugin.
const PATIENCE: Duration = Duration::from_secs(30);

/// Local references for which the JVM makes room at first.
const REFERENCES: usize = 64;

/// Loaded when Spark plans its first query that can be fused.
const FUSED: &str = "org/apache/spark/sql/execution/WholeStageCodegenExec";

/// `String attach(String options)`: why the JVM is not profiled, or null.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_unfuse_spark_bootstrap_NativeParts_attach<'caller>(
    mut env: EnvUnowned<'caller>,
    _: JClass<'caller>,
    options: JString<'caller>,
) -> JString<'caller> {
    let attached = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        with_caller(&mut env, |env| {
            let options = options.try_to_string(env)?;
            let vm = env.get_java_vm()?;
            Ok(attach_in(vm, &options))
        })
    }));
    let reason = match attached {
        Ok(Some(Ok(()))) => return JString::null(),
        Ok(Some(Err(reason))) => reason,
        Ok(None) | Err(_) => "the agent failed".to_owned(),
    };
    with_caller(&mut env, |env| {
        clear_exception(env);
        env.new_string(reason)
    })
    .unwrap_or_default()
}

fn attach_in(vm: jni::JavaVM, options: &str) -> Result<(), String> {
    if is_installed() {
        return Ok(());
    }
    let options = Options::parse_for_plugin(options);
    for complaint in &options.complaints {
        log::say(complaint);
    }
    stay_loaded()?;
    let outcome = attach::start(vm, options)?;
    match outcome.recv_timeout(PATIENCE) {
        Ok(outcome) => outcome,
        Err(_) => Err(format!(
            "the agent did not start within {} s",
            PATIENCE.as_secs()
        )),
    }
}

/// A class loader that is collected would unload its libraries.
fn stay_loaded() -> Result<(), String> {
    let path = own_path().and_then(|path| CString::new(path).ok());
    let path = path.ok_or("the path of the agent's library is not known")?;
    // SAFETY: a NUL-terminated path of a library that is loaded already: no code of it runs.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_NODELETE) };
    match handle.is_null() {
        true => Err("the agent's library cannot be kept in memory".to_owned()),
        false => Ok(()),
    }
}

/// Adds the jar to the class path, and patches loaded classes and those that are loaded later. Returns whether Spark has
/// run queries, so that the JVM has compiled generated code.
pub(crate) fn join_spark(agent: &Agent, env: &mut Env<'_>) -> Result<bool, String> {
    agent.events.start(agent.session.events());
    enable(agent, JVMTI_EVENT_VM_DEATH).ok_or(EVENTS_REFUSED)?;
    if agent.options.without_spark {
        return Ok(false);
    }
    let patches =
        classes::load_patches(agent, env).ok_or("the classes for Spark could not be loaded")?;
    let registered = natives::register(env);
    clear_exception(env);
    registered.map_err(|e| format!("the JVM does not take the agent's native methods: {e}"))?;
    enable(agent, JVMTI_EVENT_CLASS_FILE_LOAD_HOOK).ok_or(EVENTS_REFUSED)?;
    let transformed = env.with_local_frame(REFERENCES, |env| {
        let loaded = loaded_classes(agent, env, |name| patches.wants(name));
        transform(agent, &loaded);
        let has_run = loaded.iter().any(|(name, _)| name == FUSED);
        Ok::<_, jni::errors::Error>(has_run)
    });
    clear_exception(env);
    transformed.map_err(|e| format!("loaded classes could not be transformed: {e}"))
}

/// Loaded classes that are wanted: their names, and references in the current frame.
fn loaded_classes(
    agent: &Agent,
    env: &Env<'_>,
    is_wanted: impl Fn(&str) -> bool,
) -> Vec<(String, jclass)> {
    let mut wanted = Vec::new();
    for class in agent.jvmti.get_loaded_classes().unwrap_or_default() {
        // SAFETY: the JVM just returned this reference.
        let signature = unsafe { agent.jvmti.get_class_signature(class) };
        let name = signature.ok().and_then(|(signature, _)| {
            let name = signature.strip_prefix('L')?.strip_suffix(';')?;
            is_wanted(name).then(|| name.to_owned())
        });
        match name {
            Some(name) => wanted.push((name, class)),
            // SAFETY: a local reference of this call, which nobody else has.
            None => env.delete_local_ref(unsafe { JObject::from_raw(env, class.cast()) }),
        }
    }
    wanted
}

/// Retransforms the classes: each passes [`classes::class_file_load_hook`] again.
fn transform(agent: &Agent, loaded: &[(String, jclass)]) {
    // SAFETY: live references to classes.
    let retransform = |classes: &[jclass]| unsafe { agent.jvmti.retransform_classes(classes) };
    let all: Vec<jclass> = loaded.iter().map(|(_, class)| *class).collect();
    if all.is_empty() || retransform(&all).is_ok() {
        return;
    }
    // One class that cannot be retransformed makes the whole call fail.
    for (name, class) in loaded {
        if let Err(code) = retransform(&[*class]) {
            log::say(format_args!(
                "the JVM does not transform {name} (code {code:?}), so the profile will have less detail"
            ));
        }
    }
}
