//! Adds the embedded jar to the JVM when the first class of Spark is loaded.

use std::collections::HashSet;
use std::path::PathBuf;

use jni::errors::{Error, Result};
use jni::objects::{
    Global, JByteArray, JClass, JObjectArray, JStaticMethodID, JString, JValue, Reference,
};
use jni::signature::JavaType;
use jni::{Env, jni_sig, jni_str};
use unfuse_profiler::options::KeptRecords;

use crate::agent::Agent;
use crate::jni_env::clear_exception;
use crate::library::{JAR, jar_path};
use crate::log;
use crate::properties::{
    AGENT_PROPERTY, EXECUTOR_PROPERTY, FOLDERS_PROPERTY, HEARTBEAT_PROPERTY, Property,
    RECORDS_PROPERTY, REDACT_PROPERTY, SPOOL_PROPERTY, URI_PROPERTY, program_properties,
    set_properties,
};

/// Prefix of the names of classes of generated code, see `BoundaryCalls`.
const GENERATED: &str = "org/apache/spark/sql/catalyst/expressions/GeneratedClass";

/// The method whose calls the compilers make no code for.
pub(crate) const BOUNDARY: &str = "io.unfuse.spark.patch.Boundary::value";

/// The class of the agent's native methods.
pub(crate) const NATIVE: &str = "io.unfuse.spark.common.Native";

/// A handle to `io.unfuse.spark.patch.Patches`.
pub(crate) struct Patches {
    class: Global<JClass<'static>>,
    /// `byte[] patch(String name, byte[] classFile)`
    patch: JStaticMethodID,
    targets: HashSet<String>,
    /// Whether generated classes are patched.
    generated: bool,
}

/// Makes the folder for files of records. Prints the reason of a failure.
fn records_waiting(agent: &Agent) -> Option<PathBuf> {
    let made = agent.session.make_records_waiting(&agent.options.config);
    made.inspect_err(|error| log::say(format!("records are not followed: {error}")))
        .ok()
}

impl Patches {
    /// Adds the jar to the system class loader and finds the class. Prints the reason of a failure.
    pub(crate) fn load(agent: &Agent, env: &mut Env<'_>) -> Option<Self> {
        if JAR.is_empty() {
            log::say(
                "this build carries no Spark jar (run `make build`): samples will have no operators",
            );
            return None;
        }
        let loaded = add_jar(agent).and_then(|()| {
            set_properties(env, &properties(agent)?).ok()?;
            Self::find(agent, env).ok()
        });
        clear_exception(env);
        if loaded.is_none() {
            log::say("the Spark patches could not be loaded: samples will have no operators");
        }
        loaded
    }

    /// Finds the class in the system class loader. After an error an exception may be pending.
    fn find(agent: &Agent, env: &mut Env<'_>) -> Result<Self> {
        let class = load_class(env, "io.unfuse.spark.patch.Patches")?;
        let patch = env.get_static_method_id(
            &class,
            jni_str!("patch"),
            jni_sig!("(Ljava/lang/String;[B)[B"),
        )?;
        Ok(Self {
            targets: targets(env, &class)?,
            patch,
            class: env.new_global_ref(class)?,
            generated: agent.has_boundaries,
        })
    }

    /// Whether a class is to be patched.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.targets.contains(name) || self.generated && name.starts_with(GENERATED)
    }

    /// The patched class file; `None` leaves the class unchanged.
    pub(crate) fn patch(
        &self,
        env: &mut Env<'_>,
        name: &str,
        class_file: &[u8],
    ) -> Option<Vec<u8>> {
        let patched = self.try_patch(env, name, class_file);
        clear_exception(env);
        patched.ok()
    }

    fn try_patch(&self, env: &mut Env<'_>, name: &str, class_file: &[u8]) -> Result<Vec<u8>> {
        let class_file = env.byte_array_from_slice(class_file)?;
        let name = env.new_string(name)?;
        let arguments = [
            JValue::from(&name).as_jni(),
            JValue::from(&class_file).as_jni(),
        ];
        // SAFETY: the method of this class, which takes a string and an array, and returns an array.
        let patched = unsafe {
            env.call_static_method_unchecked(&self.class, self.patch, JavaType::Array, &arguments)
        };
        let patched = patched?.into_object()?;
        // SAFETY: by the method's signature an array of bytes, or null; nobody else has the reference.
        let patched = unsafe { JByteArray::from_raw(env, patched.into_raw()) };
        env.convert_byte_array(patched)
    }
}

/// Adds the jar to the class path.
fn add_jar(agent: &Agent) -> Option<()> {
    let jar = jar_path()?;
    agent.jvmti.add_to_system_class_loader_search(&jar).ok()
}

/// System properties for classes of the jar; `None` if a path in them is not UTF-8.
fn properties(agent: &Agent) -> Option<Vec<Property>> {
    let mut properties = program_properties(&agent.options);
    let way = if agent.options.plugin {
        "plugin"
    } else {
        "flag"
    };
    properties.push((AGENT_PROPERTY, way.to_owned()));
    if let Some(flag) = &agent.executor_flag {
        properties.push((EXECUTOR_PROPERTY, flag.clone()));
    }
    if let Some(heartbeat) = agent.options.config.heartbeat {
        properties.push((HEARTBEAT_PROPERTY, heartbeat.as_millis().to_string()));
    }
    if let Some(shipped) = agent.session.shipped() {
        properties.push((URI_PROPERTY, shipped.uri.clone()));
        properties.push((SPOOL_PROPERTY, shipped.spool.to_str()?.to_owned()));
        properties.push((FOLDERS_PROPERTY, shipped.folders().join(",")));
    }
    if let Some(records) = agent.options.records
        && let Some(waiting) = records_waiting(agent)
    {
        properties.push((RECORDS_PROPERTY, waiting.to_str()?.to_owned()));
        if records == KeptRecords::Redacted {
            properties.push((REDACT_PROPERTY, "on".to_owned()));
        }
    }
    Some(properties)
}

/// `ClassLoader.getSystemClassLoader().loadClass(name)`. After an error an exception may be pending.
pub(crate) fn load_class<'local>(env: &mut Env<'local>, name: &str) -> Result<JClass<'local>> {
    let class_loader = env.find_class(jni_str!("java/lang/ClassLoader"))?;
    let loader = env.call_static_method(
        class_loader,
        jni_str!("getSystemClassLoader"),
        jni_sig!("()Ljava/lang/ClassLoader;"),
        &[],
    )?;
    let loader = loader.into_object()?;
    let name = env.new_string(name)?;
    let class = env.call_method(
        loader,
        jni_str!("loadClass"),
        jni_sig!("(Ljava/lang/String;)Ljava/lang/Class;"),
        &[JValue::from(&name)],
    )?;
    let class = class.into_object()?;
    // SAFETY: by the method's signature a class, and nobody else has the reference.
    let class = unsafe { JClass::from_raw(env, class.into_raw()) };
    (!class.is_null())
        .then_some(class)
        .ok_or(Error::NullPtr("loadClass result"))
}

/// Names of the classes to patch. After an error an exception may be pending.
fn targets(env: &mut Env<'_>, class: &JClass<'_>) -> Result<HashSet<String>> {
    let names = env.call_static_method(
        class,
        jni_str!("targets"),
        jni_sig!("()[Ljava/lang/String;"),
        &[],
    )?;
    let names = names.into_object()?.into_raw();
    // SAFETY: by the method's signature an array of strings, and nobody else has the reference.
    let names = unsafe { JObjectArray::<JString<'_>>::from_raw(env, names) };
    (0..names.len(env)?)
        .map(|index| names.get_element(env, index)?.try_to_string(env))
        .collect()
}
