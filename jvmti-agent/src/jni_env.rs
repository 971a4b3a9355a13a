//! The JNI environment of the calling thread, from the pointers that the JVM passes.

use std::ffi::CStr;
use std::ptr;

use jni::sys::JavaVMAttachArgs;
use jni::{Env, EnvUnowned, JNIVersion, JavaVM, Outcome};
use jvmti_bindings::sys::jni::JNIEnv;

/// Runs `body` with the environment of a native method's caller. `None` after an error; an exception may be
/// pending then. A panic passes through.
pub(crate) fn with_caller<'caller, T>(
    env: &mut EnvUnowned<'caller>,
    body: impl FnOnce(&mut Env<'caller>) -> jni::errors::Result<T>,
) -> Option<T> {
    match env.with_env_no_catch(body).into_outcome() {
        Outcome::Ok(value) => Some(value),
        Outcome::Err(_) | Outcome::Panic(_) => None,
    }
}

/// Runs `body` with the environment of a JVMTI event. The JVM frees local references when the event ends.
///
/// # Safety
/// `env` is the pointer that the JVM passed to the event that the calling thread handles.
pub(crate) unsafe fn with_event_env<T>(
    env: *mut JNIEnv,
    body: impl FnOnce(&mut Env<'_>) -> jni::errors::Result<T>,
) -> Option<T> {
    // SAFETY: guaranteed by the caller. The lifetime ends with this function, and so before the event.
    let mut env = unsafe { EnvUnowned::from_raw(env.cast()) };
    with_caller(&mut env, body)
}

/// Clears the pending exception, if there is one.
pub(crate) fn clear_exception(env: &Env<'_>) {
    if env.exception_check() {
        env.exception_clear();
    }
}

/// Runs `body` while the calling thread is a daemon thread of the JVM, which does not keep the JVM alive. Local
/// references are not freed before `body` ends. `None` if the JVM accepts no more threads.
pub(crate) fn with_daemon_thread<T>(
    vm: &JavaVM,
    name: &CStr,
    body: impl FnOnce(&mut Env<'_>) -> T,
) -> Option<T> {
    let attachment = Attachment::new(vm, name)?;
    // SAFETY: the environment of this thread, which stays attached until `attachment` is dropped.
    let mut env = unsafe { EnvUnowned::from_raw(attachment.env) };
    with_caller(&mut env, |env| {
        let value = body(env);
        // The JVM would report it as uncaught.
        clear_exception(env);
        Ok(value)
    })
}

/// Attaches the calling thread to the JVM until it is dropped. The crate `jni` attaches threads that are not daemons,
/// so this calls the invocation interface itself.
struct Attachment<'a> {
    vm: &'a JavaVM,
    env: *mut jni::sys::JNIEnv,
}

impl<'a> Attachment<'a> {
    fn new(vm: &'a JavaVM, name: &CStr) -> Option<Self> {
        let mut env = ptr::null_mut();
        let mut arguments = JavaVMAttachArgs {
            version: JNIVersion::V1_8.into(),
            name: name.as_ptr().cast_mut(),
            group: ptr::null_mut(),
        };
        let raw = vm.get_raw();
        // SAFETY: the VM lives as long as the process; both pointers are valid for the call.
        let code = unsafe {
            ((**raw).v1_4.AttachCurrentThreadAsDaemon)(
                raw,
                &raw mut env,
                (&raw mut arguments).cast(),
            )
        };
        (code == jni::sys::JNI_OK && !env.is_null()).then_some(Self {
            vm,
            env: env.cast(),
        })
    }
}

impl Drop for Attachment<'_> {
    fn drop(&mut self) {
        let raw = self.vm.get_raw();
        // SAFETY: `new` attached this thread, which has no Java frames; no environment of it is used any more.
        unsafe { ((**raw).v1_1.DetachCurrentThread)(raw) };
    }
}
