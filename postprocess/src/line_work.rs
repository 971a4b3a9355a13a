//! What a line of code does, in words.

use std::sync::LazyLock;

use regex::Regex;
use serde::Deserialize;

use crate::rules::load;

#[derive(Deserialize)]
struct LineRules {
    rule: Vec<LineRule>,
}

#[derive(Deserialize)]
#[cfg_attr(test, serde(deny_unknown_fields))]
struct LineRule {
    words: String,
    #[serde(default)]
    code: Option<Pattern>,
    #[serde(default)]
    method: Option<Pattern>,
    #[cfg(test)]
    example: Example,
}

/// A line that a rule is for.
#[cfg(test)]
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Example {
    #[serde(default)]
    code: String,
    #[serde(default)]
    method: String,
}

#[derive(Deserialize)]
#[serde(try_from = "String")]
struct Pattern(Regex);

impl TryFrom<String> for Pattern {
    type Error = regex::Error;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Regex::new(&text).map(Self)
    }
}

static RULES: LazyLock<Vec<LineRule>> = LazyLock::new(|| {
    let rules: LineRules = load(include_str!("../rules/lines.toml"));
    rules.rule
});

/// What a line does, as a noun; none where no rule says so. `code` is the text of a line of generated code, or empty; `method` is
/// the method that takes most of the line's time, or empty.
pub fn line_work(code: &str, method: &str) -> Option<&'static str> {
    let fits = |pattern: &Option<Pattern>, text: &str| {
        let pattern = pattern.as_ref();
        pattern.is_none_or(|Pattern(pattern)| pattern.is_match(text))
    };
    let rule = RULES
        .iter()
        .find(|rule| fits(&rule.code, code) && fits(&rule.method, method));
    rule.map(|rule| rule.words.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_is_the_first_that_fits_its_example() {
        for (at, rule) in RULES.iter().enumerate() {
            assert!(
                rule.code.is_some() || rule.method.is_some(),
                "{}",
                rule.words
            );
            let Example { code, method } = &rule.example;
            let words = line_work(code, method).expect("the rule itself fits");
            // By the address: several rules have the same words.
            assert!(
                std::ptr::eq(words, rule.words.as_str()),
                "rule {at}: {}",
                rule.words
            );
        }
    }

    #[test]
    fn other_lines_have_no_words() {
        for (code, method) in [
            ("", ""),
            ("while (localagg_iterator_0.hasNext()) {", ""),
            ("append(project_mutableStateArray_0[1].getRow());", ""),
            ("", "java.util.HashMap.getNode"),
            (
                "UnsafeRow hashAgg_aggBuffer_0 = (UnsafeRow) hashAgg_mapIter_0.getValue();",
                "",
            ),
        ] {
            assert_eq!(line_work(code, method), None, "{code} {method}");
        }
    }
}
