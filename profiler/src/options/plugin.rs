//! The options that an agent does not support if Spark's plugin loads it into a running JVM.

use super::{Options, Regions, Tab};

/// A value of an option that needs an agent that is loaded when the JVM starts.
pub struct PluginLimit {
    /// The option and the value.
    pub value: &'static str,
    /// The reason, for documentation.
    pub why: &'static str,
    /// The value used instead, for the message.
    pub(super) instead: &'static str,
    /// Replaces the value; returns whether it was set.
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
        value: "ui=only",
        why: "a History Server has no plugins",
        instead: "using ui=on",
        replace: |options| replace(&mut options.tab, Tab::Only),
    },
];

/// Replaces this value by the default; returns whether it was set.
fn replace<T: Default + PartialEq>(option: &mut T, value: T) -> bool {
    let is_there = *option == value;
    if is_there {
        *option = T::default();
    }
    is_there
}
