//! Flame graphs, drawn by inferno.

use std::io::{self, Write};

use inferno::flamegraph::color::{BasicPalette, Color, Palette, PaletteMap};
use inferno::flamegraph::{self, Options};

use crate::fold::FoldedStacks;
use crate::operator::OperatorKind;

/// Longest name drawn; operators can print hundreds of columns.
const LONGEST: usize = 160;

/// Writes an interactive SVG of folded stacks. Widths are times; operators have the colour of their kind.
///
/// # Errors
/// If `out` fails, or with [`io::ErrorKind::InvalidData`] if there is no stack to draw.
pub fn flame_graph(
    folded: &FoldedStacks,
    title: &str,
    subtitle: Option<&str>,
    out: impl Write,
) -> io::Result<()> {
    if folded.stacks.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "no samples to draw",
        ));
    }
    let mut colours = PaletteMap::default();
    for (name, kind) in &folded.kinds {
        colours.insert(shorten(name, LONGEST), colour(*kind));
    }
    let mut options = Options::default();
    options.title = title.to_owned();
    options.subtitle = subtitle.map(|text| shorten(text, LONGEST));
    // Widths are whole µs, shown as ms.
    options.count_name = "ms".to_owned();
    options.factor = 0.001;
    options.name_type = "Frame:".to_owned();
    options.colors = Palette::Basic(BasicPalette::Orange);
    options.palette_map = Some(&mut colours);
    // The same frame has the same colour in every graph.
    options.hash = true;
    options.min_width = 0.05;
    options.image_width = Some(1400);
    let lines: Vec<String> = folded
        .stacks
        .iter()
        .map(|(stack, weight)| {
            let frames: Vec<String> = stack
                .split(';')
                .map(|frame| shorten(frame, LONGEST))
                .collect();
            format!("{} {}", frames.join(";"), weight.ns / 1000)
        })
        .collect();
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), out)
        .map_err(io::Error::other)
}

/// A colour light enough for black text, and of this kind only.
fn colour(kind: OperatorKind) -> Color {
    let (r, g, b) = match kind {
        OperatorKind::Scan => (118, 183, 178),
        OperatorKind::Filter => (160, 203, 232),
        OperatorKind::Project => (211, 226, 236),
        OperatorKind::Aggregate => (242, 142, 43),
        OperatorKind::Join => (140, 209, 125),
        OperatorKind::Exchange => (237, 201, 72),
        OperatorKind::Sort => (212, 166, 200),
        OperatorKind::Window => (176, 152, 214),
        OperatorKind::Generate => (205, 175, 155),
        OperatorKind::Python => (107, 155, 219),
        OperatorKind::Write => (225, 120, 122),
        OperatorKind::Other => (200, 196, 192),
    };
    Color { r, g, b }
}

/// Removes the middle of a long text.
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
    use std::collections::BTreeMap;

    use super::*;
    use crate::profile::Weight;

    #[test]
    fn names_are_escaped_and_long_ones_cut() {
        let long = format!("Filter (a < b && c > 1) {}", "x".repeat(400));
        let weight = Weight {
            samples: 1,
            ns: 5_000_000,
            value: 1,
        };
        let folded = FoldedStacks {
            stacks: vec![(format!("stage 1;{long}"), weight)],
            kinds: BTreeMap::from([(long, OperatorKind::Filter)]),
        };
        let mut svg = Vec::new();
        flame_graph(&folded, "t", None, &mut svg).unwrap();
        let svg = String::from_utf8(svg).unwrap();
        assert!(svg.contains("Filter (a &lt; b &amp;&amp; c &gt; 1)"));
        assert!(svg.contains(" … ") && !svg.contains(&"x".repeat(200)));
        assert!(svg.contains("rgb(160,203,232)") && svg.contains("(5 ms, 100.00%)"));
    }

    #[test]
    fn nothing_to_draw_is_an_error() {
        assert!(flame_graph(&FoldedStacks::default(), "t", None, Vec::new()).is_err());
    }
}
