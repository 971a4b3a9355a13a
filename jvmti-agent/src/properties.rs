//! System properties, by which the agent hands settings to the Spark jar.

use std::path::Path;

use jvmti_bindings::env::JniEnv;
use jvmti_bindings::sys::jni::jvalue;
use unfuse_profiler::options::{Options, Tab};

use crate::library::own_path;

/// System properties that `ReportProgram` reads: the profile directory, and the program that reads it,
/// which is expected beside this library.
pub(crate) fn ui_properties(options: &Options) -> Vec<(&'static str, String)> {
    let of = || {
        let dir = match &options.config.uri {
            Some(uri) => uri.into(),
            None => std::path::absolute(&options.config.dir).ok()?,
        };
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

/// `System.setProperty(name, value)`. After a failure an exception may be pending.
///
/// # Safety
/// The environment is this thread's, and no exception is pending.
pub(crate) unsafe fn set_property(env: &JniEnv, name: &str, value: &str) -> Option<()> {
    // SAFETY: the caller's word; each reference is used right after it is made.
    unsafe {
        let system = env.find_class("java/lang/System")?;
        let set = env.get_static_method_id(
            system,
            "setProperty",
            "(Ljava/lang/String;Ljava/lang/String;)Ljava/lang/String;",
        )?;
        let arguments =
            [name, value].map(|text| env.new_string_utf(text).map(|text| jvalue { l: text }));
        let [Some(name), Some(value)] = arguments else {
            return None;
        };
        env.call_static_object_method(system, set, &[name, value]);
        (!env.exception_check()).then_some(())
    }
}
