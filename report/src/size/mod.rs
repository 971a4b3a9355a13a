//! How long a job takes on another cluster, and which cluster to take: the answers of `unfuse size` as data
//! ([`FitAnswer`], [`PredictionAnswer`], [`Answer`], [`Curve`]), as text ([`render_fit`] and the others) and as a plot
//! ([`draw_curve`]).

mod answer;
mod fit;
mod job;
mod plot;
mod text;

pub use answer::{Answer, Curve, PredictionAnswer, PricedOffer};
pub use fit::{FitAnswer, Fits, keep_application};
pub use job::Job;
pub use plot::draw_curve;
pub use text::{render_curve, render_fit, render_offer, render_prediction};
