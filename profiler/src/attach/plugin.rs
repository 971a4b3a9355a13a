//! The recorder of a JVM in which Spark's plugin loads the agent.

use std::io;

use super::Recorder;
use crate::config::{Config, SourceChoice};
use crate::error::LaunchError;
use crate::identity::Identity;
use crate::perf_event;
use crate::timer::TimerRings;

impl Recorder {
    /// A recorder for a JVM of this user that loads the agent itself. If the configuration names a URI, the profile is
    /// written to a spool and copied from there.
    ///
    /// The second value is the reason if the kernel denies perf_event. Then CPU timers take the samples if the JVM has
    /// frame pointers ([`Self::has_timers`]); else the profile has plans, stages and tasks, but no samples.
    ///
    /// # Errors
    /// If the profile directory, the code map, a socket or the timers' memory cannot be made.
    pub fn for_plugin(
        mut config: Config,
        jvm: u32,
        frame_pointers: bool,
    ) -> Result<(Self, Option<io::Error>), LaunchError> {
        let denied = match (config.rate_hz, perf_event::probe(), config.source) {
            (0, ..) | (_, Ok(()), _) | (_, _, SourceChoice::Timer) => None,
            (_, Err(e), SourceChoice::Perf) => return Err(LaunchError::PerfDenied(e)),
            (_, Err(e), SourceChoice::Auto) => Some(e),
        };
        let wants_timers = denied.is_some() || config.source == SourceChoice::Timer;
        if wants_timers && !frame_pointers {
            config.rate_hz = 0;
        }
        let dir = crate::launch::profile_or_spool(&config)?;
        let timers = match wants_timers && config.rate_hz > 0 {
            true => Some(
                TimerRings::create_for_another()
                    .map_err(|e| LaunchError::System("make the timers' ring", e))?,
            ),
            false => None,
        };
        let recorder = Self::with_sockets(config, dir, jvm, Identity::current())?;
        Ok((Self { timers, ..recorder }, denied))
    }

    /// Whether CPU timers take the samples.
    pub fn has_timers(&self) -> bool {
        self.timers.is_some()
    }
}
