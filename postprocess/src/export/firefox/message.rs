//! The parts of the processed profile format that unfuse writes. Tables are written as columns.

use serde::Serialize;

/// Version of the format; the Firefox Profiler upgrades older ones when it reads them.
pub(super) const VERSION: u32 = 61;

#[derive(Serialize)]
pub(super) struct File {
    pub(super) meta: Meta,
    pub(super) libs: [(); 0],
    pub(super) pages: [(); 0],
    pub(super) counters: [(); 0],
    pub(super) shared: Shared,
    pub(super) threads: Vec<Thread>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Meta {
    /// Time between two samples, ms.
    pub(super) interval: f64,
    /// The start of all times, ms since the epoch.
    pub(super) start_time: f64,
    pub(super) product: String,
    pub(super) imported_from: &'static str,
    pub(super) process_type: u8,
    pub(super) stackwalk: u8,
    pub(super) oscpu: &'static str,
    /// Version of Gecko's format; a processed profile only passes it on.
    pub(super) version: u32,
    pub(super) preprocessed_profile_version: u32,
    pub(super) symbolicated: bool,
    pub(super) symbolication_not_supported: bool,
    pub(super) uses_only_one_stack_type: bool,
    pub(super) source_code_is_not_on_searchfox: bool,
    pub(super) sample_units: SampleUnits,
    pub(super) categories: Vec<Category>,
    pub(super) marker_schema: [(); 0],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SampleUnits {
    pub(super) time: &'static str,
    pub(super) event_delay: &'static str,
    #[serde(rename = "threadCPUDelta")]
    pub(super) thread_cpu_delta: &'static str,
}

/// Every list of subcategories begins with `Other`.
#[derive(Serialize)]
pub(super) struct Category {
    pub(super) name: String,
    pub(super) color: &'static str,
    pub(super) subcategories: Vec<String>,
}

/// Tables that all threads refer to.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Shared {
    pub(super) string_array: Vec<String>,
    pub(super) sources: Sources,
    pub(super) func_table: Funcs,
    pub(super) frame_table: Frames,
    pub(super) stack_table: Stacks,
    pub(super) resource_table: Resources,
    pub(super) native_symbols: NativeSymbols,
}

#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
pub(super) struct Sources {
    pub(super) length: usize,
    pub(super) id: Vec<Option<usize>>,
    pub(super) filename: Vec<usize>,
    pub(super) start_line: Vec<u32>,
    pub(super) start_column: Vec<u32>,
    #[serde(rename = "sourceMapURL")]
    pub(super) source_map_url: Vec<Option<usize>>,
}

#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
pub(super) struct Funcs {
    pub(super) length: usize,
    pub(super) name: Vec<usize>,
    #[serde(rename = "isJS")]
    pub(super) is_js: Vec<bool>,
    #[serde(rename = "relevantForJS")]
    pub(super) relevant_for_js: Vec<bool>,
    pub(super) resource: Vec<i32>,
    pub(super) source: Vec<Option<usize>>,
    pub(super) line_number: Vec<Option<u32>>,
    pub(super) column_number: Vec<Option<u32>>,
}

#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
pub(super) struct Frames {
    pub(super) length: usize,
    pub(super) address: Vec<i32>,
    pub(super) inline_depth: Vec<u32>,
    pub(super) category: Vec<Option<usize>>,
    pub(super) subcategory: Vec<Option<usize>>,
    pub(super) func: Vec<usize>,
    pub(super) native_symbol: Vec<Option<usize>>,
    #[serde(rename = "innerWindowID")]
    pub(super) inner_window_id: Vec<Option<usize>>,
    pub(super) line: Vec<Option<u32>>,
    pub(super) column: Vec<Option<u32>>,
}

/// A stack is a frame and the stack of its caller.
#[derive(Serialize, Default)]
pub(super) struct Stacks {
    pub(super) length: usize,
    pub(super) prefix: Vec<Option<usize>>,
    pub(super) frame: Vec<usize>,
}

#[derive(Serialize, Default)]
pub(super) struct Resources {
    pub(super) length: usize,
    pub(super) lib: [(); 0],
    pub(super) name: [(); 0],
    pub(super) host: [(); 0],
    pub(super) r#type: [(); 0],
}

#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
pub(super) struct NativeSymbols {
    pub(super) length: usize,
    pub(super) address: [(); 0],
    pub(super) function_size: [(); 0],
    pub(super) lib_index: [(); 0],
    pub(super) name: [(); 0],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Thread {
    pub(super) name: String,
    pub(super) process_name: String,
    pub(super) process_type: &'static str,
    pub(super) process_startup_time: f64,
    pub(super) process_shutdown_time: Option<f64>,
    pub(super) register_time: f64,
    pub(super) unregister_time: f64,
    pub(super) paused_ranges: [(); 0],
    pub(super) is_main_thread: bool,
    pub(super) pid: String,
    pub(super) tid: u32,
    pub(super) samples: Samples,
    pub(super) markers: Markers,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Samples {
    pub(super) length: usize,
    pub(super) weight_type: &'static str,
    /// ms since [`Meta::start_time`], ascending.
    pub(super) time: Vec<f64>,
    pub(super) stack: Vec<Option<usize>>,
    /// CPU time, ms.
    pub(super) weight: Vec<f64>,
    /// CPU time, ns.
    #[serde(rename = "threadCPUDelta")]
    pub(super) thread_cpu_delta: Vec<u64>,
}

#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
pub(super) struct Markers {
    pub(super) length: usize,
    pub(super) category: [(); 0],
    pub(super) data: [(); 0],
    pub(super) start_time: [(); 0],
    pub(super) end_time: [(); 0],
    pub(super) name: [(); 0],
    pub(super) phase: [(); 0],
}
