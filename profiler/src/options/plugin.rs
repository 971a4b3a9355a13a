//! What an agent cannot do that Spark's plugin loads into a JVM that runs already.

use super::{Options, Regions, Tab};
use crate::config::SampleSource;

/// A value of an option that needs an agent with which the JVM has started.
pub struct PluginLimit {
    /// The option and the value.
    pub value: &'static str,
    /// Why it needs that, for documentation.
    pub why: &'static str,
    /// What holds instead, for the message about that.
    pub(super) instead: &'static str,
    /// Puts another value in its place; whether it was there.
    pub(super) replace: fn(&mut Options) -> bool,
}

/// All of them.
pub const PLUGIN_LIMITS: &[PluginLimit] = &[
    PluginLimit {
        value: "regions=exact",
        why: "the compilers read the option when the JVM starts",
        instead: "using regions=plain",
        replace: |options| replace(&mut options.regions, Regions::Exact),
    },
    PluginLimit {
        value: "source=timer",
        why: "CPU timers need frame pointers, which the JVM has from its start or not at all",
        instead: "using source=auto",
        replace: |options| replace(&mut options.config.source, SampleSource::Timer),
    },
    PluginLimit {
        value: "ui=only",
        why: "a History Server has no plugins",
        instead: "using ui=on",
        replace: |options| replace(&mut options.tab, Tab::Only),
    },
];

/// Puts the default in the place of this value; whether it was there.
fn replace<T: Default + PartialEq>(option: &mut T, value: T) -> bool {
    let is_there = *option == value;
    if is_there {
        *option = T::default();
    }
    is_there
}
