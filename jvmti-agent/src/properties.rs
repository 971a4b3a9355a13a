//! System properties, through which the agent passes settings to the Spark jar. `tests/lint.py` checks that the jar reads
//! each of these names, and no other.

use std::path::Path;

use jni::objects::JValue;
use jni::{Env, jni_sig, jni_str};
use unfuse_profiler::options::{Options, Tab};

use crate::jni_env::clear_exception;
use crate::library::own_path;

/// The way in which the agent was loaded, `flag` or `plugin`; read by the plugin.
pub(crate) const AGENT_PROPERTY: &str = "unfuse.agent";

/// The profile directory, and the program that reads it; `UnfuseProgram` reads them.
const DIR_PROPERTY: &str = "unfuse.dir";
const PROGRAM_PROPERTY: &str = "unfuse.program";

/// Set if Spark's pages get the tab; `ReportProgram` reads it.
const TAB_PROPERTY: &str = "unfuse.tab";

/// Time between two answers about contention, ms; `ContentionMonitor` reads it.
const CONTENTION_PROPERTY: &str = "unfuse.contention.millis";

/// The flag for executors; read by `ExecutorAgent`.
pub(crate) const EXECUTOR_PROPERTY: &str = "unfuse.executor.agentpath";

/// Time between heartbeats, ms; `TaskMeter` reads it.
pub(crate) const HEARTBEAT_PROPERTY: &str = "unfuse.heartbeat.millis";

/// Target and source of a copied profile, and its folders; `SegmentShipper` reads them.
pub(crate) const URI_PROPERTY: &str = "unfuse.uri";
pub(crate) const SPOOL_PROPERTY: &str = "unfuse.spool";
pub(crate) const FOLDERS_PROPERTY: &str = "unfuse.folders";

/// The folder for files of records, and whether contents are left out; the package `records` reads it.
pub(crate) const RECORDS_PROPERTY: &str = "unfuse.records";
pub(crate) const REDACT_PROPERTY: &str = "unfuse.records.redact";

/// Name and value.
pub(crate) type Property = (&'static str, String);

/// System properties for those who run `unfuse` on the profile: its directory, and the program, which is expected next to this
/// library.
pub(crate) fn program_properties(options: &Options) -> Vec<Property> {
    let properties = || {
        let dir = match &options.config.uri {
            Some(uri) => uri.into(),
            None => std::path::absolute(&options.config.dir).ok()?,
        };
        let program = Path::new(&own_path()?).with_file_name("unfuse");
        Some(vec![
            (DIR_PROPERTY, dir.to_str()?.to_owned()),
            (PROGRAM_PROPERTY, program.to_str()?.to_owned()),
        ])
    };
    let Some(mut properties) = properties() else {
        return Vec::new();
    };
    if options.tab != Tab::Off {
        properties.push((TAB_PROPERTY, "on".to_owned()));
    }
    if let Some(every) = options.contention {
        properties.push((CONTENTION_PROPERTY, every.as_millis().to_string()));
    }
    properties
}

/// Sets system properties. After an error an exception may be pending.
pub(crate) fn set_properties(
    env: &mut Env<'_>,
    properties: &[Property],
) -> jni::errors::Result<()> {
    let system = env.find_class(jni_str!("java/lang/System"))?;
    for (name, value) in properties {
        let name = env.new_string(name)?;
        let value = env.new_string(value)?;
        env.call_static_method(
            &system,
            jni_str!("setProperty"),
            jni_sig!("(Ljava/lang/String;Ljava/lang/String;)Ljava/lang/String;"),
            &[JValue::from(&name), JValue::from(&value)],
        )?;
    }
    Ok(())
}

/// Whether a system property is set.
pub(crate) fn has_property(env: &mut Env<'_>, name: &str) -> bool {
    let read = |env: &mut Env<'_>| -> jni::errors::Result<bool> {
        let system = env.find_class(jni_str!("java/lang/System"))?;
        let name = env.new_string(name)?;
        let value = env.call_static_method(
            &system,
            jni_str!("getProperty"),
            jni_sig!("(Ljava/lang/String;)Ljava/lang/String;"),
            &[JValue::from(&name)],
        )?;
        Ok(!value.into_object()?.is_null())
    };
    let is_set = read(env);
    clear_exception(env);
    is_set.unwrap_or(false)
}
