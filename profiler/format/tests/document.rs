//! docs/profile-format.md says what the row types declare.

use std::fs;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/profile-format.md");
const BEGIN: &str = "<!--tables-->\n";
const END: &str = "<!--/tables-->";

#[test]
fn the_page_has_every_table_and_column() {
    let page = fs::read_to_string(PAGE).expect("the page");
    let (before, rest) = page.split_once(BEGIN).expect("the begin of the tables");
    let (_, after) = rest.split_once(END).expect("the end of the tables");
    let expected = format!(
        "{before}{BEGIN}{}{END}{after}",
        unfuse_format::describe_tables()
    );
    if page == expected {
        return;
    }
    if std::env::var_os("UNFUSE_UPDATE_DOCS").is_some() {
        fs::write(PAGE, expected).expect("the page is written");
        return;
    }
    panic!(
        "docs/profile-format.md is not what profiler/format/src/tables declares; run \
         UNFUSE_UPDATE_DOCS=1 cargo test --package unfuse-format --test document"
    );
}
