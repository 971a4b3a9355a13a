//! `unfuse export --push URL`: sends the profile to a server.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use unfuse_format::{ProfileDir, latest_processes};
use unfuse_postprocess::plain::{Form, Plain};
use unfuse_postprocess::{Period, Profile, Selection};

use super::request::{Body, Request, is_pyroscope};
use super::{Export, Format};
use crate::curl::Url;
use crate::follow::{follow, interval};

/// JVMs write every five seconds; one that was killed never says that it has ended.
const SILENT_NS: i64 = 60 * NS_PER_S;
/// Samples are written at most this long after they were taken: samplers keep some seconds of them, and a row begins with its first
/// sample.
const LATEST_NS: i64 = 15 * NS_PER_S;
const NS_PER_S: i64 = 1_000_000_000;

/// Where to send the profile.
#[derive(Debug, Args)]
pub(super) struct Push {
    /// Send it to a server instead of writing it: a collector takes `otlp`, Pyroscope's /ingest `pprof` and `folded`, a Pushgateway
    /// `prometheus`
    #[arg(
        id = "push",
        long = "push",
        value_name = "URL",
        conflicts_with = "output"
    )]
    pub url: Option<String>,
    /// With --push: send again and again, each time what is new, until the application ends
    #[arg(long, value_name = "DURATION", value_parser = interval, requires = "push", conflicts_with_all = ["since", "until"])]
    pub every: Option<Duration>,
    /// With --push: a file of headers to send, one on each line, such as `Authorization: Bearer …`
    #[arg(long, value_name = "FILE", requires = "push")]
    pub headers: Option<PathBuf>,
}

/// Sends what the command line asks for.
pub(super) fn push(export: &Export, url: &str) -> Result<ExitCode> {
    // Not by clap, which repeats a value that it refuses.
    let url: Url = url.parse().map_err(anyhow::Error::msg)?;
    let body = match export.format {
        Format::Otlp => Body::Bytes("application/x-protobuf"),
        Format::Pprof => Body::Form("profile"),
        Format::Folded | Format::Prometheus => Body::Bytes("text/plain"),
        Format::Speedscope | Format::Firefox | Format::Json => {
            bail!(
                "no server takes this format; --push sends `otlp`, `pprof`, `folded` and `prometheus`"
            )
        }
    };
    if is_pyroscope(&url) && !matches!(export.format, Format::Pprof | Format::Folded) {
        bail!("/ingest is Pyroscope's, which takes pprof and folded");
    }
    let headers = export.push.headers.as_deref();
    let request = Request::new(url, body, headers)?;
    match export.push.every {
        None => {
            let (profile, selection) = export.input.open_for(export.format.time())?;
            send(export, &request, &profile, selection)?;
        }
        Some(every) => keep_sending(export, &request, every)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Sends the samples since the last request, or for Prometheus the sums so far. What could not be sent comes with the next
/// request.
fn keep_sending(export: &Export, request: &Request, every: Duration) -> Result<()> {
    let is_sum = matches!(export.format, Format::Prometheus);
    let (mut sent_to, mut has_sent) = (i64::MIN, false);
    follow(&export.input.dir, every, |root, running| {
        let end_ns = if running { written_to(root)? } else { i64::MAX };
        let period = if is_sum {
            Period::ALL
        } else {
            Period {
                start_ns: sent_to,
                end_ns: end_ns.max(sent_to),
            }
        };
        match send_new(export, request, root, period) {
            Ok(true) => (sent_to, has_sent) = (period.end_ns, true),
            Ok(false) if running || has_sent => {}
            Ok(false) => bail!("{}", export.input.why_nothing(root, export.format.time())?),
            Err(error) if running => {
                crate::say!("unfuse: not sent, comes with the next: {error:#}");
            }
            Err(error) => return Err(error),
        }
        Ok(())
    })
}

/// Whether there was something to send; then it was sent.
fn send_new(export: &Export, request: &Request, root: &Path, period: Period) -> Result<bool> {
    let selection = Selection {
        period,
        ..export.input.selection(export.format.time())
    };
    let profile = Profile::open_selected(root, selection)?;
    let is_some = profile.selected(selection).next().is_some();
    if is_some {
        send(export, request, &profile, selection)?;
    }
    Ok(is_some)
}

fn send(export: &Export, request: &Request, profile: &Profile, selection: Selection) -> Result<()> {
    let mut body = Vec::new();
    match export.format {
        Format::Folded | Format::Prometheus => {
            export.write(profile, selection, &mut Plain::new(&mut body, Form::Text))
        }
        _ => export.write(profile, selection, &mut body),
    }?;
    let starts = profile.processes.iter().map(|process| process.start_ns);
    let ends = profile.processes.iter().map(|process| process.end_ns);
    let from = starts.min().unwrap_or(0).max(selection.period.start_ns);
    let until = ends.max().unwrap_or(0).min(selection.period.end_ns);
    let seconds = [from.div_euclid(NS_PER_S), until.div_euclid(NS_PER_S) + 1];
    let format = match export.format {
        Format::Pprof => "pprof",
        _ => "folded",
    };
    request.send(&body, format, seconds)?;
    crate::say!("unfuse: sent {} bytes to {}", body.len(), request.url());
    Ok(())
}

/// All samples before this time have been written, ns since the epoch of the JVMs' clocks. A JVM that has written nothing for a while
/// was killed, and the others do not wait for it.
fn written_to(root: &Path) -> Result<i64> {
    let processes = latest_processes(ProfileDir::open(root)?.read()?.rows);
    let ends = processes.iter().map(|process| process.end_ns);
    let newest = ends.max().unwrap_or(i64::MIN);
    let running = processes.iter().filter(|process| {
        process.ended == Some(false) && newest.saturating_sub(process.end_ns) < SILENT_NS
    });
    let written = running.map(|process| process.end_ns.saturating_sub(LATEST_NS));
    // Those that have ended have written everything.
    Ok(written.min().unwrap_or(newest.saturating_add(1)))
}
