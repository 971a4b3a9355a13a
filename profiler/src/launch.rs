//! Launches the profiler from the JVM.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;

use unfuse_codemap::CodeMap;
use unfuse_files::{Access, Directory};
use unfuse_format::{LiveMarker, ProfileDir};

use crate::config::{Config, SourceChoice};
use crate::error::LaunchError;
use crate::interpreter::Layout;
use crate::launch_plan::LaunchPlan;
use crate::names::{host, spool_tag, writer_name};
use crate::perf_event;
use crate::process;
use crate::session::{Session, Shipment};
use crate::timer::TimerRings;
use crate::wire::stream_pair;
use crate::writer::Place;

/// The session that the agent keeps.
pub type Launch = Result<Session, LaunchError>;

/// Makes the profile directory and the code map, and forks the manager. Called before the JVM has a heap or threads
/// (Agent_OnLoad).
pub fn launch(config: &Config, layout: Layout) -> Launch {
    let dir = profile_or_spool(config)?;
    let shipped = config.uri.clone().map(|uri| Shipment {
        uri,
        spool: dir.path().to_owned(),
    });
    let launched = launch_into(dir.clone(), config, layout).inspect_err(|e| {
        // `unfuse run` looks at this marker, to avoid guessing reasons if one was already reported.
        if let Ok(marker) = LiveMarker::hold(&dir, &writer_name(&host(), std::process::id())) {
            marker.fail(e.errno());
        }
    });
    launched.map(|session| session.with_shipping(shipped))
}

/// Makes the directory that the writer writes to: the profile directory, or a spool if the profile has a URI.
pub(crate) fn profile_or_spool(config: &Config) -> Result<ProfileDir, LaunchError> {
    match config.uri {
        Some(_) => make_spool(config.spools.as_deref())
            .map_err(|e| LaunchError::System("make a spool for the profile", e)),
        None => ProfileDir::create(&config.dir).map_err(LaunchError::Directory),
    }
}

/// A private directory with a unique name, whose end becomes a part of the names of the writer's files, so that
/// containers with the same host name and pid do not overwrite each other's.
fn make_spool(parent: Option<&Path>) -> io::Result<ProfileDir> {
    let parent = parent.map_or_else(std::env::temp_dir, Path::to_owned);
    let name = format!("unfuse-spool-{}", unfuse_files::random_digits()?);
    let spool = Directory::create_shared(&parent)
        .and_then(|parent| parent.create_folder(&name, Access::Private))
        .map_err(io::Error::other)?;
    ProfileDir::create_in(spool).map_err(io::Error::other)
}

fn launch_into(dir: ProfileDir, config: &Config, layout: Layout) -> Launch {
    let system = |what| move |e| LaunchError::System(what, e);
    let map =
        CodeMap::create((config.map_mib as usize) << 20).map_err(system("make the code map"))?;
    let perf_denied = match config.source {
        SourceChoice::Timer => None,
        SourceChoice::Auto => perf_event::probe().err(),
        SourceChoice::Perf => {
            perf_event::probe().map_err(LaunchError::PerfDenied)?;
            None
        }
    };
    let timers = if config.source == SourceChoice::Timer || perf_denied.is_some() {
        Some(TimerRings::create().map_err(system("make the timers' ring"))?)
    } else {
        None
    };
    let (to_manager, manager_end) = stream_pair().map_err(system("make a socket"))?;
    let (events, writer_events) = UnixStream::pair().map_err(system("make a socket"))?;
    let jvm = std::process::id();
    let jvm_ends = process::pidfd(jvm as i32).map_err(system("watch the JVM"))?;
    let tag = spool_tag(dir.path()).filter(|_| config.uri.is_some());
    let plan = LaunchPlan {
        config,
        tag: tag.map(str::to_owned),
        place: Place::Profile(dir),
        jvm,
        owner: None,
        ends: jvm_ends,
        from_jvm: manager_end,
        events: writer_events,
        map: &map,
        timers: timers.as_ref(),
        layout,
    };
    plan.start()
        .map_err(|(what, e)| LaunchError::System(what, e))?;
    let session = Session::new(map, to_manager, events, timers, perf_denied);
    session.let_samplers_read();
    Ok(session)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use unfuse_format::{SampleRow, SegmentWriter, Table};

    use super::*;

    /// Also if others can list its parent directory, such as that for temporary files.
    #[test]
    fn a_spool_is_private() {
        let home = tempfile::tempdir().unwrap();
        fs::set_permissions(home.path(), Permissions::from_mode(0o755)).unwrap();
        let dir = make_spool(Some(home.path())).unwrap();
        let spool = dir.path();
        assert_eq!(spool.parent(), Some(home.path()));
        assert!(spool_tag(spool).is_some_and(|tag| tag.len() == 16));
        let mut samples = SegmentWriter::<SampleRow>::new(&dir, "host-1");
        samples.push(SampleRow::default());
        samples.flush().unwrap();
        let folder = spool.join(SampleRow::NAME);
        let segment = folder.join(samples.take_last().unwrap());
        let manifest = spool.join("unfuse.json");
        let modes = [spool, &folder, &segment, &manifest]
            .map(|path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777);
        assert_eq!(modes, [0o700, 0o700, 0o600, 0o600]);
    }
}
