//! Grouped bars with error bars, and curves over time, as SVG.

use std::path::Path;

use anyhow::{Result, anyhow};
use plotters::prelude::*;

/// One bar.
pub struct Bar {
    /// The group. Its bars are drawn next to each other.
    pub group: String,
    /// The series of the bar, which sets its colour.
    pub series: String,
    /// Height.
    pub value: f64,
    /// Half the length of its error bar.
    pub error: f64,
}

const COLOURS: [RGBColor; 4] = [
    RGBColor(76, 120, 168),
    RGBColor(245, 133, 24),
    RGBColor(84, 162, 75),
    RGBColor(178, 121, 162),
];

/// Draws the bars; groups and series in the order of their first bars.
pub fn bars(path: &Path, title: &str, bars: &[Bar]) -> Result<()> {
    draw(path, title, bars).map_err(|e| anyhow!("cannot draw {}: {e}", path.display()))
}

/// The distinct names, in the order of their first occurrence.
fn distinct<'a>(names: impl Iterator<Item = &'a String>) -> Vec<&'a String> {
    let mut known = Vec::new();
    for name in names {
        if !known.contains(&name) {
            known.push(name);
        }
    }
    known
}

/// The value, or 0 if it is not finite.
fn finite(value: f64) -> f64 {
    if value.is_finite() { value } else { 0.0 }
}

/// The upper end of the scale.
fn top(bars: &[Bar]) -> f64 {
    let ends = bars.iter().map(|bar| bar.value + finite(bar.error));
    ends.fold(0.1, f64::max).min(120.0)
}

fn draw(path: &Path, title: &str, bars: &[Bar]) -> Result<(), Box<dyn std::error::Error>> {
    let (groups, series) = (
        distinct(bars.iter().map(|bar| &bar.group)),
        distinct(bars.iter().map(|bar| &bar.series)),
    );
    let top = top(bars);
    let height = 60 + 44 * groups.len() as u32 + 60;
    let root = SVGBackend::new(path, (900, height)).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption(title, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(30)
        .y_label_area_size(280)
        .build_cartesian_2d(0.0..top * 1.05, 0.0..groups.len() as f64)?;
    let label = |place: &f64| {
        // The label is in the middle of a group's bars.
        let index = place.floor() as usize;
        let name = groups
            .len()
            .checked_sub(index + 1)
            .and_then(|index| groups.get(index));
        name.map_or_else(String::new, |name| (*name).clone())
    };
    chart
        .configure_mesh()
        .disable_y_mesh()
        .y_labels(0)
        .x_label_style(("sans-serif", 13))
        .draw()?;
    for index in 0..groups.len() {
        let place = index as f64 + 0.5;
        let (_, y) = chart.backend_coord(&(0.0, place));
        let style = ("sans-serif", 13).into_font().color(&BLACK);
        root.draw(&Text::new(label(&place), (12, y - 7), style))?;
    }
    for (colour, name) in COLOURS.iter().cycle().zip(&series) {
        let index = series.iter().position(|other| other == name).unwrap_or(0) as f64;
        let width = 0.8 / series.len() as f64;
        let own: Vec<&Bar> = bars.iter().filter(|bar| bar.series == **name).collect();
        let low = |bar: &Bar| {
            let group = groups.iter().position(|group| **group == bar.group);
            (groups.len() - 1 - group.unwrap_or(0)) as f64 + 0.9 - width * (index + 1.0)
        };
        chart
            .draw_series(own.iter().map(|bar| {
                Rectangle::new(
                    [
                        (0.0, low(bar)),
                        (bar.value.min(top), low(bar) + width * 0.9),
                    ],
                    colour.filled(),
                )
            }))?
            .label(name.as_str())
            .legend(|(x, y)| Rectangle::new([(x, y - 5), (x + 10, y + 5)], colour.filled()));
        chart.draw_series(own.iter().map(|bar| {
            let y = low(bar) + width * 0.45;
            let error = finite(bar.error);
            PathElement::new(
                vec![
                    ((bar.value - error).max(0.0), y),
                    ((bar.value + error).min(top), y),
                ],
                BLACK.stroke_width(1),
            )
        }))?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .border_style(BLACK)
        .background_style(WHITE.mix(0.8))
        .label_font(("sans-serif", 13))
        .draw()?;
    root.present()?;
    Ok(())
}

/// One curve, in a panel of its own.
pub struct Panel {
    /// The title above it.
    pub title: String,
    /// Points (x, y), sorted by x.
    pub points: Vec<(f64, f64)>,
    /// The ends of a trend line.
    pub trend: Option<[(f64, f64); 2]>,
}

/// Draws the panels, two in a row. `x` is the name of all x axes.
pub fn curves(path: &Path, x: &str, panels: &[Panel]) -> Result<()> {
    draw_curves(path, x, panels).map_err(|e| anyhow!("cannot draw {}: {e}", path.display()))
}

fn draw_curves(path: &Path, x: &str, panels: &[Panel]) -> Result<(), Box<dyn std::error::Error>> {
    let rows = panels.len().div_ceil(2);
    let root = SVGBackend::new(path, (1000, 200 * rows as u32 + 10)).into_drawing_area();
    root.fill(&WHITE)?;
    for (area, panel) in root.split_evenly((rows, 2)).iter().zip(panels) {
        let end = panel.points.last().map_or(1.0, |(x, _)| *x);
        let top = panel.points.iter().map(|(_, y)| *y).fold(0.0, f64::max);
        let top = if top > 0.0 { top * 1.15 } else { 1.0 };
        let mut chart = ChartBuilder::on(area)
            .caption(&panel.title, ("sans-serif", 14))
            .margin(8)
            .x_label_area_size(34)
            .y_label_area_size(60)
            .build_cartesian_2d(0.0..end, 0.0..top)?;
        chart
            .configure_mesh()
            .x_desc(x)
            .x_labels(6)
            .y_labels(5)
            .light_line_style(TRANSPARENT)
            .label_style(("sans-serif", 12))
            .draw()?;
        let mut line = |points: Vec<(f64, f64)>, style: ShapeStyle| {
            chart
                .draw_series([PathElement::new(points, style)])
                .map(drop)
        };
        line(panel.points.clone(), COLOURS[0].stroke_width(1))?;
        if let Some(trend) = panel.trend {
            line(trend.to_vec(), COLOURS[1].stroke_width(2))?;
        }
    }
    root.present()?;
    Ok(())
}
