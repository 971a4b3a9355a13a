//! `unfuse export`: the profile for other tools.

mod push;
mod request;

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use unfuse_postprocess::plain::Form;
use unfuse_postprocess::{Order, Profile, Selection, Time, export, folded};

use self::push::Push;
use super::{Depth, Input};
use crate::output::{write_plain_to, write_to};

/// Write the profile in the format of another tool
///
/// Every format has the same stacks: first the stage, then every frame, with an operator as a frame of its own where its
/// code begins.
#[derive(Debug, Args)]
pub struct Export {
    #[command(flatten)]
    input: Input,
    /// The format
    #[arg(long, value_enum)]
    format: Format,
    /// Which frames
    #[arg(long, value_enum, default_value = "full")]
    level: Depth,
    /// The file to write [default: standard output]
    #[arg(short, long, alias = "out", value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    push: Push,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Text lines for flame graph tools: inferno-flamegraph, flamegraph.pl
    Folded,
    /// JSON for speedscope: `npx speedscope FILE`, or drop it on www.speedscope.app
    Speedscope,
    /// Compressed protobuf for `go tool pprof -http=: FILE`, Pyroscope, Parca
    Pprof,
    /// OpenTelemetry profiles (in development) as protobuf, for collectors and their back ends
    Otlp,
    /// JSON for the Firefox Profiler: drop it on profiler.firefox.com
    Firefox,
    /// JSON of unfuse for programs, see `unfuse schema export`
    Json,
    /// CPU time and waits by operator as metrics, for Prometheus' node_exporter or a Pushgateway
    Prometheus,
}

impl Format {
    fn is_binary(self) -> bool {
        matches!(self, Self::Pprof | Self::Otlp)
    }

    fn time(self) -> Time {
        match self {
            Self::Prometheus => Time::Wall,
            _ => Time::Cpu,
        }
    }
}

impl Export {
    /// Writes the file, or sends it.
    pub fn execute(self) -> Result<ExitCode> {
        if let Some(url) = &self.push.url {
            return push::push(&self, url);
        }
        if self.format.is_binary() && self.output.is_none() && io::stdout().is_terminal() {
            bail!("this format is binary: write it to a file with -o FILE");
        }
        let (profile, selection) = self.input.open_for(self.format.time())?;
        let written = |out: &mut dyn Write| Ok(self.write(&profile, selection, out)?);
        let out = self.output.as_deref();
        match self.format {
            Format::Pprof | Format::Otlp => write_to(out, written)?,
            Format::Folded | Format::Prometheus => write_plain_to(out, Form::Text, written)?,
            Format::Speedscope | Format::Firefox | Format::Json => {
                write_plain_to(out, Form::Json, written)?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn write(
        &self,
        profile: &Profile,
        selection: Selection,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let level = self.level.into();
        match self.format {
            Format::Folded => folded(profile, selection, level, Order::Code)
                .stacks
                .iter()
                .try_for_each(|(stack, weight)| writeln!(out, "{stack} {}", weight.value)),
            Format::Speedscope => export::speedscope(profile, selection, level, out),
            Format::Pprof => export::pprof(profile, selection, level, out),
            Format::Otlp => export::otlp(profile, selection, level, out),
            Format::Firefox => export::firefox(profile, selection, level, out),
            Format::Json => export::json(profile, selection, level, out),
            Format::Prometheus => export::prometheus(profile, selection, out),
        }
    }
}
