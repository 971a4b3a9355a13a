//! A plot of cost against time, as SVG.

use plotters::prelude::*;

use super::answer::{Curve, PricedOffer};
use crate::ReportError;

const COLOUR: RGBColor = RGBColor(0x1f, 0x77, 0xb4);

/// Draws cost against time, as SVG: the clusters of a curve, each with its interval.
///
/// # Errors
/// If the plot cannot be drawn.
pub fn draw_curve(curve: &Curve) -> Result<String, ReportError> {
    let mut svg = String::new();
    draw(&mut svg, curve)
        .map_err(|error| ReportError::Refused(format!("the curve cannot be drawn: {error}")))?;
    Ok(svg)
}

fn draw(svg: &mut String, curve: &Curve) -> Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::with_string(svg, (900, 520)).into_drawing_area();
    root.fill(&WHITE)?;
    let offers = &curve.offers;
    let right = offers.iter().map(|priced| priced.high).fold(0.0, f64::max) * 1.05;
    let top = offers
        .iter()
        .map(|priced| priced.offer.cost)
        .fold(0.0, f64::max)
        * 1.15;
    let mut chart = ChartBuilder::on(&root)
        .caption(&curve.application, ("sans-serif", 16))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(70)
        .build_cartesian_2d(0.0..right.max(1e-9), 0.0..top.max(1e-9))?;
    chart
        .configure_mesh()
        .x_desc("completion time, s (line: 95 of 100 runs)")
        .y_desc(format!("cost of a run, {}", curve.currency))
        .light_line_style(TRANSPARENT)
        .label_style(("sans-serif", 12))
        .draw()?;
    let position = |priced: &PricedOffer| (priced.offer.seconds, priced.offer.cost);
    chart.draw_series(offers.iter().map(|priced| {
        let cost = priced.offer.cost;
        PathElement::new(
            vec![(priced.low, cost), (priced.high, cost)],
            BLACK.mix(0.3),
        )
    }))?;
    chart.draw_series([PathElement::new(
        offers.iter().map(position).collect::<Vec<_>>(),
        COLOUR.stroke_width(2),
    )])?;
    chart.draw_series(
        offers
            .iter()
            .map(|priced| Circle::new(position(priced), 3, COLOUR.filled())),
    )?;
    // Names of neighbouring clusters would overlap; some names are enough to read the curve.
    let step = offers.len().div_ceil(12).max(1);
    chart.draw_series(offers.iter().step_by(step).map(|priced| {
        let name = format!("  {}", priced.offer.cluster);
        Text::new(name, position(priced), ("sans-serif", 11).into_font())
    }))?;
    root.present()?;
    Ok(())
}
