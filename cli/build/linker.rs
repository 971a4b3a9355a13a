//! Linker arguments for every binary.

use std::env;
use std::path::PathBuf;
use std::process::Command;

/// Makes the linker merge equal functions: Parquet and Arrow have many in their
/// generic code. Only lld can do that. rustup's compiler ships lld and uses it unless
/// another linker is chosen; `make dist` chooses zig's, which rejects the argument.
pub fn arguments() -> Vec<&'static str> {
    if env::var_os("RUSTC_LINKER").is_none() && brings_lld() == Some(true) {
        vec!["-Wl,--icf=all"]
    } else {
        Vec::new()
    }
}

/// Whether the compiler ships its own linker for the target.
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
