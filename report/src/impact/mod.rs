//! Which resource limits a job: the answer of `unfuse impact` as data ([`Answer`]) and as text ([`render`]).

mod answer;
mod operators;
mod text;

pub use answer::{Answer, Operator, Query, Workload};
pub use operators::QueryTimes;
pub use text::render;
