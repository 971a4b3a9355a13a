//! CLOCK_MONOTONIC, the clock of samples, marks and the code map.

use std::time::{SystemTime, UNIX_EPOCH};

/// Now, ns on CLOCK_MONOTONIC. Async-signal-safe.
pub fn monotonic_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// CPU time of the calling thread, ns. Async-signal-safe.
pub fn thread_cpu_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time of all threads of a process so far, ns; `None` if there is no such process.
pub fn process_cpu_ns(pid: u32) -> Option<u64> {
    // What clock_getcpuclockid makes of a process id; the kernel lets any process read this clock.
    const CPUCLOCK_SCHED: libc::clockid_t = 2;
    let pid = libc::clockid_t::try_from(pid).ok().filter(|pid| *pid > 0)?;
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` is a valid timespec to write to; for an unknown clock the call fails.
    let done = unsafe { libc::clock_gettime((!pid << 3) | CPUCLOCK_SCHED, &mut now) };
    (done == 0).then(|| now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}

/// CPU time of the calling process, ns.
pub fn own_cpu_ns() -> u64 {
    read(libc::CLOCK_PROCESS_CPUTIME_ID)
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` is a valid timespec to write to; the clock ids used here always exist.
    unsafe { libc::clock_gettime(clock, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The offset from the kernel's own CLOCK_MONOTONIC, which perf_event uses for its records, to ours: not zero in a time
/// namespace, as in some containers.
pub fn namespace_offset_ns() -> i64 {
    std::fs::read_to_string("/proc/self/timens_offsets")
        .ok()
        .and_then(|text| parse_offset(&text))
        .unwrap_or(0)
}

/// `monotonic SECONDS NANOSECONDS`, among other clocks.
fn parse_offset(text: &str) -> Option<i64> {
    let line = text.lines().find_map(|l| l.strip_prefix("monotonic"))?;
    let mut numbers = line.split_whitespace().map(str::parse::<i64>);
    let (seconds, ns) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    seconds.checked_mul(1_000_000_000)?.checked_add(ns)
}

/// The offset from monotonic time to time since the epoch.
#[derive(Debug, Clone, Copy)]
pub struct EpochOffset(i64);

impl EpochOffset {
    /// Measured now; later steps of the wall clock do not change a profile's times.
    pub fn measure() -> Self {
        let wall = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |d| d.as_nanos() as i64);
        Self(wall - monotonic_ns() as i64)
    }

    /// Converts a monotonic time to ns since the epoch.
    pub fn epoch_ns(self, monotonic: u64) -> i64 {
        monotonic as i64 + self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_process_has_a_clock_until_it_ends() {
        let mut child = std::process::Command::new("sh")
            .args(["-c", "while :; do :; done"])
            .spawn()
            .unwrap();
        let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while process_cpu_ns(child.id()).unwrap() < 5_000_000 {
            assert!(std::time::Instant::now() < until, "it runs");
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(process_cpu_ns(child.id()), None);
        assert_eq!(process_cpu_ns(0), None);
        assert_eq!(process_cpu_ns(u32::MAX), None);
    }

    #[test]
    fn offsets_of_a_time_namespace_are_read() {
        let text = "monotonic       -100  20\nboottime           7         0\n";
        assert_eq!(parse_offset(text), Some(-99_999_999_980));
        assert_eq!(parse_offset("monotonic x 1"), None);
        assert_eq!(parse_offset(""), None);
    }
}
