//! The HTML file: the page with all data as compressed blocks, which it unpacks when they are needed.

use std::cell::RefCell;
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
use crate::why;
use unfuse_postprocess::plain::{Form, Plain};

/// The page without data; `build.mjs` of the page makes it.
const PAGE: &str = include_str!(concat!(env!("OUT_DIR"), "/page.html"));
/// The places for the blocks: the first is before the script, the others are after it, so the list appears while the
/// browser still reads the file.
const FIRST: &str = "<!--unfuse:first-->";
const REST: &str = "<!--unfuse:rest-->";

/// Data for the page, ready to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block(String);

impl Block {
    /// Packs data as base64 of raw deflate of JSON: no data can end its script element. Characters that change the
    /// direction of text are escaped.
    ///
    /// # Errors
    /// If the data cannot be written as JSON.
    pub fn new(data: &impl Serialize) -> io::Result<Self> {
        thread_local! {
            // Its tables are large, and a page has hundreds of blocks.
            static DEFLATE: RefCell<Option<DeflateEncoder<Vec<u8>>>> = const { RefCell::new(None) };
        }
        let new = || DeflateEncoder::new(Vec::new(), Compression::new(6));
        // After a failure another one is made.
        let mut deflate = DEFLATE.take().unwrap_or_else(new);
        let plain = Plain::new(&mut deflate, Form::Page);
        serde_json::to_writer(io::BufWriter::new(plain), data)?;
        let packed = deflate.reset(Vec::new())?;
        DEFLATE.set(Some(deflate));
        Ok(Self(STANDARD.encode(packed)))
    }

    /// Names are letters, digits and `-`: they are ours, or hashes.
    fn write(&self, out: &mut dyn Write, name: &str) -> io::Result<()> {
        let block = &self.0;
        writeln!(
            out,
            "<script type=\"application/octet-stream\" id=\"block-{name}\">{block}</script>"
        )
    }
}

/// What other parts of the page need of a query.
struct Sampled {
    /// For the verdict.
    digest: Digest,
    /// For the wall times; none if its start or end is not known.
    run: Option<why::Run>,
}

/// The block of a bundle, and what other parts of the page need of its queries.
type BundleBlock = (Block, Vec<Sampled>);

/// The blocks of all queries, and what each query adds to the verdict.
#[derive(Debug)]
pub struct Details {
    places: Places,
    blocks: Vec<Block>,
    /// Where the wall time of the queries of each block went.
    wall_times: Vec<Block>,
    /// Names of the frames of all flame graphs.
    frames: Block,
    /// Generated sources by their hash.
    sources: Vec<(String, Block)>,
    digests: Vec<Digest>,
}

impl Report<'_> {
    /// Writes the file with the details that [`Report::details`] has made.
    ///
    /// # Errors
    /// Those of `out`, and of tables that cannot be read.
    pub fn write_html(&self, out: &mut dyn Write, details: Details) -> io::Result<()> {
        let (head, tail) = PAGE.split_once(FIRST).unwrap_or((PAGE, ""));
        let (script, end) = tail.split_once(REST).unwrap_or((tail, ""));
        let summary = self.with_digests(details.digests);
        let summary = summary.map_err(io::Error::other)?;
        out.write_all(head.as_bytes())?;
        Block::new(&summary)?.write(out, "summary")?;
        out.write_all(script.as_bytes())?;
        details.frames.write(out, "frames")?;
        if let Some(comparison) = &self.comparison {
            Block::new(comparison)?.write(out, "comparison")?;
        }
        Block::new(&details.places)?.write(out, "places")?;
        for (number, block) in details.blocks.iter().enumerate() {
            block.write(out, &format!("details-{number}"))?;
        }
        for (number, block) in details.wall_times.iter().enumerate() {
            block.write(out, &format!("wall-times-{number}"))?;
        }
        for (name, blocks) in [("contention", &self.contention), ("skew", &self.skew)] {
            let Some(blocks) = blocks else { continue };
            blocks.all.write(out, name)?;
            for (index, block) in &blocks.queries {
                block.write(out, &format!("{name}-{index}"))?;
            }
        }
        for (index, block) in &self.what_if {
            block.write(out, &format!("what-if-{index}"))?;
        }
        for (hash, block) in &details.sources {
            block.write(out, &format!("source-{hash}"))?;
        }
        out.write_all(end.as_bytes())
    }

    /// Queries by the block of their details.
    fn bundles(&self) -> Vec<Vec<usize>> {
        let queries = self.summary.queries.iter().zip(&self.parts);
        let queries: Vec<(&str, usize)> = queries
            .map(|(query, part)| (&*query.fingerprint, query.tasks + part.groups.len()))
            .collect();
        bundles(&queries)
    }

    /// The details of all queries, made on all cores. `progress` is called for each query that is done.
    ///
    /// # Errors
    /// If the data cannot be JSON, and of sources that cannot be read.
    pub fn details(&self, progress: &(dyn Fn() + Sync)) -> io::Result<Details> {
        let bundles = self.bundles();
        let executors = why::Executors::new(self).map_err(io::Error::other)?;
        // First, so that no worker waits for another one's.
        self.line_texts();
        let ((made, frames), sources) = rayon::join(
            || {
                rayon::join(
                    || self.bundle_blocks(&bundles, &executors, progress),
                    || Block::new(self.frame_names()),
                )
            },
            || self.source_blocks(),
        );
        let (blocks, sampled): (Vec<_>, Vec<_>) = made?.into_iter().unzip();
        let sampled = sampled.into_iter().flatten();
        let mut sampled: Vec<(usize, Sampled)> =
            bundles.iter().flatten().copied().zip(sampled).collect();
        sampled.sort_by_key(|(at, _)| *at);
        let (digests, runs): (Vec<Digest>, Vec<_>) = sampled
            .into_iter()
            .map(|(_, Sampled { digest, run })| (digest, run))
            .unzip();
        let wall_times = why::wall_times(self, runs);
        Ok(Details {
            places: Places::new(&bundles),
            blocks,
            wall_times: bundles
                .par_iter()
                .map(|bundle| -> io::Result<Block> {
                    let of: Vec<_> = bundle.iter().map(|at| &wall_times[*at]).collect();
                    Block::new(&of)
                })
                .collect::<io::Result<_>>()?,
            frames: frames?,
            sources: sources?,
            digests,
        })
    }

    /// The blocks of all bundles, with what other parts of the page need of each query.
    fn bundle_blocks(
        &self,
        bundles: &[Vec<usize>],
        executors: &why::Executors,
        progress: &(dyn Fn() + Sync),
    ) -> io::Result<Vec<BundleBlock>> {
        let earlier = self.earlier.as_ref().map(why::EarlierRuns::basis);
        let basis = earlier.unwrap_or_else(|| why::Basis::from_profile(self.profile));
        let made = |queries: &Vec<usize>| {
            let mut bundle = Bundle::default();
            let mut sampled = Vec::new();
            for index in queries {
                let part = &self.parts[*index];
                let analysis = Analysis::new(self.profile, part);
                sampled.push(Sampled {
                    digest: analysis.digest(self.profile, part),
                    run: why::Run::new(self, *index, executors, analysis.costs(), basis),
                });
                let detail = query::detail(
                    self.profile,
                    part,
                    &analysis,
                    &self.tasks,
                    &self.names,
                    self.line_texts(),
                );
                bundle.add(detail);
                progress();
            }
            Ok((Block::new(&bundle)?, sampled))
        };
        bundles.par_iter().map(made).collect()
    }

    /// The generated sources that the profile has a text of.
    fn source_blocks(&self) -> io::Result<Vec<(String, Block)>> {
        let made = |hash: &str| -> io::Result<Option<(String, Block)>> {
            let source = self.source(hash).map_err(io::Error::other)?;
            let block = source.map(|source| Block::new(&source)).transpose()?;
            Ok(block.map(|block| (hash.to_owned(), block)))
        };
        let hashes = self.source_hashes();
        let made: Vec<_> = hashes
            .into_par_iter()
            .map(made)
            .collect::<io::Result<_>>()?;
        Ok(made.into_iter().flatten().collect())
    }
}
