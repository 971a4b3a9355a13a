//! Messages of the agent to the recorder, which must not trust them: their length and time are limited.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::interpreter::Layout;

/// Longest message, bytes.
const LONGEST: u32 = 1 << 16;

/// A message of the agent.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum FromAgent {
    Ready { layout: Layout, recompiles: bool },
    Going,
    Left,
    Failed(String),
}

/// Sends a message.
pub(super) fn send(mut to: &UnixStream, message: &FromAgent) -> io::Result<()> {
    let message = postcard::to_stdvec(message).map_err(io::Error::other)?;
    let mut bytes = (message.len() as u32).to_ne_bytes().to_vec();
    bytes.extend(message);
    to.write_all(&bytes)
}

/// Receives the next message, which must be complete within `patience`.
pub(super) fn receive(from: &UnixStream, patience: Duration) -> io::Result<FromAgent> {
    let until = Instant::now() + patience;
    let mut length = [0; 4];
    read_exact(from, &mut length, until)?;
    let length = u32::from_ne_bytes(length);
    if length > LONGEST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0; length as usize];
    read_exact(from, &mut bytes, until)?;
    postcard::from_bytes(&bytes).map_err(io::Error::other)
}

/// The begin of a text from a JVM, without control characters.
pub fn one_line(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    text.trim().chars().take(500).map(plain).collect()
}

/// Fills `bytes` before `until`, even if they come one by one.
fn read_exact(mut from: &UnixStream, mut bytes: &mut [u8], until: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        from.set_read_timeout(Some(left))?;
        match from.read(bytes) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => bytes = &mut bytes[read..],
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_jvm_says_is_one_line() {
        assert_eq!(one_line(" no\n\u{1b}[2Jlibrary \n"), "no  [2Jlibrary");
        assert_eq!(one_line(&"x".repeat(10_000)).len(), 500);
    }

    #[test]
    fn a_message_that_drips_is_given_up() {
        let (here, mut there) = UnixStream::pair().unwrap();
        let dripping = std::thread::spawn(move || {
            while there.write_all(&[0]).is_ok() {
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let until = Instant::now() + Duration::from_millis(50);
        let error = read_exact(&here, &mut [0; 1 << 20], until).unwrap_err();
        assert!(
            matches!(
                error.kind(),
                io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock
            ),
            "{error}"
        );
        drop(here);
        dripping.join().unwrap();
    }
}
