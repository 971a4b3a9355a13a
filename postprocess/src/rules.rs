//! Reads the rules that are data: the files in `rules/`, which are part of the program.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use unfuse_format::Frame;

/// Parses the rules of a file.
pub(crate) fn load<T: DeserializeOwned>(text: &str) -> T {
    toml::from_str(text).expect("the rules are part of the program, and tests read each file")
}

/// A rule for frames by their classes: the name begins with a text or contains it.
#[derive(Deserialize)]
#[cfg_attr(test, serde(deny_unknown_fields))]
pub(crate) struct ClassRule {
    pub(crate) class: String,
    /// A frame to which the rule applies, or its part after `class`.
    #[cfg(test)]
    pub(crate) example: String,
}

/// Whether `class.method` of a frame begins so.
pub(crate) fn begins(frame: &Frame, prefix: &str) -> bool {
    let of_method = || prefix.strip_prefix(frame.class.as_str())?.strip_prefix('.');
    frame.class.starts_with(prefix)
        || of_method().is_some_and(|method| frame.method.starts_with(method))
}

/// A frame of an example: `class.method`, or a native function without a class.
#[cfg(test)]
pub(crate) fn frame(text: &str) -> std::sync::Arc<Frame> {
    let (class, method) = text.rsplit_once('.').unwrap_or(("", text));
    std::sync::Arc::new(Frame {
        class: class.to_owned(),
        method: method.to_owned(),
        ..Frame::default()
    })
}
