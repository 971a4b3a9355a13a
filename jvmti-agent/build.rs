//! Embeds the Spark jar, so that the agent is one file.

#[path = "../cli/build/linker.rs"]
mod linker;
#[path = "../cli/build/make.rs"]
mod make;

fn main() {
    make::embed(
        "spark-patches/target/unfuse-spark.jar",
        "spark.jar",
        "this agent profiles any JVM but knows nothing of Spark",
        "",
    );
    for argument in linker::arguments() {
        println!("cargo:rustc-link-arg-cdylib={argument}");
    }
}
