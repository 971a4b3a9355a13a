//! Agent_OnLoad, Agent_OnAttach, and the VM's start and end.

use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use jvmti_bindings::env::Jvmti;
use jvmti_bindings::sys::jni::{JNIEnv, JavaVM, jint, jthread};
use jvmti_bindings::sys::jvmti::{
    JVMTI_EVENT_CLASS_FILE_LOAD_HOOK, JVMTI_EVENT_THREAD_END, JVMTI_EVENT_THREAD_START,
    JVMTI_EVENT_VM_DEATH, JVMTI_EVENT_VM_INIT, jvmtiEnv,
};
use unfuse_profiler::options::{Options, Regions, Tab};

use crate::agent::{Agent, install, is_installed, with_agent};
use crate::event_queue::EventQueue;
use crate::events::{
    CODE_EVENTS, EVENTS_REFUSED, add_capabilities, code_and_thread_callbacks, enable,
};
use crate::evictions::Evictions;
use crate::hotspot::{self, FramePointers};
use crate::jni_env::with_event_env;
use crate::library::own_path;
use crate::methods::Methods;
use crate::{attach, classes, history_server, log, spark_jar, threads};

/// The JVM's entry point. The JVM starts whatever happens here.
///
/// # Safety
/// The JVM calls it once, with its own arguments.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Agent_OnLoad(
    vm: *mut JavaVM,
    options: *mut c_char,
    _: *mut c_void,
) -> jint {
    let _ = std::panic::catch_unwind(|| {
        let text = if options.is_null() {
            CString::default()
        } else {
            // SAFETY: the JVM passes a NUL-terminated string.
            unsafe { CStr::from_ptr(options) }.to_owned()
        };
        if is_installed() {
            log::say("loaded twice; the first -agentpath counts");
        } else if let Err(reason) = load(vm, text) {
            log::say(format_args!("not profiling: {reason}"));
        }
    });
    0
}

fn load(vm: *mut JavaVM, option_text: CString) -> Result<(), String> {
    let options = Options::parse(&option_text.to_string_lossy());
    for complaint in &options.complaints {
        log::say(complaint);
    }
    if options.tab == Tab::Only {
        return history_server::start(vm, options);
    }
    // SAFETY: the JVM passes a valid VM.
    let jvmti = unsafe { Jvmti::from_java_vm_raw(vm) }
        .map_err(|code| format!("this JVM offers no JVMTI (code {code})"))?;
    hotspot::check_release(&jvmti)?;
    // Forks early, while this process is small and has no threads of its own.
    let session =
        unfuse_profiler::launch(&options.config, hotspot::layout(vm)).map_err(|e| e.to_string())?;
    if let Some(denied) = session.perf_denied() {
        log::say(format_args!(
            "perf_event_open is not allowed here ({denied}); sampling with CPU timers inside the JVM \
             instead (`unfuse doctor` says how to allow it)"
        ));
    }
    match hotspot::preserve_frame_pointers(vm) {
        FramePointers::On | FramePointers::UsersChoice(true) => {}
        FramePointers::UsersChoice(false) => {
            log::say("-XX:-PreserveFramePointer is set: samples show their innermost frame only")
        }
        FramePointers::Unknown => log::say(
            "cannot switch frame pointers on in this JVM; start it with -XX:+PreserveFramePointer",
        ),
    }
    let has_boundaries = options.regions == Regions::Exact
        && !options.without_spark
        && hotspot::make_no_code_of(vm, spark_jar::BOUNDARY);
    if options.regions == Regions::Exact && !options.without_spark && !has_boundaries {
        log::say("option regions=exact needs JDK 17 or newer; using regions=plain");
    }
    add_capabilities(&jvmti)?;
    let executor_flag = own_path()
        .filter(|_| options.executors)
        .map(|library| format!("-agentpath:{library}={}", option_text.to_string_lossy()));
    let is_first = install(Agent {
        options,
        session,
        jvmti,
        methods: Methods::default(),
        events: EventQueue::new(),
        tasks_only: AtomicBool::new(false),
        executor_flag,
        number: 0,
        has_boundaries,
        code_blobs: None,
        evictions: Evictions::new(hotspot::release(vm)),
    });
    if !is_first {
        return Err("this JVM has the agent twice; give -agentpath once".to_owned());
    }
    with_agent(listen)
        .flatten()
        .ok_or_else(|| EVENTS_REFUSED.to_owned())
}

/// Registers callbacks. Stubs are generated before VMInit, so code events are enabled now.
fn listen(agent: &Agent) -> Option<()> {
    let mut callbacks = code_and_thread_callbacks();
    callbacks.VMInit = Some(vm_init);
    callbacks.VMDeath = Some(vm_death);
    callbacks.ClassFileLoadHook = Some(classes::class_file_load_hook);
    agent.jvmti.set_event_callbacks(callbacks).ok()?;
    [JVMTI_EVENT_VM_INIT, JVMTI_EVENT_VM_DEATH]
        .iter()
        .chain(&CODE_EVENTS)
        .try_for_each(|event| enable(agent, *event))
}

unsafe extern "system" fn vm_init(_: *mut jvmtiEnv, jni: *mut JNIEnv, main: jthread) {
    with_agent(|agent| {
        // SAFETY: the JVM passes this thread's environment.
        let vm = unsafe { with_event_env(jni, |env| env.get_java_vm()) };
        if let Some((low, high)) = vm.and_then(|vm| hotspot::code_cache(vm.get_raw().cast())) {
            agent.session.set_code_cache(low, high);
        }
        agent.events.start(agent.session.events());
        threads::announce_existing(agent, main);
        for event in [JVMTI_EVENT_THREAD_START, JVMTI_EVENT_THREAD_END] {
            let _ = enable(agent, event);
        }
        if !agent.options.without_spark {
            let _ = enable(agent, JVMTI_EVENT_CLASS_FILE_LOAD_HOOK);
        }
    });
}

pub(crate) unsafe extern "system" fn vm_death(_: *mut jvmtiEnv, _: *mut JNIEnv) {
    with_agent(|agent| {
        let patience = Duration::from_secs(2);
        // While the names of interpreted methods are still readable.
        agent.session.collect_samples(Instant::now() + patience);
        agent.events.flush(patience);
        if let Some(failure) = agent.session.failure() {
            log::say(failure);
        }
    });
}

/// The JVM's entry point for an agent that is loaded at run time. It runs on a thread of the JVM, so it only starts
/// ours.
///
/// # Safety
/// The JVM calls it with its own arguments.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Agent_OnAttach(
    vm: *mut JavaVM,
    options: *mut c_char,
    _: *mut c_void,
) -> jint {
    let started = std::panic::catch_unwind(|| {
        let text = if options.is_null() {
            CString::default()
        } else {
            // SAFETY: the JVM passes a NUL-terminated string.
            unsafe { CStr::from_ptr(options) }.to_owned()
        };
        // SAFETY: the JVM passes itself.
        let vm = unsafe { jni::JavaVM::from_raw(vm.cast()) };
        attach::start(vm, Options::parse(&text.to_string_lossy())).map(drop)
    });
    match started {
        Ok(Ok(())) => 0,
        Ok(Err(reason)) => {
            log::say(format_args!("not profiling: {reason}"));
            -1
        }
        Err(_) => -1,
    }
}
