//! The time for which a thread was runnable without a CPU, from the kernel's statistics.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// The scheduler's statistics of one thread.
#[derive(Debug)]
pub(super) struct RunDelay(File);

impl RunDelay {
    /// `None` if the kernel does not have them.
    pub(super) fn open(process: u32, thread: u32) -> Option<Self> {
        let path = format!("/proc/{process}/task/{thread}/schedstat");
        File::open(path).ok().map(Self)
    }

    /// Run delay since the thread began, ns; `None` once it has ended.
    pub(super) fn ns(&self) -> Option<u64> {
        let mut text = [0u8; 96];
        let length = self.0.read_at(&mut text, 0).ok()?;
        parse(str::from_utf8(text.get(..length)?).ok()?)
    }
}

/// `ON-CPU-NS DELAY-NS TIMES`.
fn parse(text: &str) -> Option<u64> {
    text.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_number_is_the_delay() {
        assert_eq!(parse("2610892 417 12\n"), Some(417));
        assert_eq!(parse(""), None);
        assert_eq!(parse("1 x 2"), None);
    }

    #[test]
    fn this_thread_has_one() {
        let thread = nix::unistd::gettid().as_raw() as u32;
        let delay = RunDelay::open(std::process::id(), thread);
        assert!(delay.is_none_or(|delay| delay.ns().is_some()));
    }
}
