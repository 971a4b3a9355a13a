//! `--since` and `--until`: the part of a profile's time that a command uses.

use std::ops::RangeInclusive;
use std::path::Path;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use clap::Args;
use unfuse_format::{ProcessRow, ProfileDir, units};
use unfuse_machine as machine;
use unfuse_postprocess::Period;

/// What `--since` and `--until` take, for messages.
const EXPECTED: &str = "a time such as 14:30, 2026-11-25T14:30:05 or 2026-11-25T14:30:05Z is expected, or how long \
     before the end of the profile, such as 5m";

/// A day, s.
const DAY: i64 = 86_400;
const NS_PER_S: i64 = 1_000_000_000;

/// The part of the time that is asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct Times {
    /// Only the time from then on: 14:30, 2026-11-25T14:30, or 5m for the last five minutes of the profile
    #[arg(long, value_name = "TIME")]
    pub since: Option<Moment>,
    /// Only the time before then: 14:35, 2026-11-25T14:35, or 1m for all but the last minute
    #[arg(long, value_name = "TIME")]
    pub until: Option<Moment>,
}

/// A moment of a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Moment {
    /// This long before the end of the profile.
    BeforeEnd(Duration),
    /// A local time of day, at its last occurrence in the profile.
    OfDay(String),
    /// A day and a time, local or with its offset from UTC.
    At(String),
}

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if is_clock(text) {
            return Ok(Self::OfDay(text.to_owned()));
        }
        if let Some((date, time)) = text.split_once(['T', ' ']) {
            let (clock, offset) = match time.find(['Z', '+', '-']) {
                Some(end) => time.split_at(end),
                None => (time, ""),
            };
            let is_valid = is_date(date) && is_clock(clock) && is_offset(offset);
            return if is_valid {
                Ok(Self::At(format!("{date} {time}")))
            } else {
                Err(EXPECTED.to_owned())
            };
        }
        if is_date(text) {
            return Ok(Self::At(format!("{text} 00:00")));
        }
        // A number alone could be meant as an hour.
        match units::parse_duration(text) {
            Ok(duration) if text.ends_with(|c: char| c.is_ascii_alphabetic()) => {
                Ok(Self::BeforeEnd(duration))
            }
            _ => Err(EXPECTED.to_owned()),
        }
    }
}

/// Whether a text has numbers in these ranges, of two digits (a year has four), between separators.
fn is_numbers(text: &str, separator: char, ranges: &[RangeInclusive<u32>]) -> bool {
    let parts: Vec<&str> = text.split(separator).collect();
    parts.len() == ranges.len()
        && parts.iter().zip(ranges).all(|(part, range)| {
            let is_digits = part.bytes().all(|byte| byte.is_ascii_digit());
            is_digits
                && [2, 4].contains(&part.len())
                && part.parse().is_ok_and(|number| range.contains(&number))
        })
}

/// `14:30` or `14:30:05`.
fn is_clock(text: &str) -> bool {
    let ranges = [0..=23, 0..=59, 0..=59];
    is_numbers(text, ':', &ranges) || is_numbers(text, ':', &ranges[..2])
}

/// `2026-11-25`.
fn is_date(text: &str) -> bool {
    is_numbers(text, '-', &[1970..=9999, 1..=12, 1..=31])
}

/// Nothing, `Z`, `+01:00` or `-0530`.
fn is_offset(text: &str) -> bool {
    let Some(number) = text.strip_prefix(['+', '-']) else {
        return text.is_empty() || text == "Z";
    };
    let is_four = number.len() == 4 && number.bytes().all(|byte| byte.is_ascii_digit());
    is_four || is_clock(number)
}

impl Moment {
    /// This moment in ns since the epoch, in a profile that ended at `end_ns`.
    fn resolve(&self, end_ns: i64) -> Result<i64> {
        let end = end_ns.div_euclid(NS_PER_S);
        let moment = |text: &str| {
            machine::moment(text).with_context(|| format!("there is no local time {text}"))
        };
        let seconds = match self {
            Self::BeforeEnd(duration) => {
                let ns = i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
                return Ok(end_ns.saturating_sub(ns));
            }
            Self::At(text) => moment(text)?,
            Self::OfDay(clock) => {
                let on_day_of = |seconds: i64| -> Result<i64> {
                    let day = machine::local_time_at(seconds, "%Y-%m-%d")
                        .context("the program `date` does not answer")?;
                    moment(&format!("{day} {clock}"))
                };
                let last = on_day_of(end)?;
                if last > end {
                    on_day_of(end - DAY)?
                } else {
                    last
                }
            }
        };
        Ok(seconds.saturating_mul(NS_PER_S))
    }
}

impl Times {
    /// Whether neither option is given.
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }

    /// The requested period of the profile in a local directory.
    ///
    /// # Errors
    /// If a time does not exist, the period is empty, or the profile cannot be read.
    pub fn period(&self, dir: &Path) -> Result<Period> {
        if self.is_all() {
            return Ok(Period::ALL);
        }
        self.period_before(end_of(dir)?)
    }

    fn period_before(&self, end_ns: i64) -> Result<Period> {
        let resolve = |moment: &Option<Moment>, otherwise: i64| match moment {
            Some(moment) => moment.resolve(end_ns),
            None => Ok(otherwise),
        };
        let period = Period {
            start_ns: resolve(&self.since, i64::MIN)?,
            end_ns: resolve(&self.until, i64::MAX)?,
        };
        if period.start_ns >= period.end_ns {
            bail!("--since is not before --until: nothing is between them");
        }
        Ok(period)
    }
}

/// The end of a profile, ns since the epoch: the last end that any process recorded, or the present time
/// if there is none.
fn end_of(dir: &Path) -> Result<i64> {
    let processes = ProfileDir::open(dir)?.read::<ProcessRow>()?.rows;
    let last = processes.iter().map(|process| process.end_ns).max();
    Ok(last.unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        i64::try_from(now.unwrap_or_default().as_nanos()).unwrap_or(i64::MAX)
    }))
}

/// When a profile was recorded, in local time, for messages.
pub fn recorded(processes: &[ProcessRow]) -> String {
    let time = |ns: i64| {
        let text = machine::local_time_at(ns.div_euclid(NS_PER_S), "%Y-%m-%dT%H:%M:%S");
        text.unwrap_or_else(|| "an unknown time".to_owned())
    };
    let start = processes.iter().map(|process| process.start_ns).min();
    let end = processes.iter().map(|process| process.end_ns).max();
    match start.zip(end) {
        Some((start, end)) => format!("from {} to {}", time(start), time(end)),
        None => "at an unknown time".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UTC_NOON: i64 = 1_795_608_000 * NS_PER_S;

    #[test]
    fn moments_are_times_or_durations_before_the_end() {
        let parse = |text: &str| text.parse::<Moment>();
        let before = |seconds| Ok(Moment::BeforeEnd(Duration::from_secs(seconds)));
        assert_eq!(parse("5m"), before(300));
        assert_eq!(parse("1.5h"), before(5400));
        assert_eq!(parse("14:30"), Ok(Moment::OfDay("14:30".to_owned())));
        for (text, at) in [
            ("2026-11-25", "2026-11-25 00:00"),
            ("2026-11-25T14:30", "2026-11-25 14:30"),
            ("2026-11-25 14:30:05", "2026-11-25 14:30:05"),
            ("2026-11-25T14:30:05Z", "2026-11-25 14:30:05Z"),
            ("2026-11-25T14:30+01:00", "2026-11-25 14:30+01:00"),
            ("2026-11-25T14:30-0530", "2026-11-25 14:30-0530"),
        ] {
            assert_eq!(parse(text), Ok(Moment::At(at.to_owned())), "{text}");
        }
        for wrong in [
            "",
            "14",
            "300",
            "14:60",
            "24:00",
            "1:2",
            "yesterday",
            "5 m",
            "-5m",
            "2026-13-01",
            "2026-11-25T",
            "2026-11-25Tnoon",
            "2026-11-25T14:30X",
            "2026-11-25T14:30+1",
        ] {
            assert_eq!(parse(wrong), Err(EXPECTED.to_owned()), "{wrong}");
        }
    }

    #[test]
    fn a_moment_is_found_in_the_profile() {
        let resolve = |text: &str| {
            let moment: Moment = text.parse().unwrap();
            moment.resolve(UTC_NOON).unwrap()
        };
        assert_eq!(resolve("5m"), UTC_NOON - 300 * NS_PER_S);
        assert_eq!(
            resolve("2026-11-25T11:00Z"),
            resolve("2026-11-25T12:00+01:00")
        );
        // A time of day is never after the end and at most a day before it, in every time zone.
        for hour in 0..24 {
            let at = resolve(&format!("{hour:02}:00"));
            assert!(at <= UTC_NOON && at > UTC_NOON - 26 * 3600 * NS_PER_S);
        }
    }

    #[test]
    fn a_period_has_a_beginning_before_its_end() {
        let times = |since: Option<&str>, until: Option<&str>| Times {
            since: since.map(|text| text.parse().unwrap()),
            until: until.map(|text| text.parse().unwrap()),
        };
        assert!(times(None, None).is_all());
        let period = times(Some("5m"), Some("1m"))
            .period_before(UTC_NOON)
            .unwrap();
        assert_eq!(period.end_ns - period.start_ns, 240 * NS_PER_S);
        let refused = times(Some("1m"), Some("5m")).period_before(UTC_NOON);
        assert!(refused.unwrap_err().to_string().contains("not before"));
        let open = times(None, Some("1m")).period_before(UTC_NOON).unwrap();
        assert_eq!(open.start_ns, i64::MIN);
    }
}
