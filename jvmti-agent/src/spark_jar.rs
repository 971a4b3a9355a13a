//! The jar this library carries, put into the JVM when the first class of Spark is loaded.

use std::collections::HashSet;
use std::path::PathBuf;

use jvmti_bindings::env::JniEnv;
use jvmti_bindings::sys::jni::{jbyteArray, jclass, jmethodID, jobject, jvalue};
use unfuse_profiler::options::Records;

use crate::agent::Agent;
use crate::library::{JAR, jar_path};
use crate::log;
use crate::properties::{set_property, ui_properties};

/// What the names of classes of generated code begin with, see `BoundaryCalls`.
const GENERATED: &str = "org/apache/spark/sql/catalyst/expressions/GeneratedClass";

/// The method of which the compilers are to make no code.
pub(crate) const BOUNDARY: &str = "io.unfuse.spark.Boundary::value";

/// The flag for executors; read by `ExecutorAgent`.
const EXECUTOR_PROPERTY: &str = "unfuse.executor.agentpath";

/// Ms between heartbeats; read by `TaskMeter`.
const HEARTBEAT_PROPERTY: &str = "unfuse.heartbeat.millis";

/// Where the profile goes and from where; read by `SegmentShipper`.
const URI_PROPERTY: &str = "unfuse.uri";
const SPOOL_PROPERTY: &str = "unfuse.spool";

/// Where files of records wait, and whether contents stay out of them; read by `RecordTap`.
const RECORDS_PROPERTY: &str = "unfuse.records";
const REDACT_PROPERTY: &str = "unfuse.records.redact";

/// The door to `io.unfuse.spark.Patches`.
pub(crate) struct Patches {
    class: jclass,
    patch: jmethodID,
    targets: HashSet<String>,
    /// Whether generated classes are patched.
    generated: bool,
}

// SAFETY: `class` is a global reference and `patch` a method of it; both are valid on any thread.
unsafe impl Send for Patches {}
// SAFETY: as above.
unsafe impl Sync for Patches {}

/// Makes the folder where files of records wait. Says why if it cannot.
fn records_waiting(agent: &Agent) -> Option<PathBuf> {
    let made = agent.session.make_records_waiting(&agent.options.config);
    made.inspect_err(|error| log::say(format!("records are not followed: {error}")))
        .ok()
}

impl Patches {
    /// Adds the jar to the system class loader and finds the class. Says why if it cannot.
    pub(crate) fn load(agent: &Agent, env: &JniEnv) -> Option<Self> {
        if JAR.is_empty() {
            log::say(
                "this build carries no Spark jar (run `make build`): samples will have no operators",
            );
            return None;
        }
        let loaded = Self::try_load(agent, env);
        if env.exception_check() {
            env.exception_clear();
        }
        if loaded.is_none() {
            log::say("the Spark patches could not be loaded: samples will have no operators");
        }
        loaded
    }

    fn try_load(agent: &Agent, env: &JniEnv) -> Option<Self> {
        agent
            .jvmti
            .add_to_system_class_loader_search(&jar_path()?)
            .ok()?;
        // SAFETY: handles are made and used on this thread; each call is followed by a check, since a
        // failing one leaves an exception pending, with which no further call may be made.
        unsafe {
            if let Some(flag) = &agent.executor_flag {
                set_property(env, EXECUTOR_PROPERTY, flag)?;
            }
            if let Some(heartbeat) = agent.options.config.heartbeat {
                let millis = heartbeat.as_millis().to_string();
                set_property(env, HEARTBEAT_PROPERTY, &millis)?;
            }
            for (name, value) in ui_properties(&agent.options) {
                set_property(env, name, &value)?;
            }
            if let Some(shipped) = agent.session.shipped() {
                set_property(env, URI_PROPERTY, &shipped.uri)?;
                set_property(env, SPOOL_PROPERTY, shipped.spool.to_str()?)?;
            }
            if let Some(records) = agent.options.records
                && let Some(waiting) = records_waiting(agent)
            {
                set_property(env, RECORDS_PROPERTY, waiting.to_str()?)?;
                if records == Records::Redacted {
                    set_property(env, REDACT_PROPERTY, "on")?;
                }
            }
            let loader_class = env.find_class("java/lang/ClassLoader")?;
            let system = env.get_static_method_id(
                loader_class,
                "getSystemClassLoader",
                "()Ljava/lang/ClassLoader;",
            )?;
            let loader = checked(
                env,
                env.call_static_object_method(loader_class, system, &[]),
            )?;
            let load = env.get_method_id(
                loader_class,
                "loadClass",
                "(Ljava/lang/String;)Ljava/lang/Class;",
            )?;
            let name = jvalue {
                l: env.new_string_utf("io.unfuse.spark.Patches")?,
            };
            let class = checked(env, env.call_object_method(loader, load, &[name]))?;
            let targets = env.get_static_method_id(class, "targets", "()[Ljava/lang/String;")?;
            let patch = env.get_static_method_id(class, "patch", "(Ljava/lang/String;[B)[B")?;
            let array = checked(env, env.call_static_object_method(class, targets, &[]))?;
            let targets = (0..env.get_array_length(array))
                .filter_map(|i| env.get_string(env.get_object_array_element(array, i)))
                .collect();
            let class = env.new_global_ref(class);
            (!class.is_null()).then_some(Self {
                class,
                patch,
                targets,
                generated: agent.has_boundaries,
            })
        }
    }

    /// Whether a class is to be patched.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.targets.contains(name) || self.generated && name.starts_with(GENERATED)
    }

    /// The patched class file; `None` leaves the class as it is.
    pub(crate) fn patch(&self, env: &JniEnv, name: &str, class_file: &[u8]) -> Option<Vec<u8>> {
        // SAFETY: as in `try_load`.
        let patched = unsafe {
            let length = i32::try_from(class_file.len()).ok()?;
            let array = env.new_byte_array(length)?;
            let bytes: Vec<i8> = class_file.iter().map(|b| *b as i8).collect();
            env.set_byte_array_region(array, 0, length, &bytes);
            let arguments = [
                jvalue {
                    l: env.new_string_utf(name)?,
                },
                jvalue { l: array },
            ];
            let result = env.call_static_object_method(self.class, self.patch, &arguments);
            checked(env, result).map(|array| read(env, array))
        };
        if env.exception_check() {
            env.exception_clear();
        }
        patched
    }
}

/// The object, if it is one and no exception is pending.
fn checked(env: &JniEnv, object: jobject) -> Option<jobject> {
    (!env.exception_check() && !object.is_null()).then_some(object)
}

unsafe fn read(env: &JniEnv, array: jbyteArray) -> Vec<u8> {
    // SAFETY: the caller passes a byte array of this thread.
    unsafe {
        let length = env.get_array_length(array);
        let mut bytes = vec![0i8; length as usize];
        env.get_byte_array_region(array, 0, length, &mut bytes);
        bytes.into_iter().map(|b| b as u8).collect()
    }
}
