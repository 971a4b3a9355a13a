//! The commands of `unfuse`, run on profiles: their text, their JSON and their exit codes. One program, so that it is
//! linked once.

mod advise;
mod blame;
mod check;
mod export;
mod fixture;
mod impact;
mod mcp;
mod notice;
mod plurals;
mod push;
mod report;
mod shell;
mod size;
mod skew;
mod times;
mod trino;
mod waits;
mod what_if;
