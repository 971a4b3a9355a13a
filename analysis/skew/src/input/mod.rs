//! Reads the tables.

mod event_log;
mod profile;
mod retries;

pub use event_log::from_event_log;
pub use profile::from_profile;
