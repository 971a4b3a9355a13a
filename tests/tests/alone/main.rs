//! End-to-end tests that measure waiting, contention or running times: nothing else may run beside them.

mod blame;
mod impact;
mod waits;
