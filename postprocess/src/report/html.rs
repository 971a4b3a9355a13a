//! The file: the page with all data inside, as compressed blocks that are opened when they are looked at.

use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use rayon::prelude::*;
use serde::Serialize;

use super::Report;

/// The page without data; `build.mjs` of the page makes it.
const PAGE: &str = include_str!(concat!(env!("OUT_DIR"), "/page.html"));
/// Where the blocks go: the first before the script, the rest after it, so that the list is there before
/// the file is read to its end.
const FIRST: &str = "<!--unfuse:first-->";
const REST: &str = "<!--unfuse:rest-->";

impl Report<'_> {
    /// Writes the file. `progress` hears of each query that is done.
    ///
    /// # Errors
    /// Those of `out`, and of sources that cannot be read.
    pub fn write_html(&self, out: &mut dyn Write, progress: &(dyn Fn() + Sync)) -> io::Result<()> {
        let (head, tail) = PAGE.split_once(FIRST).unwrap_or((PAGE, ""));
        let (script, end) = tail.split_once(REST).unwrap_or((tail, ""));
        out.write_all(head.as_bytes())?;
        write_block(out, "summary", &encoded(&self.summary)?)?;
        out.write_all(script.as_bytes())?;
        write_block(out, "frames", &encoded(self.frame_names())?)?;
        if let Some(comparison) = &self.comparison {
            write_block(out, "comparison", &encoded(comparison)?)?;
        }
        for (at, block) in self.details(progress)?.iter().enumerate() {
            write_block(out, &format!("query-{at}"), block)?;
        }
        for hash in self.source_hashes() {
            if let Some(source) = self.source(hash).map_err(io::Error::other)? {
                write_block(out, &format!("source-{hash}"), &encoded(&source)?)?;
            }
        }
        out.write_all(end.as_bytes())
    }

    /// The blocks of all queries, made on all cores.
    fn details(&self, progress: &(dyn Fn() + Sync)) -> io::Result<Vec<String>> {
        let block = |at| {
            let block = encoded(&self.detail(at));
            progress();
            block
        };
        (0..self.parts.len()).into_par_iter().map(block).collect()
    }
}

/// JSON, raw deflate, base64: no data can end the script element it is in.
fn encoded(data: &impl Serialize) -> io::Result<String> {
    let mut deflate = DeflateEncoder::new(Vec::new(), Compression::new(3));
    serde_json::to_writer(io::BufWriter::new(&mut deflate), data)?;
    Ok(STANDARD.encode(deflate.finish()?))
}

/// Names are ours, or hashes: letters, digits and `-`.
fn write_block(out: &mut dyn Write, name: &str, block: &str) -> io::Result<()> {
    writeln!(
        out,
        "<script type=\"application/octet-stream\" id=\"block-{name}\">{block}</script>"
    )
}
