//! docs/options.md has every option of the agent.

use std::fs;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/options.md");
const BEGIN: &str = "<!--options-->\n";
const END: &str = "<!--/options-->";

#[test]
fn the_page_has_every_option() {
    let page = fs::read_to_string(PAGE).expect("the page");
    let (before, rest) = page.split_once(BEGIN).expect("the begin of the options");
    let (_, after) = rest.split_once(END).expect("the end of the options");
    let options = unfuse_profiler::options::describe_options();
    let expected = format!("{before}{BEGIN}{options}{END}{after}");
    if page == expected {
        return;
    }
    if std::env::var_os("UNFUSE_UPDATE_DOCS").is_some() {
        fs::write(PAGE, expected).expect("the page is written");
        return;
    }
    panic!(
        "docs/options.md is not what profiler/src/options/table.rs declares; run UNFUSE_UPDATE_DOCS=1 cargo test \
         --package unfuse-profiler --test options"
    );
}
