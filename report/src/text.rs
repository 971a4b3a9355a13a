//! Texts that fit into a line.

pub use unfuse_postprocess::plain::shorten;

/// Up to twenty values, separated by commas; `none` without values.
pub fn list<T: ToString>(values: &[T]) -> String {
    if values.is_empty() {
        return "none".to_owned();
    }
    let shown: Vec<String> = values.iter().take(20).map(ToString::to_string).collect();
    let more = if values.len() > 20 { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
}
