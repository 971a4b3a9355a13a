//! The native methods of `io.unfuse.spark.Native`. HotSpot finds them in agent libraries by name.

use std::time::{Duration, Instant};

use jvmti_bindings::env::JniEnv;
use jvmti_bindings::sys::jni::{JNIEnv, jboolean, jbyteArray, jclass, jint, jlong, jstring};
use unfuse_codemap::{Mark, MarkKind};
use unfuse_profiler::clock::monotonic_ns;

use crate::agent::with_agent;
use crate::{log, threads};

fn mark(kind: MarkKind, stage: i32, stage_attempt: i32, task: i64) {
    with_agent(|agent| {
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
        };
        agent.session.map().marks().push(&mark);
    });
}

/// `void taskStart(int stage, int stageAttempt, long taskAttemptId)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_unfuse_spark_Native_taskStart(
    _: *mut JNIEnv,
    _: jclass,
    stage: jint,
    stage_attempt: jint,
    task: jlong,
) {
    mark(MarkKind::Start, stage, stage_attempt, task);
}

/// `void taskEnd()`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_unfuse_spark_Native_taskEnd(_: *mut JNIEnv, _: jclass) {
    mark(MarkKind::End, 0, 0, 0);
}

/// `boolean event(byte[] json)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_unfuse_spark_Native_event(
    env: *mut JNIEnv,
    _: jclass,
    json: jbyteArray,
) -> jboolean {
    let mut queued = false;
    with_agent(|agent| {
        // SAFETY: the JVM passes a valid environment and, if not null, a byte array.
        let bytes = unsafe {
            if json.is_null() {
                return;
            }
            let env = JniEnv::from_raw(env);
            let length = env.get_array_length(json);
            let mut bytes = vec![0u8; length as usize];
            // A jbyte is a byte with a sign: same size, same alignment, every pattern valid.
            let signed = std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), bytes.len());
            env.get_byte_array_region(json, 0, length, signed);
            bytes
        };
        queued = agent.events.push(bytes);
        if !queued {
            agent.session.count_lost_events(1);
        }
    });
    jboolean::from(queued)
}

/// `void flush(int millis)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_unfuse_spark_Native_flush(_: *mut JNIEnv, _: jclass, millis: jint) {
    let patience = Duration::from_millis(millis.clamp(0, 10_000) as u64);
    with_agent(|agent| agent.events.flush(patience));
}

/// `boolean deliver(int millis, boolean last)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_unfuse_spark_Native_deliver(
    _: *mut JNIEnv,
    _: jclass,
    millis: jint,
    last: jboolean,
) -> jboolean {
    let until = Instant::now() + Duration::from_millis(millis.clamp(0, 10_000) as u64);
    let delivered = with_agent(|agent| {
        agent.session.collect_samples(until);
        let (number, event) = agent.session.order_flush(last != 0);
        agent.events.push(event.into_bytes()) && agent.session.await_flush(number, until)
    });
    jboolean::from(delivered.unwrap_or(false))
}

/// `void log(String line)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_unfuse_spark_Native_log(env: *mut JNIEnv, _: jclass, line: jstring) {
    with_agent(|_| {
        if line.is_null() {
            return;
        }
        // SAFETY: the JVM passes a valid environment and a string.
        let line = unsafe { JniEnv::from_raw(env).get_string_lossy(line) };
        log::say(line.unwrap_or_default());
    });
}
