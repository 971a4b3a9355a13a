//! Values that the user supplies for runs: a CSV table of log, iterations and bytes.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use unfuse_files::read_given;

use crate::SizingError;

/// The largest table that is read, bytes.
const LARGEST: u64 = 64 << 20;

/// Iterations and bytes by the file name of the log or profile directory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GivenValues(BTreeMap<String, Values>);

/// Values of one run; missing ones come from its log or profile.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Values {
    pub iterations: Option<f64>,
    pub bytes: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    log: String,
    #[serde(default)]
    iterations: Option<f64>,
    #[serde(default)]
    bytes: Option<f64>,
}

impl GivenValues {
    /// Reads the table.
    ///
    /// # Errors
    /// The row that is invalid.
    pub fn read(path: &Path) -> Result<Self, SizingError> {
        let wrong = |why: String| SizingError::File {
            file: path.display().to_string(),
            why,
        };
        let text = read_given(path, LARGEST).map_err(|error| wrong(error.to_string()))?;
        Self::parse(&text, path)
    }

    /// Parses the table; `path` is for errors.
    ///
    /// # Errors
    /// As [`GivenValues::read`].
    pub fn parse(text: &[u8], path: &Path) -> Result<Self, SizingError> {
        let wrong = |why: String| SizingError::File {
            file: path.display().to_string(),
            why,
        };
        let mut rows = csv::ReaderBuilder::new()
            .comment(Some(b'#'))
            .trim(csv::Trim::All)
            .from_reader(text);
        let mut given = BTreeMap::new();
        for (number, row) in rows.deserialize::<Row>().enumerate() {
            let row = row
                .map_err(|error| wrong(format!("{error}; the columns are log,iterations,bytes")))?;
            for value in [row.iterations, row.bytes].into_iter().flatten() {
                if !(value.is_finite() && value > 0.0) {
                    return Err(wrong(format!(
                        "row {}: {value} is impossible; it must be above zero",
                        number + 1
                    )));
                }
            }
            let Some(name) = file_name(Path::new(&row.log)) else {
                return Err(wrong(format!(
                    "row {}: {:?} names no log",
                    number + 1,
                    row.log
                )));
            };
            let values = Values {
                iterations: row.iterations,
                bytes: row.bytes,
            };
            if given.insert(name, values).is_some() {
                return Err(wrong(format!(
                    "row {}: {} occurs twice",
                    number + 1,
                    row.log
                )));
            }
        }
        Ok(Self(given))
    }

    pub(super) fn values(&self, source: &Path) -> Values {
        let named = file_name(source).and_then(|name| self.0.get(&name));
        named.copied().unwrap_or_default()
    }
}

fn file_name(path: &Path) -> Option<String> {
    Some(path.file_name()?.to_string_lossy().into_owned())
}
