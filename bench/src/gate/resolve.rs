//! The work of the code map: addresses of compiled methods to methods and lines.

use std::hint::black_box;

use anyhow::{Result, ensure};
use unfuse_codemap::{CodeMap, CodeRange, FrameRec, Kind, Lookup, Method, PcRec, Resolution};

use crate::random::Random;

const RANGES: u64 = 20_000;
const SIZE: u64 = 0x400;
const ADDRESSES: u64 = 1_000_000;

/// Fills a map with methods that have an inlined one, and resolves a million addresses in them.
pub fn a_million() -> Result<()> {
    let map = CodeMap::create(1 << 28)?;
    let method = |name| Method {
        class: "org.apache.spark.sql.catalyst.expressions.GeneratedClass$GeneratedIteratorForCodegenStage1",
        name,
        signature: "()V",
        file: "generated.java",
    };
    let frame = |parent, method, line| FrameRec {
        parent,
        method,
        bci: 0,
        line,
    };
    for slot in 0..RANGES {
        let inserted = map.writer().insert(&CodeRange {
            start: slot * SIZE,
            size: SIZE as u32 - 0x40,
            load_time: slot + 1,
            kind: Kind::Java,
            frame_words: 4,
            sparse: false,
            methods: &[method("processNext"), method("project_doConsume_0")],
            frames: &[frame(FrameRec::OUTERMOST, 0, 30), frame(0, 1, 70)],
            pcs: &[
                PcRec {
                    offset: 0x40,
                    frame: 0,
                },
                PcRec {
                    offset: 0x100,
                    frame: 1,
                },
                PcRec {
                    offset: 0x300,
                    frame: 0,
                },
            ],
        });
        ensure!(inserted.is_ok(), "the map is full");
    }
    let (mut random, mut resolution) = (Random(1), Resolution::default());
    for _ in 0..ADDRESSES {
        let pc = random.below(RANGES) * SIZE + random.below(SIZE - 0x40);
        let found = map
            .reader()
            .resolve(pc, u64::MAX / 2, true, black_box(&mut resolution));
        ensure!(
            found == Lookup::Found,
            "an address in a range was not found"
        );
    }
    Ok(())
}
