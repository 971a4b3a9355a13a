//! Arguments of the linker, for all that is linked.

use std::env;
use std::path::PathBuf;
use std::process::Command;

/// Equal functions become one: generic code of Parquet and Arrow has many. Only lld can do that, which rustup's compiler
/// brings along and uses where no other linker was chosen (`make dist` chooses zig's, which refuses the argument).
pub fn arguments() -> Vec<&'static str> {
    if env::var_os("RUSTC_LINKER").is_none() && brings_lld() == Some(true) {
        vec!["-Wl,--icf=all"]
    } else {
        Vec::new()
    }
}

/// Whether the compiler has a linker of its own for the target.
fn brings_lld() -> Option<bool> {
    let compiler = env::var_os("RUSTC")?;
    let output = Command::new(compiler)
        .args(["--print", "sysroot"])
        .output()
        .ok()?;
    let sysroot = String::from_utf8(output.stdout).ok()?;
    let own = PathBuf::from(sysroot.trim())
        .join("lib/rustlib")
        .join(env::var_os("TARGET")?)
        .join("bin/gcc-ld/ld.lld");
    Some(own.exists())
}
