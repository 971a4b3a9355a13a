//! How `unfuse` is linked.

mod linker;

fn main() {
    println!("cargo:rerun-if-changed=build");
    for argument in linker::arguments() {
        println!("cargo:rustc-link-arg-bins={argument}");
    }
}
