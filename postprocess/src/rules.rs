//! Reads the rules that are data: the files in `rules/`, which are part of the program.

use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Parses the rules of a file.
pub(crate) fn load<T: DeserializeOwned>(text: &str) -> T {
    toml::from_str(text).expect("the rules are part of the program, and tests read each file")
}

/// A rule for classes whose names begin with, or contain, a text.
#[derive(Deserialize)]
#[cfg_attr(test, serde(deny_unknown_fields))]
pub(crate) struct ClassRule {
    pub(crate) class: String,
    /// A frame to which the rule applies, or its part after `class`.
    #[cfg(test)]
    pub(crate) example: String,
}

/// A frame of an example: `class.method`, or a native function without a class.
#[cfg(test)]
pub(crate) fn frame(text: &str) -> std::sync::Arc<unfuse_format::Frame> {
    let (class, method) = text.rsplit_once('.').unwrap_or(("", text));
    std::sync::Arc::new(unfuse_format::Frame {
        class: class.to_owned(),
        method: method.to_owned(),
        ..unfuse_format::Frame::default()
    })
}
