//! The figures of the page.

use std::collections::BTreeMap;

use super::Measured;
use super::differences::Held;
use super::shapes::Work;
use crate::page::{Figure, slug};

/// For each setting, the share of ranges that contain the truth. For each setting and kind of work, the largest part at another
/// operator, and the altered operator's part that is furthest from the added time.
pub(super) fn figures(measured: &BTreeMap<&str, Measured>) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (setting, Measured { variants, same }) in measured {
        let held = variants.values().fold(Held::default(), |sum, one| Held {
            held: sum.held + one.held.held,
            all: sum.all + one.held.all,
        });
        for (name, what, held) in [
            ("held", "ranges that hold the truth", held),
            ("same", "the same query twice: ranges that hold 0", *same),
        ] {
            let (share, [low, high]) = held.share();
            figures.push(
                Figure::new(
                    &slug(&format!("{setting}_{name}")),
                    &format!("regions={setting}: {what}"),
                    100.0 * share,
                    "%",
                    1,
                )
                .within(Some([100.0 * low, 100.0 * high])),
            );
        }
        for work in [Work::Dependent, Work::Independent] {
            let most = variants
                .iter()
                .filter(|(variant, _)| variant.work == work)
                .filter_map(|(variant, differences)| Some((variant, differences.most(variant)?)))
                .max_by(|a, b| a.1.1.0.total_cmp(&b.1.1.0));
            let parts = variants.iter().filter(|(variant, _)| variant.work == work);
            let parts = parts.filter_map(|(variant, differences)| {
                let values = differences.operators.get(variant.operator())?;
                Some((variant, differences.part(values)))
            });
            let furthest =
                parts.max_by(|(_, a), (_, b)| (a.0 - 1.0).abs().total_cmp(&(b.0 - 1.0).abs()));
            if let Some((variant, (share, half))) = furthest {
                figures.push(of_added_time(
                    &format!("{setting}_{}_altered", work.name()),
                    &format!(
                        "regions={setting}: {} work at the operator that was altered, the furthest from 100% ({} of {})",
                        work.name(),
                        variant.place,
                        variant.shape
                    ),
                    (share, half),
                ));
            }
            let Some((variant, (name, (share, half)))) = most else {
                continue;
            };
            figures.push(of_added_time(
                &format!("{setting}_{}", work.name()),
                &format!(
                    "regions={setting}: {} work at an operator that was not altered, the most ({} of {}, at {name})",
                    work.name(),
                    variant.place,
                    variant.shape
                ),
                (share, half),
            ));
        }
    }
    figures
}

/// A figure from a share of the added time and half its interval's width, both as fractions of 1.
fn of_added_time(name: &str, title: &str, (share, half): (f64, f64)) -> Figure {
    Figure::new(&slug(name), title, 100.0 * share, "% of the added time", 1)
        .within(Some([100.0 * (share - half), 100.0 * (share + half)]))
}
