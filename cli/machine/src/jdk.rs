//! The release of a JDK, from its files.

use std::fs;
use std::path::Path;

/// The feature release of the JDK in a directory, such
/// as 25; `None` if its file `release` does not name it.
pub fn java_release(home: &Path) -> Option<u32> {
    let text = fs::read_to_string(home.join("release")).ok()?;
    let version = text
        .lines()
        .find_map(|line| line.strip_prefix("JAVA_VERSION="))?;
    version.trim_matches('"').split('.').next()?.parse().ok()
}
