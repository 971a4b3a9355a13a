//! The file: the page with all data inside, as compressed blocks that are opened when they are looked at.

use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use rayon::prelude::*;
use serde::Serialize;

use crate::Report;
use crate::bundle::{Bundle, Places, bundles};
use crate::query::{self, Analysis};
use crate::verdict::Digest;
use unfuse_postprocess::plain::{Form, Plain};

/// The page without data; `build.mjs` of the page makes it.
const PAGE: &str = include_str!(concat!(env!("OUT_DIR"), "/page.html"));
/// Where the blocks go: the first before the script, the rest after it, so that the list is there before
/// the file is read to its end.
const FIRST: &str = "<!--unfuse:first-->";
const REST: &str = "<!--unfuse:rest-->";

/// Data for the page, ready to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block(String);

impl Block {
    /// JSON, raw deflate, base64: no data can end the script element it is in. Characters that turn the direction of text are
    /// shown, not obeyed.
    ///
    /// # Errors
    /// If the data cannot be JSON.
    pub fn new(data: &impl Serialize) -> io::Result<Self> {
        let mut deflate = DeflateEncoder::new(Vec::new(), Compression::new(6));
        let plain = Plain::new(&mut deflate, Form::Page);
        serde_json::to_writer(io::BufWriter::new(plain), data)?;
        Ok(Self(STANDARD.encode(deflate.finish()?)))
    }

    /// Names are ours, or hashes: letters, digits and `-`.
    fn write(&self, out: &mut dyn Write, name: &str) -> io::Result<()> {
        let block = &self.0;
        writeln!(
            out,
            "<script type=\"application/octet-stream\" id=\"block-{name}\">{block}</script>"
        )
    }
}

impl Report<'_> {
    /// Writes the file. `progress` hears of each query that is done.
    ///
    /// # Errors
    /// Those of `out`, and of sources that cannot be read.
    pub fn write_html(&self, out: &mut dyn Write, progress: &(dyn Fn() + Sync)) -> io::Result<()> {
        let (head, tail) = PAGE.split_once(FIRST).unwrap_or((PAGE, ""));
        let (script, end) = tail.split_once(REST).unwrap_or((tail, ""));
        let bundles = self.bundles();
        let (details, digests) = self.details(&bundles, progress)?;
        let summary = self.with_digests(digests).map_err(io::Error::other)?;
        out.write_all(head.as_bytes())?;
        Block::new(&summary)?.write(out, "summary")?;
        out.write_all(script.as_bytes())?;
        Block::new(self.frame_names())?.write(out, "frames")?;
        if let Some(comparison) = &self.comparison {
            Block::new(comparison)?.write(out, "comparison")?;
        }
        Block::new(&Places::new(&bundles))?.write(out, "places")?;
        for (number, block) in details.iter().enumerate() {
            block.write(out, &format!("details-{number}"))?;
        }
        for (name, blocks) in [("contention", &self.contention), ("skew", &self.skew)] {
            let Some(blocks) = blocks else { continue };
            blocks.all.write(out, name)?;
            for (at, block) in &blocks.queries {
                block.write(out, &format!("{name}-{at}"))?;
            }
        }
        for hash in self.source_hashes() {
            if let Some(source) = self.source(hash).map_err(io::Error::other)? {
                Block::new(&source)?.write(out, &format!("source-{hash}"))?;
            }
        }
        out.write_all(end.as_bytes())
    }

    /// Queries by the block that their details are in.
    fn bundles(&self) -> Vec<Vec<usize>> {
        let queries = self.summary.queries.iter().zip(&self.parts);
        let queries: Vec<(&str, usize)> = queries
            .map(|(query, part)| (&*query.fingerprint, query.tasks + part.groups.len()))
            .collect();
        bundles(&queries)
    }

    /// The blocks of all bundles, made on all cores, and what each query adds to the verdict.
    fn details(
        &self,
        bundles: &[Vec<usize>],
        progress: &(dyn Fn() + Sync),
    ) -> io::Result<(Vec<Block>, Vec<Digest>)> {
        // First, so that no worker waits for another one's.
        let texts = self.line_texts();
        let made = |queries: &Vec<usize>| {
            let mut bundle = Bundle::default();
            let mut digests = Vec::new();
            for at in queries {
                let part = &self.parts[*at];
                let analysis = Analysis::new(self.profile, part);
                digests.push((*at, analysis.digest(self.profile, part)));
                bundle.add(query::detail(
                    self.profile,
                    part,
                    &analysis,
                    &self.tasks,
                    &self.names,
                    texts,
                ));
                progress();
            }
            Ok((Block::new(&bundle)?, digests))
        };
        let made = bundles.par_iter().map(made);
        let (blocks, digests): (Vec<_>, Vec<_>) =
            made.collect::<io::Result<Vec<_>>>()?.into_iter().unzip();
        let mut digests: Vec<(usize, Digest)> = digests.into_iter().flatten().collect();
        digests.sort_by_key(|(at, _)| *at);
        Ok((blocks, digests.into_iter().map(|(_, one)| one).collect()))
    }
}
