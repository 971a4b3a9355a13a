//! The JVM's event stream: JSON objects, each after its length (u32, native byte order).

use serde::Deserialize;
use serde_json::Value;

/// Longest event, bytes.
const LONGEST: usize = 64 << 20;

/// An event: its subject, and its text. Most events are rows of a table, and are parsed as such.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) kind: String,
    text: Box<[u8]>,
}

#[derive(Deserialize)]
struct Head {
    #[serde(rename = "type", default)]
    kind: String,
}

impl Event {
    fn parse(text: &[u8]) -> Option<Self> {
        let Head { kind } = serde_json::from_slice(text).ok()?;
        Some(Self {
            kind,
            text: text.into(),
        })
    }

    /// Parses it; `None` if it is invalid.
    pub(super) fn read<'a, T: Deserialize<'a>>(&'a self) -> Option<T> {
        serde_json::from_slice(&self.text).ok()
    }

    /// All its fields.
    pub(super) fn fields(&self) -> Value {
        self.read().unwrap_or_default()
    }
}

/// Reassembles events from the pieces of a stream socket.
#[derive(Debug, Default)]
pub(super) struct Events {
    buffer: Vec<u8>,
}

impl Events {
    /// Adds bytes; returns the events that are now complete. Text that is not JSON is skipped.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<Event> {
        self.buffer.extend_from_slice(bytes);
        let mut events = Vec::new();
        let mut offset = 0;
        while let Some((length, rest)) = self.buffer[offset..].split_first_chunk::<4>() {
            let length = u32::from_ne_bytes(*length) as usize;
            if length > LONGEST {
                // Out of step: the rest is unusable.
                offset = self.buffer.len();
                break;
            }
            let Some(text) = rest.get(..length) else {
                break;
            };
            events.extend(Event::parse(text));
            offset += 4 + length;
        }
        self.buffer.drain(..offset);
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn framed(text: &str) -> Vec<u8> {
        let mut bytes = (text.len() as u32).to_ne_bytes().to_vec();
        bytes.extend(text.as_bytes());
        bytes
    }

    proptest! {
        #[test]
        fn events_survive_any_cutting(cuts in proptest::collection::vec(1usize..9, 1..40)) {
            let stream = [framed("{\"type\":\"a\"}"), framed("no json"), framed("{\"type\":\"b\"}")].concat();
            let mut events = Events::default();
            let (mut got, mut offset) = (Vec::new(), 0usize);
            for cut in cuts.into_iter().chain([usize::MAX]) {
                let end = offset.saturating_add(cut).min(stream.len());
                got.extend(events.feed(&stream[offset..end]));
                offset = end;
            }
            let kinds: Vec<_> = got.iter().map(|event| event.kind.as_str()).collect();
            prop_assert_eq!(kinds, ["a", "b"]);
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            Events::default().feed(&bytes);
        }
    }
}
