//! Needs and limits of the Spark plugin (`spark.plugins=io.unfuse.spark.UnfusePlugin`).

use nix::sys::statvfs::{FsFlags, statvfs};
use unfuse_profiler::options::PLUGIN_LIMITS;
use unfuse_profiler::perf_event;

use super::checks::{Finding, Outcome};

pub(super) fn findings() -> Vec<Finding> {
    let mut findings = vec![sampling(), temporary_files()];
    findings.push(Finding::new(
        Outcome::Note,
        "the profile begins when the SparkContext starts, not when the JVM starts",
        "",
    ));
    findings.extend(PLUGIN_LIMITS.iter().map(|limit| {
        let text = format!("no {}: {}", limit.value, limit.why);
        Finding::new(
            Outcome::Note,
            text,
            "Use `unfuse run` or -agentpath for it.",
        )
    }));
    findings
}

fn sampling() -> Finding {
    match perf_event::probe() {
        Ok(()) => Finding::ok("perf_event_open works"),
        Err(_) => Finding::new(
            Outcome::Note,
            "without perf_event_open, profiles have plans, stages and tasks, but no samples",
            "Allow perf_event, or add -XX:+PreserveFramePointer to the options of driver and executors, with which CPU timers \
             take the samples.",
        ),
    }
}

/// The JVM uses the same directory unless java.io.tmpdir names another one.
fn temporary_files() -> Finding {
    let dir = std::env::temp_dir();
    let shown = dir.display();
    match statvfs(&dir) {
        Ok(system) if system.flags().contains(FsFlags::ST_NOEXEC) => Finding::new(
            Outcome::Note,
            format!("programs may not run in {shown} (mounted with noexec)"),
            "The plugin then uses the working directory of the JVM, or the one that spark.unfuse.native.dir names.",
        ),
        Ok(_) => Finding::ok(format!("programs may run in {shown}")),
        Err(e) => Finding::new(
            Outcome::Note,
            format!("{shown} cannot be examined: {e}"),
            "The plugin unpacks the agent there, or in the directory that spark.unfuse.native.dir names.",
        ),
    }
}
