//! Making HotSpot compile anew what it has compiled.
//!
//! Compilers describe what lies between calls only if asked to before they compile. Code of before names its
//! methods, but not the line of an instruction. The first redefinition of any class makes HotSpot give up all
//! compiled code, because until then nobody noted which code depends on which class; hot methods, whose
//! profiles are kept, are compiled again at once. So we redefine a class of our own, empty, by itself.
//! Every Java agent that transforms loaded classes, and Flight Recorder, have this effect.

use jvmti_bindings::env::JniEnv;
use jvmti_bindings::sys::jvmti::{jvmtiCapabilities, jvmtiClassDefinition};

use crate::agent::Agent;

/// `final class io.unfuse.Recompile {}`
const CLASS: &[u8] = b"\xca\xfe\xba\xbe\0\0\0\x34\0\x05\
    \x01\0\x13io/unfuse/Recompile\x07\0\x01\
    \x01\0\x10java/lang/Object\x07\0\x03\
    \x10\x30\0\x02\0\x04\0\0\0\0\0\0\0\0";
const NAME: &str = "io/unfuse/Recompile";

/// Asks for it; false where the JVM refuses.
pub(crate) fn recompile_all(agent: &Agent, env: &JniEnv) -> bool {
    let mut capability = jvmtiCapabilities::default();
    capability.set_can_redefine_classes(true);
    if agent.jvmti.add_capabilities(&capability).is_err() {
        return false;
    }
    let redefined = redefine(agent, env).is_some();
    let _ = agent.jvmti.relinquish_capabilities(&capability);
    redefined
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
