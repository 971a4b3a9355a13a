//! Embeds the page of `unfuse report`.

#[path = "../cli/build/make.rs"]
mod make;

fn main() {
    make::embed(
        "report/page/dist/page.html",
        "page.html",
        "this unfuse writes reports that no browser can show",
        "<!doctype html><title>unfuse</title><p>This unfuse was built without its page: run `make \
         build`.</p><!--unfuse:first--><!--unfuse:rest-->",
    );
}
