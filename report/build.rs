//! Embeds the page of `unfuse report`.

use std::path::Path;
use std::{env, fs};

fn main() {
    let root = env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let page = Path::new(&root).join("page/dist/page.html");
    println!("cargo:rerun-if-changed={}", page.display());
    let out = Path::new(&env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("page.html");
    if page.exists() {
        fs::copy(&page, &out).expect("copy the page");
    } else {
        println!(
            "cargo:warning=report/page/dist/page.html is missing: reports of this unfuse cannot be read; \
             run `make build`"
        );
        let text = "<!doctype html><title>unfuse</title><p>This unfuse was built without its page: run \
                    `make build`.</p><!--unfuse:first--><!--unfuse:rest-->";
        fs::write(&out, text).expect("write an empty page");
    }
}
