//! The frames of stacks. Samplers send the same ones again and again; each is made once, with its native name.

use std::sync::Arc;

use ahash::{HashMap, RandomState};
use unfuse_format::Frame;

use super::symbols::Symbols;
use crate::wire::SentFrame;

/// Number of frames remembered, each of some hundred bytes. A forgotten one is made again.
const REMEMBERED: usize = 16_384;

/// Frames received so far.
#[derive(Debug, Default)]
pub(super) struct Frames {
    symbols: Symbols,
    /// By two hashes of what was sent: two frames with the same hashes practically never occur.
    known: HashMap<(u64, u64), Arc<Frame>>,
    hashers: [RandomState; 2],
}

impl Frames {
    /// The frame that a sampler sent; `None` if no kind of frame has its number.
    pub(super) fn frame(&mut self, sent: &SentFrame<&str>) -> Option<Arc<Frame>> {
        let [first, second] = &self.hashers;
        let key = (first.hash_one(sent), second.hash_one(sent));
        if let Some(known) = self.known.get(&key) {
            return Some(Arc::clone(known));
        }
        if self.known.len() >= REMEMBERED {
            self.known.clear();
        }
        let wire = sent.clone().into_frame()?;
        let frame = Arc::new(self.symbols.name(wire));
        self.known.insert(key, Arc::clone(&frame));
        Some(frame)
    }
}

#[cfg(test)]
mod tests {
    use unfuse_format::FrameKind;

    use super::*;
    use crate::wire::{SentPiece, WireFrame, decode, encode};

    #[test]
    fn equal_frames_are_one_and_others_are_not() {
        let sent = |method: &str, line| WireFrame {
            frame: Frame {
                kind: FrameKind::Java,
                class: "a.B".to_owned(),
                method: method.to_owned(),
                line,
                ..Frame::default()
            },
            address: 0,
        };
        let all = [("a", 1), ("b", 1), ("a", 2), ("a", 1)].map(|(name, line)| sent(name, line));
        let packet = encode(&all.to_vec()).unwrap();
        let pieces: SentPiece<'_> = decode(&packet).unwrap();
        let mut frames = Frames::default();
        let made: Vec<_> = pieces
            .iter()
            .map(|sent| frames.frame(sent).unwrap())
            .collect();
        for (made, sent) in made.iter().zip(&all) {
            assert_eq!(**made, sent.frame);
        }
        assert!(Arc::ptr_eq(&made[0], &made[3]));
        assert_eq!(frames.known.len(), 3);
    }
}
