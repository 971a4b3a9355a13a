//! Commands on all result pages: list them by age, fill the documents, repeat the measurements.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::documents;
use crate::page::{Page, index, path_of};

/// List the result pages, with the commits that changed what they measure since
#[derive(Debug, Args)]
pub struct Pages {
    /// Makes the pages of their data again, and fills their figures into the documents
    #[arg(long, conflicts_with_all = ["check", "again"])]
    update: bool,
    /// Fails if a page or a figure in the documents differs from the pages' data
    #[arg(long, conflicts_with = "again")]
    check: bool,
    /// Runs the commands of all pages, or of those named, again
    #[arg(long, value_name = "PAGE", num_args = 0..)]
    again: Option<Vec<String>>,
}

impl Pages {
    /// Runs the command on the pages of a directory, which is docs/results of the repository.
    ///
    /// # Errors
    /// If pages cannot be read or, with `--check`, differ; if a measurement fails.
    pub fn run(&self, results: &Path) -> Result<()> {
        let root = results.ancestors().nth(2).unwrap_or(Path::new(""));
        if let Some(names) = &self.again {
            return again(results, names);
        }
        if self.update {
            for (path, text) in rendered(root, results)? {
                if fs::read_to_string(&path).ok().as_deref() != Some(&text) {
                    fs::write(&path, text)
                        .with_context(|| format!("cannot write {}", path.display()))?;
                    println!("written: {}", path.display());
                }
            }
        }
        if self.update || self.check {
            let found = differences(root, results)?;
            if !found.is_empty() {
                bail!("{}", found.join("\n"));
            }
            return Ok(());
        }
        list(root, &Page::read_all(results)?);
        Ok(())
    }
}

/// Every file that is made from the pages' data, with the text that it should have.
fn rendered(root: &Path, results: &Path) -> Result<Vec<(PathBuf, String)>> {
    let pages = Page::read_all(results)?;
    let mut files = vec![(results.join("README.md"), index(&pages))];
    for page in &pages {
        let path = path_of(results, &page.name, "md");
        files.push((path, page.markdown()?));
    }
    for path in documents::all(root)? {
        let text =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let text =
            documents::filled(&text, &pages).with_context(|| format!("in {}", path.display()))?;
        files.push((path, text));
    }
    Ok(files)
}

/// Differences between the files and the pages' data, a line each.
fn differences(root: &Path, results: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for (path, text) in rendered(root, results)? {
        let there = fs::read_to_string(&path).unwrap_or_default();
        if there != text {
            found.push(format!(
                "{} differs from the pages' data; `unfuse-bench pages --update` corrects it",
                path.display()
            ));
        }
        if !path.starts_with(results) {
            let complaints = documents::without_source(&there);
            found.extend(
                complaints
                    .iter()
                    .map(|one| format!("{}: {one}", path.display())),
            );
        }
    }
    for entry in fs::read_dir(results)? {
        let path = entry?.path();
        let page = path.extension().is_some_and(|kind| kind == "md")
            && path.file_stem().is_some_and(|name| name != "README");
        if page && !path.with_extension("json").exists() {
            found.push(format!("{} has no data beside it", path.display()));
        }
    }
    Ok(found)
}

fn list(root: &Path, pages: &[Page]) {
    println!("{:>8}  {:10}  {:8}  page", "commits", "measured", "commit");
    let mut rows: Vec<_> = pages
        .iter()
        .filter_map(|page| {
            let headline = page.headline()?;
            Some((changes(root, page, &headline.commit.id), page, headline))
        })
        .collect();
    rows.sort_by_key(|(changes, ..)| std::cmp::Reverse(changes.unwrap_or(u32::MAX)));
    for (changes, page, headline) in &rows {
        let count = changes.map_or_else(|| "unknown".to_owned(), |count| count.to_string());
        println!(
            "{count:>8}  {:10}  {:8}  {}",
            headline.date, headline.commit.id, page.name
        );
    }
    let old = rows
        .iter()
        .filter(|(changes, ..)| *changes != Some(0))
        .count();
    println!(
        "\n{old} of {} pages are older than the code they measure.",
        rows.len()
    );
}

/// Number of commits since the page's own that changed the
/// measured code; `None` if git does not know it.
fn changes(root: &Path, page: &Page, commit: &str) -> Option<u32> {
    let root = if root.as_os_str().is_empty() {
        Path::new(".")
    } else {
        root
    };
    let output = Command::new("git")
        .arg("-C")
        .arg(root)
        .args(["rev-list", "--count", "--no-merges"])
        .arg(format!("{commit}..HEAD"))
        .arg("--")
        .args(&page.measures)
        .output()
        .ok()?;
    let count = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| count.trim().parse().ok())?
}

/// Runs the commands of pages again. A command that several pages share runs only once.
fn again(results: &Path, names: &[String]) -> Result<()> {
    let pages = Page::read_all(results)?;
    if let Some(unknown) = names
        .iter()
        .find(|name| !pages.iter().any(|page| page.name == **name))
    {
        bail!("there is no page {unknown} in {}", results.display());
    }
    let mut commands: Vec<&str> = Vec::new();
    for page in &pages {
        let command = page.headline().map(|headline| headline.command.as_str());
        if let Some(command) = command
            && (names.is_empty() || names.contains(&page.name))
            && !commands.contains(&command)
        {
            commands.push(command);
        }
    }
    let mut failed = Vec::new();
    for command in commands {
        let words = shlex::split(command).with_context(|| format!("cannot split {command:?}"))?;
        eprintln!("{command}");
        // A command that fails does not stop the others.
        let status = Command::new(std::env::current_exe()?)
            .args(&words[1..])
            .status()?;
        if !status.success() {
            failed.push(command);
        }
    }
    if !failed.is_empty() {
        bail!("not measured again: {}", failed.join("; "));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_and_documents_are_made_of_the_data() -> Result<()> {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
        let found = differences(root, &root.join("docs/results"))?;
        assert!(found.is_empty(), "{}", found.join("\n"));
        Ok(())
    }
}
