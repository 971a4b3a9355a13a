//! Profiles recorded at several schemes, for impact by operator.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use unfuse_format::ProfileDir;
use unfuse_impact::Scheme;
use unfuse_report::impact::{Answer, QueryTimes};

use crate::commands::open;

/// Profiles with the schemes at which they were recorded.
#[derive(Debug, Default)]
pub(super) struct Profiles(Vec<(Scheme, PathBuf)>);

impl Profiles {
    /// Parses `SCHEME=DIR`.
    pub(super) fn named(texts: &[String]) -> Result<Self> {
        let mut all = Vec::new();
        for text in texts {
            let Some((scheme, dir)) = text.split_once('=') else {
                bail!("--profiles {text}: SCHEME=DIR is expected, such as 1.2/HDD/1Gbps=DIR");
            };
            let scheme: Scheme = scheme.parse().map_err(anyhow::Error::msg)?;
            all.push((scheme, PathBuf::from(dir)));
        }
        Ok(Self(all))
    }

    /// Adds the profiles of `unfuse impact measure`, which are in directories
    /// CPU/DISK/NETWORK/NUMBER.
    pub(super) fn add_of(&mut self, dir: &Path) -> Result<()> {
        let mut level = vec![(String::new(), dir.to_owned())];
        for _ in 0..4 {
            let mut below = Vec::new();
            for (name, dir) in level {
                let entries = std::fs::read_dir(&dir).into_iter().flatten().flatten();
                below.extend(entries.map(|entry| {
                    let part = entry.file_name().to_string_lossy().into_owned();
                    (format!("{name}/{part}"), entry.path())
                }));
            }
            level = below;
        }
        level.sort();
        for (name, dir) in level {
            let scheme = name
                .trim_start_matches('/')
                .rsplit_once('/')
                .map(|(scheme, _)| scheme);
            if let Some(scheme) = scheme.filter(|_| ProfileDir::is_at(&dir)) {
                self.0
                    .push((scheme.parse().map_err(anyhow::Error::msg)?, dir));
            }
        }
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the operators' times in the profiles, compared with a base. The default base is the
    /// scheme of the first profile.
    pub(super) fn answer(&self, base: Option<Scheme>, answer: &mut Answer) -> Result<()> {
        let base = base.or_else(|| self.0.first().map(|(scheme, _)| scheme.clone()));
        let base = base.context("no profiles")?;
        let mut queries = QueryTimes::default();
        for (scheme, dir) in &self.0 {
            let profile = open(dir)?;
            if profile.waits.is_empty() {
                bail!(
                    "{} has no waits, and how long an operator took needs them (`unfuse doctor` checks this machine)",
                    dir.display()
                );
            }
            queries.add(scheme, profile);
        }
        Ok(answer.queries(queries, &base)?)
    }
}
