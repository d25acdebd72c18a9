//! Whether the plugin keeps what plugins promise: the same samples wherever it runs and from any snapshot, and more.
//! `forebay plugins test --checks` lists it all.

use forebay_testkit::conformance::Kit;

#[test]
fn conforms() {
    Kit::linked(pcap_plugin::register)
        .with(forebay_files::register)
        .graph("pcap tests/data/ping.pcap")
        .graph("files 'tests/data/*.pcap' | packets interleave=3")
        .test("conforms");
}
