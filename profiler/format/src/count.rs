//! Numbers with a noun.

use std::fmt::Display;

/// A number with its noun, in the singular after 1: the one function for plural forms in messages.
///
/// ```
/// use unfuse_format::counted;
/// assert_eq!(counted(1, "task attempt"), "1 task attempt");
/// assert_eq!(counted(0, "query"), "0 queries");
/// assert_eq!(counted("2.5", "slot"), "2.5 slots");
/// ```
pub fn counted(count: impl Display, one: &str) -> String {
    let count = count.to_string();
    if count == "1" {
        return format!("1 {one}");
    }
    let consonant = |stem: &str| !stem.ends_with(['a', 'e', 'i', 'o', 'u']);
    match one.strip_suffix('y').filter(|stem| consonant(stem)) {
        Some(stem) => format!("{count} {stem}ies"),
        None if one.ends_with(['s', 'x']) || one.ends_with("ch") => format!("{count} {one}es"),
        None => format!("{count} {one}s"),
    }
}
