//! The messages of `perftools.profiles` (profile.proto of google/pprof), without the fields that unfuse never sets. All
//! strings are indices into the string table, whose first entry is empty.

use prost::Message;

/// A profile.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Profile {
    /// Names and units of the values of each sample.
    #[prost(message, repeated, tag = "1")]
    pub(super) sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    pub(super) sample: Vec<Sample>,
    #[prost(message, repeated, tag = "4")]
    pub(super) location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    pub(super) function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    pub(super) string_table: Vec<String>,
    /// Start of profiling, ns since the epoch.
    #[prost(int64, tag = "9")]
    pub(super) time_nanos: i64,
    #[prost(int64, tag = "10")]
    pub(super) duration_nanos: i64,
    #[prost(message, optional, tag = "11")]
    pub(super) period_type: Option<ValueType>,
    /// Interval between two samples, in the unit of `period_type`.
    #[prost(int64, tag = "12")]
    pub(super) period: i64,
    /// The name of the sample type that is shown first.
    #[prost(int64, tag = "14")]
    pub(super) default_sample_type: i64,
}

/// Name and unit of a value.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct ValueType {
    #[prost(int64, tag = "1")]
    pub(super) r#type: i64,
    #[prost(int64, tag = "2")]
    pub(super) unit: i64,
}

/// Samples of one stack and one set of labels.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Sample {
    /// Leaf first.
    #[prost(uint64, repeated, tag = "1")]
    pub(super) location_id: Vec<u64>,
    /// A value for each of [`Profile::sample_type`].
    #[prost(int64, repeated, tag = "2")]
    pub(super) value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    pub(super) label: Vec<Label>,
}

/// A key and its text.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Label {
    #[prost(int64, tag = "1")]
    pub(super) key: i64,
    #[prost(int64, tag = "2")]
    pub(super) str: i64,
}

/// A place in code.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Location {
    /// Not 0.
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(message, repeated, tag = "4")]
    pub(super) line: Vec<Line>,
}

/// A line of a function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Message)]
pub(super) struct Line {
    #[prost(uint64, tag = "1")]
    pub(super) function_id: u64,
    /// 0 where unknown.
    #[prost(int64, tag = "2")]
    pub(super) line: i64,
}

/// A function. It has no `system_name`: pprof treats an equal one as mangled, and removes everything in parentheses.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Function {
    /// Not 0.
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(int64, tag = "2")]
    pub(super) name: i64,
    #[prost(int64, tag = "4")]
    pub(super) filename: i64,
}
