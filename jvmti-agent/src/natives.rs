//! The native methods of `io.unfuse.spark.common.Native`. HotSpot finds them in agent libraries by name.

use std::ffi::c_void;
use std::time::{Duration, Instant};

use jni::objects::{JByteArray, JClass, JString, Reference};
use jni::strings::JNIStr;
use jni::sys::{jboolean, jint, jlong};
use jni::{Env, EnvUnowned, NativeMethod, jni_str};
use unfuse_codemap::{Mark, MarkKind};
use unfuse_profiler::clock::monotonic_ns;
use unfuse_profiler::{Metric, RecordingState};

use crate::agent::with_agent;
use crate::jni_env::with_caller;
use crate::spark_jar::{NATIVE, load_class};
use crate::{log, threads};

/// Binds the native methods of the class in the system class loader. HotSpot finds those of an agent by itself, but not
/// those of a library that another class loader has loaded. After an error an exception may be pending.
pub(crate) fn register(env: &mut Env<'_>) -> jni::errors::Result<()> {
    let class = load_class(env, NATIVE)?;
    let methods: [(&JNIStr, &JNIStr, *mut c_void); 8] = [
        (
            jni_str!("taskStart"),
            jni_str!("(IIJJ)V"),
            Java_io_unfuse_spark_common_Native_taskStart as *mut c_void,
        ),
        (
            jni_str!("taskEnd"),
            jni_str!("()V"),
            Java_io_unfuse_spark_common_Native_taskEnd as *mut c_void,
        ),
        (
            jni_str!("recording"),
            jni_str!("()I"),
            Java_io_unfuse_spark_common_Native_recording as *mut c_void,
        ),
        (
            jni_str!("metric"),
            jni_str!("(I)J"),
            Java_io_unfuse_spark_common_Native_metric as *mut c_void,
        ),
        (
            jni_str!("event"),
            jni_str!("([B)Z"),
            Java_io_unfuse_spark_common_Native_event as *mut c_void,
        ),
        (
            jni_str!("flush"),
            jni_str!("(I)V"),
            Java_io_unfuse_spark_common_Native_flush as *mut c_void,
        ),
        (
            jni_str!("deliver"),
            jni_str!("(IZ)Z"),
            Java_io_unfuse_spark_common_Native_deliver as *mut c_void,
        ),
        (
            jni_str!("log"),
            jni_str!("(Ljava/lang/String;)V"),
            Java_io_unfuse_spark_common_Native_log as *mut c_void,
        ),
    ];
    // SAFETY: each function has the parameters of its signature; all methods are static, so the second is the class.
    unsafe {
        let methods = methods.map(|(name, signature, function)| {
            NativeMethod::from_raw_parts(name, signature, function)
        });
        env.register_native_methods(&class, &methods)
    }
}

fn mark(kind: MarkKind, stage: i32, stage_attempt: i32, task: i64, execution: i64) {
    with_agent(|agent| {
        if agent.session.recording() == RecordingState::Off {
            return;
        }
        let tid = nix::unistd::gettid().as_raw() as u32;
        if kind == MarkKind::Start {
            threads::task_thread(agent);
        }
        let mark = Mark {
            time: monotonic_ns(),
            tid,
            kind,
            stage,
            stage_attempt,
            task,
            execution,
        };
        agent.session.map().marks().push(&mark);
    });
}

// Marks are made for every task, so the first natives do not look at their environment.

/// `void taskStart(int stage, int stageAttempt, long taskAttemptId, long execution)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_unfuse_spark_common_Native_taskStart(
    _: EnvUnowned<'_>,
    _: JClass<'_>,
    stage: jint,
    stage_attempt: jint,
    task: jlong,
    execution: jlong,
) {
    mark(MarkKind::Start, stage, stage_attempt, task, execution);
}

/// `void taskEnd()`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_unfuse_spark_common_Native_taskEnd(
    _: EnvUnowned<'_>,
    _: JClass<'_>,
) {
    mark(MarkKind::End, 0, 0, 0, -1);
}

/// `int recording()`: 0 for everything, 1 without samples, 2 for nothing ([`RecordingState`])
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_unfuse_spark_common_Native_recording(
    _: EnvUnowned<'_>,
    _: JClass<'_>,
) -> jint {
    with_agent(|agent| agent.session.recording() as jint).unwrap_or(0)
}

/// `long metric(int place)`: see [`Metric`]; 0 without an agent or at an unknown place
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_unfuse_spark_common_Native_metric(
    _: EnvUnowned<'_>,
    _: JClass<'_>,
    place: jint,
) -> jlong {
    let metric = usize::try_from(place).ok().and_then(Metric::at);
    let value = with_agent(|agent| metric.map_or(0, |metric| agent.session.metric(metric)));
    value.unwrap_or(0).cast_signed()
}

/// `boolean event(byte[] json)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_unfuse_spark_common_Native_event<'caller>(
    mut env: EnvUnowned<'caller>,
    _: JClass<'caller>,
    json: JByteArray<'caller>,
) -> jboolean {
    let queued = with_agent(|agent| {
        if json.is_null() {
            return false;
        }
        let event = with_caller(&mut env, |env| env.convert_byte_array(&json));
        let queued = event.is_some_and(|event| agent.events.push(event));
        if !queued {
            agent.session.count_lost_events(1);
        }
        queued
    });
    queued.unwrap_or(false)
}

/// `void flush(int millis)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_unfuse_spark_common_Native_flush(
    _: EnvUnowned<'_>,
    _: JClass<'_>,
    millis: jint,
) {
    let patience = Duration::from_millis(millis.clamp(0, 10_000) as u64);
    with_agent(|agent| agent.events.flush(patience));
}

/// `boolean deliver(int millis, boolean last)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_unfuse_spark_common_Native_deliver(
    _: EnvUnowned<'_>,
    _: JClass<'_>,
    millis: jint,
    last: jboolean,
) -> jboolean {
    let until = Instant::now() + Duration::from_millis(millis.clamp(0, 10_000) as u64);
    let delivered = with_agent(|agent| {
        agent.session.collect_samples(until);
        let (number, event) = agent.session.order_flush(last);
        agent.events.push(event.into_bytes()) && agent.session.await_flush(number, until)
    });
    delivered.unwrap_or(false)
}

/// `void log(String line)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_unfuse_spark_common_Native_log<'caller>(
    mut env: EnvUnowned<'caller>,
    _: JClass<'caller>,
    line: JString<'caller>,
) {
    with_agent(|_| {
        if line.is_null() {
            return;
        }
        let line = with_caller(&mut env, |env| line.try_to_string(env));
        log::say(line.unwrap_or_default());
    });
}
