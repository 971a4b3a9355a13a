//! Files that make builds and build scripts embed.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// Copies a file of the project to the build script's directory. `file` is its path from the root. If the file is missing
/// and make started cargo, make builds it now, while cargo compiles other crates.
///
/// Without the file, the build prints the warning `missing` and embeds the text `otherwise` instead.
pub fn embed(file: &str, name: &str, missing: &str, otherwise: &str) {
    let manifest = env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let root = Path::new(&manifest).join("..");
    let path = root.join(file);
    println!("cargo:rerun-if-changed={}", path.display());
    if !path.exists() && env::var_os("UNFUSE_MAKE_PARTS").is_some() {
        let made = Command::new("make")
            .args(["--no-print-directory", file])
            .current_dir(&root)
            // Variables that an outer make sets for its own child processes.
            .env_remove("MAKEFLAGS")
            .env_remove("MFLAGS")
            .env_remove("MAKELEVEL")
            .status()
            .expect("make runs");
        assert!(made.success(), "make {file} failed");
    }
    let out = Path::new(&env::var_os("OUT_DIR").expect("cargo sets it")).join(name);
    if path.exists() {
        fs::copy(&path, &out).expect("copy the file");
    } else {
        println!("cargo:warning={file} is missing: {missing}; run `make build`");
        fs::write(&out, otherwise).expect("write a substitute");
    }
}
