//! The part of the time that `unfuse blame` answers for.

use std::path::Path;

use anyhow::{Result, bail};
use unfuse_contention::Span;
use unfuse_report::blame::Window;

use super::Blame;
use super::input::is_csv;
use crate::when::Moment;

impl Blame {
    /// The part of the time that is asked for. Also its span, ns since the epoch, if the profile is not needed to know it.
    pub(super) fn window(&self, root: &Path) -> Result<(Option<Window>, Option<Span>)> {
        if self.times.is_all() {
            return Ok((self.window, None));
        }
        if is_csv(root) {
            return Ok((Some(self.window_of_csv(root)?), None));
        }
        let period = self.times.period(root)?;
        let window = Window::between(
            self.times.since.is_some().then_some(period.start_ns),
            self.times.until.is_some().then_some(period.end_ns),
        );
        let span = Span {
            start: period.start_ns,
            end: period.end_ns,
        };
        Ok((Some(window), Some(span)))
    }

    /// Times in CSV files have no fixed origin, so a time of day is refused.
    fn window_of_csv(&self, root: &Path) -> Result<Window> {
        let seconds = |moment: &Option<Moment>| match moment {
            None => Ok(None),
            Some(Moment::BeforeEnd(duration)) => Ok(Some(duration.as_secs_f64())),
            Some(Moment::OfDay(text) | Moment::At(text)) => bail!(
                "{}: CSV files have no time of day; instead of {text} give how long before their end, such as 5m",
                root.display()
            ),
        };
        Ok(Window::before_end(
            seconds(&self.times.since)?,
            seconds(&self.times.until)?,
        ))
    }
}
