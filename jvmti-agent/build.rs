//! Embeds the Spark jar, so that one file is the whole agent.

use std::path::Path;
use std::{env, fs};

fn main() {
    let root = Path::new(&env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("..");
    let jar = root.join("spark-patches/target/unfuse-spark.jar");
    println!("cargo:rerun-if-changed={}", jar.display());
    let out = Path::new(&env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("spark.jar");
    if jar.exists() {
        fs::copy(&jar, &out).expect("copy the jar");
    } else {
        println!(
            "cargo:warning=spark-patches/target/unfuse-spark.jar is missing: this agent profiles any \
             JVM but knows nothing of Spark; run `make build`"
        );
        fs::write(&out, []).expect("write an empty jar");
    }
}
