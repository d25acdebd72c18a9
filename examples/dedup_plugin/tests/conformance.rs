//! Whether the plugin keeps what plugins promise: the same samples wherever it runs and from any snapshot, and more.
//! `forebay plugins test --checks` lists it all.

use forebay_testkit::conformance::Kit;

#[test]
fn conforms() {
    let lines = "files tests/data/headlines.txt | lines | text_lines";
    Kit::linked(dedup_plugin::register)
        .with(forebay_files::register)
        .with(forebay_json::register)
        .graph(format!("{lines} | dedup text distance=12"))
        // A window that is full at most places, and samples that it fails on.
        .graph(format!("{lines} | dedup text window=3"))
        .graph("files 'tests/data/*' | dedup bytes words=1 on_error=skip")
        .test("conforms");
}
