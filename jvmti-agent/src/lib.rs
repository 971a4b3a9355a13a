//! `libunfuse.so`: the agent inside the profiled JVM.
//!
//! ```text
//! java -agentpath:/path/libunfuse.so=dir=/tmp/profile,rate=200 …
//! ```
//!
//! `unfuse record` attaches it to a running JVM, and detaches it again. Spark's plugin loads it into its own JVM.
//!
//! It writes the code map from JIT events, announces the threads to profile, has its jar patch Spark's classes when
//! they are loaded, and passes events on. Everything else happens in other processes. Every callback from the JVM
//! catches panics, takes no lock that the JVM could wait for, and after any failure lets the JVM run on.

mod agent;
mod arch;
mod attach;
mod calls;
mod classes;
mod code_blobs;
mod code_events;
mod event_queue;
mod events;
mod evictions;
mod history_server;
mod hotspot;
mod inline_records;
mod jni_env;
mod late_calls;
mod library;
mod log;
mod memory;
mod methods;
mod natives;
mod onload;
mod plugin;
mod properties;
mod recompile;
mod spark_jar;
mod threads;
