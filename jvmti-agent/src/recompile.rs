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

use jvmti_bindings::env::JniEnv;
use jvmti_bindings::sys::jni::{jclass, jmethodID};
use jvmti_bindings::sys::jvmti::{jvmtiCapabilities, jvmtiClassDefinition};

use crate::agent::Agent;

/// Classes transformed, at most: it is done while the JVM stands still.
const MOST_CLASSES: usize = 500;

/// `final class io.unfuse.Recompile {}`
const CLASS: &[u8] = b"\xca\xfe\xba\xbe\0\0\0\x34\0\x05\
    \x01\0\x13io/unfuse/Recompile\x07\0\x01\
    \x01\0\x10java/lang/Object\x07\0\x03\
    \x10\x30\0\x02\0\x04\0\0\0\0\0\0\0\0";
const NAME: &str = "io/unfuse/Recompile";

/// Asks for it; false where the JVM refuses. `methods` are those that have compiled code.
pub(crate) fn recompile(agent: &Agent, env: &JniEnv, methods: &[jmethodID], release: i32) -> bool {
    let mut capability = jvmtiCapabilities::default();
    if release < 18 {
        capability.set_can_redefine_classes(true);
    } else {
        capability.set_can_retransform_classes(true);
    }
    if agent.jvmti.add_capabilities(&capability).is_err() {
        return false;
    }
    let done = if release < 18 {
        redefine(agent, env).is_some()
    } else {
        retransform(agent, env, methods)
    };
    let _ = agent.jvmti.relinquish_capabilities(&capability);
    done
}

fn retransform(agent: &Agent, env: &JniEnv, methods: &[jmethodID]) -> bool {
    let mut seen = HashSet::new();
    let mut classes = Vec::new();
    for method in methods {
        if classes.len() >= MOST_CLASSES {
            break;
        }
        // SAFETY: HotSpot tells of an id whose class is gone that it is none; references are freed below.
        unsafe {
            let Ok(class) = agent.jvmti.get_method_declaring_class(*method) else {
                continue;
            };
            let is_new = agent
                .jvmti
                .get_class_signature(class)
                .is_ok_and(|(name, _)| seen.insert(name));
            if is_new && is_of_application(agent, env, class) {
                classes.push(class);
            } else {
                env.delete_local_ref(class);
            }
        }
    }
    // SAFETY: live references to classes of this JVM.
    unsafe {
        let mut done = agent.jvmti.retransform_classes(&classes).is_ok();
        if !done {
            // One that cannot be keeps all from it.
            for class in &classes {
                done |= agent.jvmti.retransform_classes(&[*class]).is_ok();
            }
        }
        for class in classes {
            env.delete_local_ref(class);
        }
        done
    }
}

/// Whether a class has a loader (those of the JDK's core have none) and may be transformed.
unsafe fn is_of_application(agent: &Agent, env: &JniEnv, class: jclass) -> bool {
    // SAFETY: the caller passes a live reference.
    unsafe {
        let Ok(loader) = agent.jvmti.get_class_loader(class) else {
            return false;
        };
        if loader.is_null() {
            return false;
        }
        env.delete_local_ref(loader);
        agent.jvmti.is_modifiable_class(class).unwrap_or(false)
    }
}

fn redefine(agent: &Agent, env: &JniEnv) -> Option<()> {
    // SAFETY: a whole class file, for the boot loader; the reference made is used and freed here.
    unsafe {
        let class = env.define_class(NAME, std::ptr::null_mut(), CLASS);
        if env.exception_check() {
            env.exception_clear();
        }
        let class = class.filter(|class| !class.is_null())?;
        let definition = jvmtiClassDefinition {
            klass: class,
            class_byte_count: CLASS.len() as i32,
            class_bytes: CLASS.as_ptr(),
        };
        let redefined = agent.jvmti.redefine_classes(&[definition]);
        env.delete_local_ref(class);
        redefined.ok()
    }
}
