//! Starts the processes next to a JVM, forked from it or from the recorder.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

use unfuse_codemap::CodeMap;

use crate::config::{Config, PythonDetail};
use crate::identity::Identity;
use crate::interpreter::Layout;
use crate::manager::{Manager, PythonSampler};
use crate::process;
use crate::sampler::Access;
use crate::status::{Failure, StatusWords};
use crate::timer::TimerRings;
use crate::wire::packet_pair;
use crate::writer::{Place, ToSampler, Writer};

/// The arguments of the processes.
pub(crate) struct LaunchPlan<'a> {
    pub(crate) config: &'a Config,
    pub(crate) place: Place,
    /// The tag in names of files in a spool.
    pub(crate) tag: Option<String>,
    pub(crate) jvm: u32,
    /// The identity that the processes take on; none if they were forked from the JVM and have it already.
    pub(crate) owner: Option<Identity>,
    /// Polls readable when profiling must end.
    pub(crate) ends: OwnedFd,
    pub(crate) from_jvm: UnixStream,
    pub(crate) events: UnixStream,
    pub(crate) map: &'a CodeMap,
    pub(crate) timers: Option<&'a TimerRings>,
    pub(crate) layout: Layout,
}

impl LaunchPlan<'_> {
    /// Forks the manager, which forks the others. An error has its purpose.
    pub(crate) fn start(self) -> Result<(), (&'static str, io::Error)> {
        let Self {
            config,
            place,
            tag,
            jvm,
            owner,
            ends,
            from_jvm,
            events,
            map,
            timers,
            layout,
        } = self;
        let status = StatusWords::new(map);
        status.set_seed(crate::share::seed());
        let (samples_in, samples_out) = packet_pair().map_err(|e| ("make a socket", e))?;
        let python = python_pair(config).map_err(|e| ("make a socket", e))?;
        // Forked twice, so that the manager is not a child of the JVM: programs that wait for any child never see it.
        let middle = process::spawn(|| {
            let manager = process::spawn(|| {
                let mut keep = vec![
                    from_jvm.as_raw_fd(),
                    events.as_raw_fd(),
                    samples_in.as_raw_fd(),
                    samples_out.as_raw_fd(),
                    ends.as_raw_fd(),
                    place.descriptor(),
                ];
                let (to_python, for_python) = python;
                keep.extend(to_python.iter().chain(&for_python).map(AsRawFd::as_raw_fd));
                process::detach(&keep);
                process::set_title("unfuse-manager");
                let access = match owner.map(|owner| Access::take_over(owner, jvm)) {
                    None => Access::default(),
                    Some(Ok(access)) => access,
                    Some(Err(e)) => {
                        let errno = e.raw_os_error().unwrap_or(libc::EPERM);
                        return status.fail(Failure::Identity, errno);
                    }
                };
                let manager = Manager {
                    config,
                    access,
                    owner,
                    jvm,
                    jvm_ends: &ends,
                    from_jvm: &from_jvm,
                    to_writer: &samples_out,
                    map,
                    timers,
                    layout,
                    python: RefCell::new(for_python.map(PythonSampler::Waiting)),
                };
                let writer = Writer {
                    place,
                    rate_hz: config.rate_hz,
                    source: if timers.is_some() { "timer" } else { "perf" },
                    tag,
                    jvm,
                    samples: samples_in,
                    events,
                    map,
                    retention: config.retention,
                    tasks: config.tasks,
                    heartbeat: config.heartbeat,
                    switches: None,
                    python: config.python,
                    to_python: to_python.map(|to| ToSampler::new(to, std::process::id())),
                };
                manager.start(writer);
            });
            if let Ok(manager) = manager {
                status.set_manager(manager.as_raw() as u64);
            }
        })
        .map_err(|e| ("fork", e))?;
        let _ = nix::sys::wait::waitpid(middle, None);
        Ok(())
    }
}

/// The ends of the socket between the writer and the sampler of Python workers, if there is to be one.
fn python_pair(config: &Config) -> io::Result<(Option<OwnedFd>, Option<OwnedFd>)> {
    let with_lines = config.python == PythonDetail::Lines && config.rate_hz > 0;
    Ok(with_lines.then(packet_pair).transpose()?.unzip())
}
