//! Round trips of every codec, complete and cut off.

use std::io::{Cursor, Read, Write};

use proptest::prelude::*;

use super::*;

type Pack = fn(&[u8], usize) -> Vec<u8>;

const CODECS: [(Codec, Pack); 6] = [
    (Codec::Plain, |text, _| text.to_vec()),
    (Codec::Zstd, zstd),
    (Codec::Gzip, gzip),
    (Codec::Lz4Block, lz4_block::pack),
    (Codec::Snappy, snappy::pack),
    (Codec::Lzf, lzf::pack),
];

/// A frame for every part, as from a writer that ends frames when it flushes.
fn zstd(text: &[u8], block: usize) -> Vec<u8> {
    let frame = |part| zstd::encode_all(part, 1).unwrap();
    text.chunks(block).flat_map(frame).collect()
}

fn gzip(text: &[u8], _: usize) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// The readable bytes, and whether all were readable.
fn unpack(packed: &[u8]) -> (Vec<u8>, bool) {
    let mut unpacked = Vec::new();
    match text(Cursor::new(packed.to_vec()), &Budget::default()) {
        Ok(FileStart::Text(mut text)) => {
            let all = text.read_to_end(&mut unpacked).is_ok();
            (unpacked, all)
        }
        Ok(FileStart::Empty) => (unpacked, true),
        Ok(FileStart::Unknown) | Err(_) => (unpacked, false),
    }
}

/// A text that compresses well in some places and badly in others.
fn some_text() -> impl Strategy<Value = Vec<u8>> {
    let runs = prop::collection::vec((any::<u8>(), 1usize..600), 1..40);
    runs.prop_map(|runs| {
        let run = |(byte, length)| std::iter::repeat_n(byte, length);
        b"{".iter()
            .copied()
            .chain(runs.into_iter().flat_map(run))
            .collect()
    })
}

proptest! {
    #[test]
    fn what_was_packed_comes_out(text in some_text(), block in 1usize..3000) {
        for (codec, pack) in CODECS {
            let packed = pack(&text, block);
            prop_assert_eq!(Codec::detect(&packed), Some(codec));
            prop_assert_eq!(unpack(&packed), (text.clone(), true), "{:?}", codec);
        }
    }

    #[test]
    fn what_came_before_a_cut_comes_out(text in some_text(), block in 1usize..3000, cut in 0.0..1.0) {
        for (codec, pack) in CODECS {
            let packed = pack(&text, block);
            let cut = (cut * packed.len() as f64) as usize;
            let (found, _) = unpack(&packed[..cut]);
            prop_assert!(text.starts_with(&found), "{:?}", codec);
            // Whole blocks before the cut remain.
            if codec == Codec::Snappy || codec == Codec::Lz4Block {
                let whole = (0..=text.len() / block)
                    .map(|blocks| blocks * block)
                    .filter(|length| pack(&text[..*length], block).len() <= cut)
                    .max();
                prop_assert!(found.len() >= whole.unwrap_or(0), "{:?}", codec);
            }
        }
    }

    #[test]
    fn streams_one_after_another_are_one(text in some_text(), block in 1usize..3000) {
        for (codec, pack) in CODECS {
            let packed = [pack(&text, block), pack(&text, block)].concat();
            let twice = [text.clone(), text.clone()].concat();
            prop_assert_eq!(unpack(&packed), (twice, true), "{:?}", codec);
        }
    }
}

#[test]
fn a_changed_byte_in_an_lz4_block_is_noticed() {
    let mut packed = lz4_block::pack(&b"{\"Event\":\"E\"}\n".repeat(100), 700);
    let last = packed.len() - 30;
    packed[last] ^= 1;
    let (found, all) = unpack(&packed);
    assert!(!all && found.len() == 700, "{} {all}", found.len());
}

#[test]
fn a_broken_length_takes_no_memory() {
    let mut packed = snappy::pack(b"{}", 100);
    packed[16..20].copy_from_slice(&(127u32 << 20).to_be_bytes());
    assert_eq!(unpack(&packed), (Vec::new(), false));
}

#[test]
fn files_of_a_log_share_what_they_may_unpack_to() {
    let text_of = 40 << 20;
    let packed = zstd(&vec![b'{'; text_of], text_of);
    let budget = Budget::default();
    let read = || {
        let Ok(FileStart::Text(text)) = text(Cursor::new(packed.clone()), &budget) else {
            panic!("a text");
        };
        io::copy(&mut { text }, &mut io::sink())
    };
    assert_eq!(read().unwrap(), text_of as u64);
    assert_eq!(read().unwrap_err().kind(), io::ErrorKind::FileTooLarge);
}

#[test]
fn what_spark_does_not_write_is_refused() {
    for text in ["a,b,c", "\u{feff}{", "PAR1", "[{}]"] {
        assert!(Codec::detect(text.as_bytes()).is_none(), "{text}");
    }
}
