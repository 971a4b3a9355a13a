//! What the agent knows about the processor. There is one module for each, with the same items; the tests of both run on
//! either.

#[cfg(any(test, target_arch = "aarch64"))]
#[cfg_attr(all(test, not(target_arch = "aarch64")), allow(dead_code))]
mod aarch64;
#[cfg(any(test, target_arch = "x86_64"))]
#[cfg_attr(all(test, not(target_arch = "x86_64")), allow(dead_code))]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64::*;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::*;

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("unfuse knows the calls of x86-64 and aarch64 only");
