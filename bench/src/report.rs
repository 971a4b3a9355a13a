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

/// The geometric mean of ratios given as logarithms, with its 95% confidence interval (Student's t).
pub fn geometric(logs: &[f64]) -> String {
    let (mean, half) = mean_and_half_width(logs);
    format!(
        "{:.3} ({:.3} to {:.3})",
        mean.exp(),
        (mean - half).exp(),
        (mean + half).exp()
    )
}

/// Mean of values and half the width of its 95% confidence interval; unbounded for a single value.
pub fn mean_and_half_width(values: &[f64]) -> (f64, f64) {
    /// Student's t for 95%, by degrees of freedom from 1.
    const T: [f64; 15] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131,
    ];
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    if values.len() < 2 {
        return (mean, f64::INFINITY);
    }
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let t = T.get(values.len() - 2).copied().unwrap_or(1.96);
    (mean, t * (squares / (count - 1.0) / count).sqrt())
}
