//! End-to-end tests that hold while others run beside them: they compare CPU times, texts and counts, never wall times.

mod attach;
mod bad_input;
mod check;
mod cluster;
mod continuous;
mod directories;
mod event_logs;
mod formats;
mod frames;
mod java;
mod notebook;
mod pause;
mod plans;
mod planted_links;
mod plugin;
mod pod;
mod push;
mod recipes;
mod records;
mod scarcity;
mod sizing;
mod spark;
mod spark_ui;
mod survival;
mod why;
mod yarn;
