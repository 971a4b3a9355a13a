//! Making HotSpot compile anew what it has compiled.
//!
//! Compilers describe what lies between calls only if asked to before they compile. Code of before names its
//! methods, but not the line of an instruction. Redefining a class makes HotSpot give up the code that
//! depends on it, and compile it again where it is hot.
//!
//! * In JDK 17, until the first redefinition nobody notes which code depends on which class, so it gives up all
//!   compiled code. We redefine a class of our own, empty, by itself; all methods keep their profiles and are
//!   compiled again at once.
//! * Newer ones always know. We make them transform the application's classes that have compiled code into
//!   what they are. Those of the JDK stay as they are, unless inlined.
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

/// Classes transformed, at most: it is done while the JVM stands still.
const MOST_CLASSES: usize = 500;

/// `final class io.unfuse.Recompile {}`
const CLASS: &[u8] = b"\xca\xfe\xba\xbe\0\0\0\x34\0\x05\
    \x01\0\x13io/unfuse/Recompile\x07\0\x01\
    \x01\0\x10java/lang/Object\x07\0\x03\
    \x10\x30\0\x02\0\x04\0\0\0\0\0\0\0\0";
const NAME: &JNIStr = jni_str!("io/unfuse/Recompile");

/// Local references for which the JVM makes room at first.
const REFERENCES: usize = 16;

/// Asks for it; false where the JVM refuses. `methods` are those that have compiled code.
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
    let _ = agent.jvmti.relinquish_capabilities(&capability);
    done.unwrap_or(false)
}

fn retransform(agent: &Agent, env: &Env<'_>, methods: &[jmethodID]) -> bool {
    let mut seen = HashSet::new();
    let mut classes = Vec::new();
    for method in methods {
        if classes.len() >= MOST_CLASSES {
            break;
        }
        // SAFETY: HotSpot tells of an id whose class is gone that it is none.
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
        // One that cannot be keeps all from it.
        for class in classes {
            done |= retransform(&[class]).is_ok();
        }
    }
    done
}

/// Whether a class has a loader (those of the JDK's core have none) and may be transformed.
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
