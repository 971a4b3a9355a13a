//! Flame graphs, drawn by inferno.

use std::io::{self, Write};

use inferno::flamegraph::color::{BasicPalette, Palette};
use inferno::flamegraph::{self, Options};

/// Longest name drawn; operators can print hundreds of columns.
const LONGEST: usize = 160;

/// Writes an interactive SVG of folded stacks.
///
/// # Errors
/// Those of `out`, and [`io::ErrorKind::InvalidData`] where there is no stack to draw.
pub fn flame_graph(
    folded: &[(String, u64)],
    title: &str,
    subtitle: Option<&str>,
    unit: &str,
    out: impl Write,
) -> io::Result<()> {
    if folded.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "no samples to draw",
        ));
    }
    let mut options = Options::default();
    options.title = title.to_owned();
    options.subtitle = subtitle.map(|text| shorten(text, LONGEST));
    options.count_name = unit.to_owned();
    options.name_type = "Frame:".to_owned();
    options.colors = Palette::Basic(BasicPalette::Orange);
    // The same operator has the same colour in every graph.
    options.hash = true;
    options.min_width = 0.05;
    options.image_width = Some(1400);
    let lines: Vec<String> = folded
        .iter()
        .map(|(stack, samples)| {
            let frames: Vec<String> = stack
                .split(';')
                .map(|frame| shorten(frame, LONGEST))
                .collect();
            format!("{} {samples}", frames.join(";"))
        })
        .collect();
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), out)
        .map_err(io::Error::other)
}

/// Cuts the middle out of a long text.
fn shorten(text: &str, most: usize) -> String {
    let characters = text.chars().count();
    if characters <= most {
        return text.to_owned();
    }
    let head: String = text.chars().take(most * 2 / 3).collect();
    let tail: String = text.chars().skip(characters - most / 3).collect();
    format!("{head} … {tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_and_long_ones_cut() {
        let long = format!("Filter (a < b && c > 1) {}", "x".repeat(400));
        let mut svg = Vec::new();
        flame_graph(
            &[(format!("stage 1;{long}"), 5)],
            "t",
            None,
            "samples",
            &mut svg,
        )
        .unwrap();
        let svg = String::from_utf8(svg).unwrap();
        assert!(svg.contains("Filter (a &lt; b &amp;&amp; c &gt; 1)"));
        assert!(svg.contains(" … ") && !svg.contains(&"x".repeat(200)));
    }

    #[test]
    fn nothing_to_draw_is_an_error() {
        assert!(flame_graph(&[], "t", None, "samples", Vec::new()).is_err());
    }
}
