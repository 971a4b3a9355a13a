//! Attaches to a running JVM, and detaches from it without a trace.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use jni::{Env, JavaVM};
use jvmti_bindings::env::Jvmti;
use jvmti_bindings::sys::jvmti::{JVMTI_EVENT_THREAD_END, JVMTI_EVENT_THREAD_START};
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use unfuse_profiler::attach::Control;
use unfuse_profiler::options::Options;
use unfuse_profiler::{Session, Shipment, Threads};

use crate::agent::{Agent, install, is_installed, remove, with_agent};
use crate::event_queue::EventQueue;
use crate::events::{
    CODE_EVENTS, EVENTS_REFUSED, add_capabilities, add_transforming, code_and_thread_callbacks,
    enable, set_event,
};
use crate::evictions::Evictions;
use crate::hotspot::{self, NativeThreads};
use crate::jni_env::{clear_exception, with_daemon_thread};
use crate::methods::Methods;
use crate::properties::{AGENT_PROPERTY, has_property};
use crate::recompile::recompile;
use crate::{classes, code_events, onload, plugin, threads};

/// How long active callbacks may take.
const UNDER_WAY: Duration = Duration::from_secs(5);

const THREAD_EVENTS: [u32; 2] = [JVMTI_EVENT_THREAD_START, JVMTI_EVENT_THREAD_END];

/// Initial number of local references for the list of threads.
const REFERENCES: usize = 16;

/// Allows one recording at a time, also between the check and the installation.
static BUSY: AtomicBool = AtomicBool::new(false);
static RECORDINGS: AtomicU32 = AtomicU32::new(0);

/// The reason why a second recording is refused.
const PROFILED: &str = "this JVM is being profiled already";

/// The result of loading the agent: the reason if it failed.
pub(crate) type Outcome = Result<(), String>;

/// Starts a thread that serves the recorder; the receiver gets the outcome once samples are taken.
pub(crate) fn start(vm: JavaVM, options: Options) -> Result<Receiver<Outcome>, String> {
    let Some(name) = &options.attach else {
        return Err(
            "this agent is loaded into a running JVM by `unfuse record --pid` only".to_owned(),
        );
    };
    let control =
        Control::connect(name).map_err(|e| format!("cannot reach `unfuse record`: {e}"))?;
    let (outcome, receiver) = sync_channel(1);
    if is_installed() || BUSY.swap(true, Ordering::SeqCst) {
        control.failed(PROFILED);
        let _ = outcome.send(Err(PROFILED.to_owned()));
        return Ok(receiver);
    }
    // Signals are for the JVM's threads, except those that running Java needs.
    let mut blocked = SigSet::all();
    for signal in [
        Signal::SIGSEGV,
        Signal::SIGBUS,
        Signal::SIGFPE,
        Signal::SIGILL,
        Signal::SIGTRAP,
    ] {
        blocked.remove(signal);
    }
    let before = blocked.thread_swap_mask(SigmaskHow::SIG_SETMASK);
    let spawned = std::thread::Builder::new()
        .name("unfuse".to_owned())
        .spawn(move || {
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                serve(&vm, &control, options, &outcome);
            }));
            BUSY.store(false, Ordering::SeqCst);
            // Only now, because the next recording may follow at once.
            control.left();
        });
    if let Ok(mask) = before {
        let _ = mask.thread_set_mask();
    }
    spawned.map(|_| receiver).map_err(|e| {
        BUSY.store(false, Ordering::SeqCst);
        format!("cannot start a thread: {e}")
    })
}

fn serve(vm: &JavaVM, control: &Control, options: Options, outcome: &SyncSender<Outcome>) {
    let fail = |reason: &str| {
        control.failed(reason);
        let _ = outcome.send(Err(reason.to_owned()));
    };
    let session = match control.session() {
        Ok(session) => session,
        Err(e) => return fail(&format!("the recorder's memory did not arrive: {e}")),
    };
    let stays = options.plugin;
    let served = with_daemon_thread(vm, c"unfuse", |env| {
        match attach(vm, env, session, options) {
            Ok(recompiles) => {
                if control.ready(hotspot::layout(vm.get_raw().cast()), recompiles) {
                    with_agent(|agent| watch_threads(agent, vm, env));
                    control.going();
                    let _ = outcome.send(Ok(()));
                    if stays {
                        return;
                    }
                    control.wait_for_end();
                } else {
                    let _ = outcome.send(Err("the recorder has ended".to_owned()));
                }
            }
            Err(reason) => fail(&reason),
        }
        detach();
    });
    if served.is_none() {
        fail("this JVM takes no more threads");
    }
}

/// Installs the agent and processes all existing code; returns whether the JVM recompiles it.
fn attach(
    vm: &JavaVM,
    env: &mut Env<'_>,
    session: Session,
    options: Options,
) -> Result<bool, String> {
    let raw_vm = vm.get_raw().cast();
    // SAFETY: the VM is alive.
    let jvmti = unsafe { Jvmti::from_java_vm_raw(raw_vm) }
        .map_err(|code| format!("this JVM offers no JVMTI (code {code})"))?;
    hotspot::check_release(&jvmti)?;
    let keep_code = options.keep_code;
    let stays = options.plugin;
    // Spark's plugin has loaded another copy of this library.
    if !stays && has_property(env, AGENT_PROPERTY) {
        return Err(PROFILED.to_owned());
    }
    let tasks_only = stays && !options.without_spark && options.config.threads == Threads::Auto;
    let session = session.with_shipping(shipment(&options));
    let installed = install(Agent {
        options,
        session,
        jvmti,
        methods: Methods::default(),
        events: EventQueue::new(),
        tasks_only: AtomicBool::new(tasks_only),
        executor_flag: None,
        has_boundaries: false,
        number: RECORDINGS.fetch_add(1, Ordering::Relaxed) + 1,
        code_blobs: hotspot::code_blobs(raw_vm),
        evictions: Evictions::new(hotspot::release(raw_vm)),
    });
    if !installed {
        return Err(PROFILED.to_owned());
    }
    with_agent(|agent| {
        add_capabilities(&agent.jvmti)?;
        if stays {
            add_transforming(&agent.jvmti)?;
        }
        if let Some((low, high)) = hotspot::code_cache(raw_vm) {
            agent.session.set_code_cache(low, high);
        }
        listen(agent).ok_or(EVENTS_REFUSED)?;
        let described = hotspot::describe_code(raw_vm);
        let methods = code_events::replay(agent, described == Some(true));
        let keep_code = match stays {
            true => keep_code && !plugin::join_spark(agent, env)?,
            false => keep_code,
        };
        Ok(described == Some(false)
            && !keep_code
            && recompile(agent, env, &methods, hotspot::release(raw_vm)))
    })
    .unwrap_or_else(|| Err("the agent failed".to_owned()))
}

/// The destination of a profile with a URI.
fn shipment(options: &Options) -> Option<Shipment> {
    Some(Shipment {
        uri: options.config.uri.clone()?,
        spool: options.spool.clone()?,
    })
}

fn listen(agent: &Agent) -> Option<()> {
    let mut callbacks = code_and_thread_callbacks();
    if agent.options.plugin {
        callbacks.VMDeath = Some(onload::vm_death);
        callbacks.ClassFileLoadHook = Some(classes::class_file_load_hook);
    }
    agent.jvmti.set_event_callbacks(callbacks).ok()?;
    CODE_EVENTS
        .iter()
        .try_for_each(|event| enable(agent, *event))
}

/// New threads announce themselves; announces the existing ones.
fn watch_threads(agent: &Agent, vm: &JavaVM, env: &Env<'_>) {
    agent.session.let_samplers_read();
    for event in THREAD_EVENTS {
        let _ = enable(agent, event);
    }
    let announced = env.with_local_frame(REFERENCES, |env| -> jni::errors::Result<()> {
        if let Some(native) = NativeThreads::new(vm.get_raw().cast(), env) {
            threads::announce_running(agent, env, &native);
        }
        Ok(())
    });
    // Without memory for references, existing threads are not profiled.
    if announced.is_err() {
        clear_exception(env);
    }
}

/// Releases everything.
fn detach() {
    with_agent(|agent| {
        for event in THREAD_EVENTS.iter().chain(&CODE_EVENTS) {
            let _ = set_event(agent, *event, false);
        }
        agent.session.let_nobody_read();
    });
    if let Some(agent) = remove(UNDER_WAY) {
        if let Ok(capabilities) = agent.jvmti.get_capabilities() {
            let _ = agent.jvmti.relinquish_capabilities(&capabilities);
        }
        let Agent { jvmti, .. } = *agent;
        // SAFETY: no callback is under way, and nobody else knows this environment.
        let _ = unsafe { jvmti.dispose_environment() };
    }
}
