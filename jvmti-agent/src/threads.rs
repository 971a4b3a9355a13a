//! Chooses the threads to profile, and announces them to the manager.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::sync::atomic::Ordering;

use jni::Env;
use jni::objects::JObject;
use jvmti_bindings::sys::jni::{JNIEnv, jthread};
use jvmti_bindings::sys::jvmti::jvmtiEnv;
use unfuse_profiler::Threads;
use unfuse_profiler::timer::ThreadTimer;

use crate::agent::{Agent, with_agent};
use crate::hotspot::NativeThreads;

/// What was announced about this thread.
#[derive(Default)]
struct Announcement {
    /// The recording of the announcement; earlier ones do not count.
    number: u32,
    known: bool,
    task: bool,
    timer: Option<ThreadTimer>,
}

thread_local! {
    static ANNOUNCEMENT: RefCell<Announcement> = RefCell::default();
}

pub(crate) unsafe extern "system" fn thread_start(
    _: *mut jvmtiEnv,
    _: *mut JNIEnv,
    thread: jthread,
) {
    with_agent(|agent| {
        if profiles_all(agent) {
            announce(agent, &name_of(agent, thread), false);
        }
    });
}

pub(crate) unsafe extern "system" fn thread_end(_: *mut jvmtiEnv, _: *mut JNIEnv, _: jthread) {
    with_agent(|agent| {
        let _ = ANNOUNCEMENT.try_with(|announced| {
            if let Ok(mut announced) = announced.try_borrow_mut()
                && announced.known
                && announced.number == agent.number
            {
                *announced = Announcement::default();
                agent.session.this_thread_ended();
            }
        });
    });
}

/// The calling thread begins a Spark task.
pub(crate) fn task_thread(agent: &Agent) {
    let told = ANNOUNCEMENT
        .try_with(|a| a.try_borrow().is_ok_and(|a| a.task))
        .unwrap_or(true);
    if !told {
        announce(agent, "Executor task launch worker", true);
    }
}

/// This JVM runs Spark: only threads that run tasks are profiled from now on, unless all were requested.
pub(crate) fn spark_found(agent: &Agent) {
    if agent.options.config.threads == Threads::Auto
        && !agent.tasks_only.swap(true, Ordering::Relaxed)
    {
        agent.session.tasks_only();
    }
}

/// Announces threads that exist when the VM is ready, including the main thread.
pub(crate) fn announce_existing(agent: &Agent, main: jthread) {
    if !profiles_all(agent) {
        return;
    }
    announce(agent, &name_of(agent, main), false);
    // The kernel has the first 15 bytes of thread names.
    let short = |name: &str| name.bytes().take(15).collect::<Vec<u8>>();
    let threads = agent.jvmti.get_all_threads().unwrap_or_default();
    let java: HashMap<_, _> = threads
        .into_iter()
        .map(|thread| name_of(agent, thread))
        .map(|name: String| (short(&name), name))
        .collect();
    let own = nix::unistd::gettid().as_raw() as u32;
    for task in fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten()
    {
        let Some(tid) = task.file_name().to_str().and_then(|tid| tid.parse().ok()) else {
            continue;
        };
        let comm = fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        if tid != own
            && let Some(name) = java
                .get(comm.trim_end().as_bytes())
                .filter(|name| *name != "main")
        {
            agent.session.profile_thread(tid, name);
        }
    }
}

/// Announces the threads of a JVM that already runs, by the ids in HotSpot's structures.
pub(crate) fn announce_running(agent: &Agent, env: &mut Env<'_>, native: &NativeThreads) {
    if !profiles_all(agent) {
        return;
    }
    let own = nix::unistd::gettid().as_raw() as u32;
    for thread in agent.jvmti.get_all_threads().unwrap_or_default() {
        // SAFETY: a local reference that was made for this call, which nobody else has.
        let object = unsafe { JObject::from_raw(env, thread.cast()) };
        let tid = native.tid(env, &object).filter(|tid| *tid != own);
        if let Some(tid) = tid {
            agent.session.profile_thread(tid, &name_of(agent, thread));
        }
    }
}

fn profiles_all(agent: &Agent) -> bool {
    match agent.options.config.threads {
        Threads::All => true,
        Threads::Task => false,
        Threads::Auto => !agent.tasks_only.load(Ordering::Relaxed),
    }
}

fn announce(agent: &Agent, name: &str, task: bool) {
    let _ = ANNOUNCEMENT.try_with(|announced| {
        if let Ok(mut announced) = announced.try_borrow_mut() {
            // The VM announces the main thread twice (VMInit, ThreadStart).
            if announced.number == agent.number && announced.known && (announced.task || !task) {
                return;
            }
            // The old timer is dropped first: a thread has only one.
            announced.timer = None;
            let timer = agent
                .session
                .profile_this_thread(name, task, agent.options.period_ns());
            *announced = Announcement {
                number: agent.number,
                known: true,
                task,
                timer,
            };
        }
    });
}

fn name_of(agent: &Agent, thread: jthread) -> String {
    // SAFETY: a live thread reference of the current callback, whose local references die with it.
    unsafe { agent.jvmti.get_thread_info(thread) }
        .ok()
        .and_then(|info| info.name)
        .unwrap_or_default()
}
