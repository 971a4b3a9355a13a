//! Makes HotSpot recompile code.
//!
//! Compilers describe instructions between calls only if enabled before they compile. Code compiled earlier has the
//! names of its methods, but no lines of instructions. Redefining a class makes HotSpot discard the code that depends
//! on it, and compile it again where it is hot.
//!
//! * In JDK 17, dependencies of code on classes are only recorded after the first redefinition, so that redefinition
//!   discards all compiled code. The agent redefines an empty class of its own; all methods keep their profiles and are
//!   compiled again soon.
//! * Newer JDKs always record dependencies. The agent makes them transform the application's classes with compiled code
//!   to themselves. Classes of the JDK keep their code, unless it is inlined.
//!
//! Java agents that transform loaded classes, and Flight Recorder, have the same effect.

use std::collections::HashSet;

use jni::objects::{JClassLoader, JObject};
use jni::strings::JNIStr;
use jni::{Env, jni_str};
use jvmti_bindings::sys::jni::{jclass, jmethodID};
use jvmti_bindings::sys::jvmti::{jvmtiCapabilities, jvmtiClassDefinition};

use crate::agent::Agent;
use crate::jni_env::clear_exception;

/// Maximum number of transformed classes: the JVM stands still meanwhile.
const MOST_CLASSES: usize = 500;

/// `final class io.unfuse.Recompile {}`
const CLASS: &[u8] = b"\xca\xfe\xba\xbe\0\0\0\x34\0\x05\
    \x01\0\x13io/unfuse/Recompile\x07\0\x01\
    \x01\0\x10java/lang/Object\x07\0\x03\
    \x10\x30\0\x02\0\x04\0\0\0\0\0\0\0\0";
const NAME: &JNIStr = jni_str!("io/unfuse/Recompile");

/// Initial number of local references.
const REFERENCES: usize = 16;

/// Requests the recompilation; false if the JVM refuses. `methods` are those with compiled code.
pub(crate) fn recompile(agent: &Agent, env: &Env<'_>, methods: &[jmethodID], release: i32) -> bool {
    let mut capability = jvmtiCapabilities::default();
    if release < 18 {
        capability.set_can_redefine_classes(true);
    } else {
        capability.set_can_retransform_classes(true);
    }
    if agent.jvmti.add_capabilities(&capability).is_err() {
        return false;
    }
    let done = env.with_local_frame(REFERENCES, |env| {
        if release < 18 {
            redefine(agent, env)
        } else {
            Ok(retransform(agent, env, methods))
        }
    });
    clear_exception(env);
    // A plugin's agent transforms classes until the JVM ends.
    if !agent.options.plugin {
        let _ = agent.jvmti.relinquish_capabilities(&capability);
    }
    done.unwrap_or(false)
}

fn retransform(agent: &Agent, env: &Env<'_>, methods: &[jmethodID]) -> bool {
    let mut seen = HashSet::new();
    let mut classes = Vec::new();
    for method in methods {
        if classes.len() >= MOST_CLASSES {
            break;
        }
        // SAFETY: for an id of an unloaded class HotSpot returns an error.
        let Ok(class) = (unsafe { agent.jvmti.get_method_declaring_class(*method) }) else {
            continue;
        };
        // SAFETY: the reference was made above, and nobody else has it.
        let class = unsafe { JObject::from_raw(env, class.cast()) };
        // SAFETY: a live reference to a class.
        let signature = unsafe { agent.jvmti.get_class_signature(class.as_raw().cast()) };
        let is_new = signature.is_ok_and(|(name, _)| seen.insert(name));
        if is_new && is_of_application(agent, env, &class) {
            classes.push(class);
        } else {
            env.delete_local_ref(class);
        }
    }
    let classes: Vec<jclass> = classes.iter().map(|class| class.as_raw().cast()).collect();
    // SAFETY: live references to classes of this JVM.
    let retransform = |classes: &[jclass]| unsafe { agent.jvmti.retransform_classes(classes) };
    let mut done = retransform(&classes).is_ok();
    if !done {
        // A class that cannot be transformed prevents the transformation of all.
        for class in classes {
            done |= retransform(&[class]).is_ok();
        }
    }
    done
}

/// Whether a class has a loader (those of the JDK's core have none) and is modifiable.
fn is_of_application(agent: &Agent, env: &Env<'_>, class: &JObject<'_>) -> bool {
    let class = class.as_raw().cast();
    // SAFETY: a live reference to a class.
    let Ok(loader) = (unsafe { agent.jvmti.get_class_loader(class) }) else {
        return false;
    };
    if loader.is_null() {
        return false;
    }
    // SAFETY: the reference was made above, and nobody else has it.
    env.delete_local_ref(unsafe { JObject::from_raw(env, loader.cast()) });
    // SAFETY: a live reference to a class.
    unsafe { agent.jvmti.is_modifiable_class(class) }.unwrap_or(false)
}

fn redefine(agent: &Agent, env: &mut Env<'_>) -> jni::errors::Result<bool> {
    let class = env.define_class(Some(NAME), JClassLoader::null(), CLASS)?;
    let definition = jvmtiClassDefinition {
        klass: class.as_raw().cast(),
        class_byte_count: CLASS.len() as i32,
        class_bytes: CLASS.as_ptr(),
    };
    // SAFETY: a live reference to a class, and a whole class file.
    Ok(unsafe { agent.jvmti.redefine_classes(&[definition]) }.is_ok())
}
