//! Texts that fit into a line.

use unfuse_postprocess::plain;

/// In one line of characters that a terminal shows and does not obey, at most so many.
pub fn shorten(text: &str, room: usize) -> String {
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let one_line = plain::line(&one_line).into_owned();
    if one_line.chars().count() <= room {
        return one_line;
    }
    one_line.chars().take(room - 1).collect::<String>() + "…"
}

/// Up to twenty values, separated by commas; `none` for none.
pub fn list<T: ToString>(values: &[T]) -> String {
    if values.is_empty() {
        return "none".to_owned();
    }
    let shown: Vec<String> = values.iter().take(20).map(ToString::to_string).collect();
    let more = if values.len() > 20 { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
}
