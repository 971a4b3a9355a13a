//! What a JVM does beside tasks, told by its threads' names.

/// Headings by how the names of HotSpot's threads begin; the kernel keeps fifteen characters of them.
const THREADS: &[(&str, &[&str])] = &[
    (
        "process: JIT compiler",
        &["C1 Compiler", "C2 Compiler", "JVMCI"],
    ),
    (
        "process: garbage collection",
        &[
            "GC ",
            "G1 ",
            "ZWorker",
            "ZDriver",
            "ZDirector",
            "ZUncommitter",
            "XWorker",
            "XDriver",
            "Shenandoah",
            "ParGC",
        ],
    ),
    (
        "process: JVM",
        &[
            "VM ",
            "Signal Dispatch",
            "Reference Handl",
            "Finalizer",
            "Service Thread",
            "Monitor Deflati",
            "Common-Cleaner",
            "Sweeper",
            "Notification T",
        ],
    ),
];

/// The heading for samples of a thread that ran no task.
pub(super) fn heading(thread: &str) -> &'static str {
    THREADS
        .iter()
        .find(|(_, begins)| begins.iter().any(|begin| thread.starts_with(begin)))
        .map_or("outside tasks", |(heading, _)| heading)
}
