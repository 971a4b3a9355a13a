//! A result file: Markdown that says how it was made.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

/// Writes `NAME.md` with the command that makes it again and what it was made on.
pub fn write(results: &Path, name: &str, command: &str, body: &str) -> Result<()> {
    fs::create_dir_all(results)?;
    let path = results.join(format!("{name}.md"));
    let text = format!(
        "# {name}\n\nMade by `{command}` on {}.\n\n{body}",
        machine()
    );
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    print!("{body}");
    println!("written to {}", path.display());
    Ok(())
}

fn machine() -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .unwrap_or(": unknown");
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = Command::new("uname")
        .arg("-r")
        .output()
        .map(|o| o.stdout)
        .unwrap_or_default();
    format!(
        "{cores} cores of {} (Linux {})",
        model.trim_start_matches(['\t', ' ', ':']).trim(),
        String::from_utf8_lossy(&kernel).trim()
    )
}

/// Median of a list.
pub fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => f64::midpoint(values[n / 2 - 1], values[n / 2]),
    }
}
