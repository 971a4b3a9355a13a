//! Figures of the result pages within the documents: README.md, ARCHITECTURE.md and docs/*.md.
//!
//! Within a sentence, `<!--fig PAGE.FIGURE-->…<!--/fig-->` encloses a figure. With ` value`, ` aim` or ` verdict`
//! after its name it encloses only that part. Between lines, `<!--figures PAGE.FIGURE …-->` and `<!--/figures-->`
//! enclose a table of figures with their aims and all other measurements. `unfuse-bench pages --update` fills both; a
//! test fails if they differ from the pages.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use anyhow::{Context, Result};
use regex::{Captures, Regex};

use crate::page::{Figure, Page, aim_and_verdict};

static INLINE: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"(?s)<!--fig ([a-z0-9-]+)\.([a-z0-9_]+)(?: (value|aim|verdict))?-->(.*?)<!--/fig-->")
});
static TABLE: LazyLock<Regex> =
    LazyLock::new(|| regex(r"(?s)<!--figures\s+([a-z0-9_.\s-]+?)-->\n(.*?)<!--/figures-->"));
static CODE: LazyLock<Regex> = LazyLock::new(|| regex(r"`[^`]*`"));
/// A number with a unit of measurement, or with digits after the point.
static NUMBER: LazyLock<Regex> =
    LazyLock::new(|| regex(r"\d+\.\d+|\d+ ?(?:%|ns\b|µs\b|ms\b|s\b|KiB\b|MiB\b|times\b)"));

/// The documents below the root of the repository.
///
/// # Errors
/// If docs/ cannot be read.
pub fn all(root: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = vec![root.join("README.md"), root.join("ARCHITECTURE.md")];
    let docs = root.join("docs");
    let entries = fs::read_dir(&docs).with_context(|| format!("cannot read {}", docs.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|kind| kind == "md") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// A document with the present figures of its pages.
///
/// # Errors
/// If it names a figure that does not exist.
pub fn filled(text: &str, pages: &[Page]) -> Result<String> {
    let mut failed = None;
    let mut keep = |result: Result<String>, before: &str| match result {
        Ok(text) => text,
        Err(error) => {
            failed.get_or_insert(error);
            before.to_owned()
        }
    };
    let text = INLINE.replace_all(text, |found: &Captures<'_>| {
        let filled = inline(found, pages);
        keep(filled, &found[0])
    });
    let text = TABLE.replace_all(&text, |found: &Captures<'_>| {
        let filled = table(&found[1], pages);
        keep(filled, &found[0])
    });
    let text = text.into_owned();
    match failed {
        Some(error) => Err(error),
        None => Ok(text),
    }
}

fn inline(found: &Captures<'_>, pages: &[Page]) -> Result<String> {
    let (page, name) = (&found[1], &found[2]);
    let (_, figure) = figure(pages, page, name)?;
    let part = found.get(3).map(|part| part.as_str());
    let (aim, verdict) = aim_and_verdict(page, figure);
    let text = match part {
        None => figure.to_string(),
        Some("aim") => aim,
        Some("verdict") => verdict,
        Some(_) => figure.clone().exact().to_string(),
    };
    anyhow::ensure!(!text.is_empty(), "{page}.{name} has no aim");
    let part = part.map_or_else(String::new, |part| format!(" {part}"));
    Ok(format!("<!--fig {page}.{name}{part}-->{text}<!--/fig-->"))
}

fn table(names: &str, pages: &[Page]) -> Result<String> {
    let names: Vec<&str> = names.split_whitespace().collect();
    let mut text = format!(
        "<!--figures {}-->\n| figure | measured last | aim | verdict | all other measurements, newest first |\n|---|---|---|---|---|\n",
        names.join(" ")
    );
    for name in names {
        let (page, name) = name
            .rsplit_once('.')
            .with_context(|| format!("{name} is not PAGE.FIGURE"))?;
        let (page, figure) = figure(pages, page, name)?;
        let (aim, verdict) = aim_and_verdict(&page.name, figure);
        let (headline, mut others) = (page.headline(), Vec::new());
        for one in page.measurements.iter().rev() {
            if headline.is_some_and(|headline| !std::ptr::eq(headline, one))
                && let Some(figure) = one.figure(name)
            {
                others.push(format!("{figure} on {}", one.date));
            }
        }
        let others = if others.is_empty() {
            "none".to_owned()
        } else {
            others.join("; ")
        };
        let _ = writeln!(
            text,
            "| [{page}](results/{page}.md): {} | {figure} | {aim} | {verdict} | {others} |",
            figure.what,
            page = page.name
        );
    }
    Ok(text + "<!--/figures-->")
}

fn figure<'a>(pages: &'a [Page], page: &str, name: &str) -> Result<(&'a Page, &'a Figure)> {
    let page = pages
        .iter()
        .find(|one| one.name == page)
        .with_context(|| format!("there is no result page {page}"))?;
    let figure = page
        .figure(name)
        .with_context(|| format!("the page {} has no figure {name}", page.name))?;
    Ok((page, figure))
}

/// Faults of a document: numbers beside a link to a result page that are outside the marks, and
/// program output that is not called an example.
pub fn without_source(text: &str) -> Vec<String> {
    let marked = TABLE.replace_all(text, "");
    let marked = INLINE.replace_all(&marked, "");
    let mut complaints = Vec::new();
    let (mut paragraph, mut before, mut in_code) = (String::new(), String::new(), false);
    for line in marked.lines().chain([""]) {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if in_code {
            if line.starts_with("$ ") && !before.to_lowercase().contains("example") {
                complaints.push(format!("output that is not called an example: {line}"));
            }
            // One sentence before a block covers the whole block.
            before = "example".to_owned();
        }
        let item = line.trim_start().starts_with("* ");
        if line.trim().is_empty() || item || in_code {
            complaints.extend(number_beside_link(&paragraph));
            paragraph.clear();
        }
        if !in_code && !line.trim().is_empty() {
            paragraph += line;
            paragraph.push(' ');
            if !line.trim_start().starts_with("```") {
                before = line.to_owned();
            }
        }
    }
    complaints
}

fn number_beside_link(paragraph: &str) -> Option<String> {
    if !paragraph.contains("(results/") && !paragraph.contains("(docs/results/") {
        return None;
    }
    let plain = CODE.replace_all(paragraph, "");
    let number = NUMBER.find(&plain)?;
    Some(format!(
        "{:?} beside a link to a result page is in no mark: {}",
        number.as_str(),
        plain.chars().take(90).collect::<String>()
    ))
}

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("patterns are constant and tested")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages() -> Vec<Page> {
        let measurement = |date: &str, value: f64| {
            serde_json::json!({
                "date": date, "commit": {"id": "abc", "state": "clean"},
                "machine": {"cpu": "a CPU", "cores": 2, "kernel": "6"}, "command": "unfuse-bench codemap",
                "figures": [{"name": "look_up_100k", "what": "look-up", "value": value, "interval": [value - 1.0, value + 1.0],
                             "unit": "ns", "digits": 0}],
            })
        };
        let page = serde_json::json!({
            "name": "codemap", "measures": [],
            "measurements": [measurement("2026-01-01", 250.0), measurement("2026-01-02", 230.0)],
        });
        vec![serde_json::from_value(page).expect("a page")]
    }

    #[test]
    fn marks_are_filled_with_the_newest_figure() -> Result<()> {
        let text = "A look-up takes <!--fig codemap.look_up_100k-->9 ns<!--/fig-->, <!--fig codemap.look_up_100k value--><!--/fig-->.";
        let expected = "A look-up takes <!--fig codemap.look_up_100k-->230 ns (229 to 231)<!--/fig-->, \
                        <!--fig codemap.look_up_100k value-->230 ns<!--/fig-->.";
        assert_eq!(filled(text, &pages())?, expected);
        assert_eq!(filled(expected, &pages())?, expected);
        Ok(())
    }

    #[test]
    fn tables_hold_all_measurements() -> Result<()> {
        let text = "<!--figures codemap.look_up_100k-->\n<!--/figures-->";
        let table = filled(text, &pages())?;
        assert!(table.contains("| 230 ns (229 to 231) | at most 200 ns (issue 2) | missed | 250 ns (249 to 251) on 2026-01-01 |"), "{table}");
        assert_eq!(filled(&table, &pages())?, table);
        Ok(())
    }

    #[test]
    fn what_does_not_exist_is_an_error() {
        for text in [
            "<!--fig nothing.look_up_100k--><!--/fig-->",
            "<!--fig codemap.nothing--><!--/fig-->",
            "<!--figures codemap-->\n<!--/figures-->",
        ] {
            assert!(filled(text, &pages()).is_err(), "{text}");
        }
    }

    #[test]
    fn figures_without_a_source_are_found() {
        let found = |text: &str| without_source(text).len();
        assert_eq!(found("See [it](results/codemap.md): 1.2 times."), 1);
        assert_eq!(
            found("See [it](results/codemap.md):\n12 % of it.\n\n5 % of that."),
            1
        );
        assert_eq!(
            found("[it](results/codemap.md): <!--fig a.b-->1.2<!--/fig-->, `1.5`"),
            0
        );
        assert_eq!(found("Output:\n\n```\n$ unfuse top\n12 %\n```"), 1);
        assert_eq!(
            found("Example:\n\n```\n$ unfuse top\n12 %\n$ unfuse top\n```"),
            0
        );
    }
}
