//! End-to-end tests that measure waiting, contention or running times: no other test may run meanwhile.

mod blame;
mod impact;
mod locks;
mod prove;
mod switches;
mod waits;
