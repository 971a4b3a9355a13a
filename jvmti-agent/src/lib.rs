//! `libunfuse.so`: what runs inside the profiled JVM.
//!
//! ```text
//! java -agentpath:/path/libunfuse.so=dir=/tmp/profile,rate=200 …
//! ```
//!
//! `unfuse record` loads it into a JVM that runs already, and makes it leave again.
//!
//! It writes the code map from JIT events, names the threads to profile, lets the jar it carries patch
//! Spark's classes at load, and passes events on. Everything else happens in other processes. Each
//! callback from the JVM is a door of its own: it catches panics, takes no lock the JVM could wait
//! for, and on any failure leaves the JVM to run on.

mod agent;
mod attach;
mod calls;
mod classes;
mod code_blobs;
mod code_events;
mod event_queue;
mod events;
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
mod properties;
mod recompile;
mod spark_jar;
mod threads;
