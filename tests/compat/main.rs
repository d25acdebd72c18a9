//! What was built by others keeps loading: against releases before, with other settings and versions, and beside plugins that bring the same
//! library along.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod bundled;
mod releases;
mod skew;

use std::{
    fs,
    path::{Path, PathBuf},
};

use forebay_core::write_json;
use forebay_loader::{Executor, Loader, Registry, Result, Sample, Search, graph::Catalog as _};
use forebay_tests::{beside, line, lock_file, plugin_file, write};

/// The plugin of pipes that every host has.
const PIPES: &str = "forebay-pipes";

/// The manifest of a plugin's crate.
fn manifest(name: &str, edition: &str, core: &str) -> String {
    format!(
        "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"{edition}\"\nlicense = \"MIT\"\n\n\
         [lib]\ncrate-type = [\"cdylib\"]\n\n[dependencies]\nforebay-core = {core}\n"
    )
}

/// Makes a crate by itself on our own sources, with these files; gives its folder.
fn crate_of_ours(name: &str, edition: &str, more: &str, files: &[(&str, &str)]) -> PathBuf {
    let folder = beside("apart").join("sources").join(name);
    let core = fs::canonicalize(forebay_tests::root()).unwrap().join("core");
    let manifest = manifest(name, edition, &format!("{{ path = {core:?} }}"));
    write(&folder.join("Cargo.toml"), format!("{manifest}\n{more}\n[workspace]\n").as_bytes());
    for (path, text) in files {
        write(&folder.join(path), text.as_bytes());
    }
    if !folder.join("Cargo.lock").exists() {
        fs::copy(lock_file(), folder.join("Cargo.lock")).unwrap();
    }
    folder
}

/// A sample in a line, as `host.rs` prints it.
fn told(sample: &Sample) -> String {
    let mut line = format!("{} {}", sample.uid(), sample.key()).into_bytes();
    for (name, value) in sample.fields() {
        line.extend(format!(" {}=", name.as_str()).into_bytes());
        write_json(value, &mut line).unwrap();
    }
    String::from_utf8(line).unwrap()
}

/// What a plugin of `plugin.rs` gives in this host by source, stream and decoder, saved and restored after six samples.
fn given(file: &Path) -> Vec<String> {
    let registry = Registry::new(Search::nowhere().first(plugin_file(PIPES)).first(file)).unwrap();
    let loader = || {
        let builder = Loader::builder(line("ticks 12 | sums | decode")).executor(Executor::Threads(2));
        builder
            .build(&registry)
            .unwrap_or_else(|error| panic!("{error}\nwhat may change: core/abi/README.md"))
    };
    // How long a chain is, plugins of 1.0 are not asked.
    assert_eq!(loader().len().unwrap(), None, "{}", file.display());
    let ticks = Loader::builder(line("ticks 12 | batch 5")).build(&registry).unwrap();
    assert_eq!(ticks.len().unwrap(), Some(3), "{}", file.display());
    let known = registry.pipe("evens").is_some();
    let evens =
        known.then(|| Loader::builder(line("ticks 12 | evens | batch 5")).build(&registry).unwrap().len());
    let since = registry.plugins().iter().any(|of| of.manifest().name != PIPES && of.manifest().abi.1 >= 1);
    assert_eq!(evens.transpose().unwrap().flatten(), since.then_some(2), "{}", file.display());
    let mut lines = Vec::new();
    let (mut first, mut second) = (loader(), loader());
    let mut epoch = first.epoch(0);
    lines.extend(epoch.by_ref().take(6).map(|sample| told(&sample.unwrap())));
    let snapshot = epoch.snapshot().unwrap();
    drop(epoch);
    let rest = second.resume(&snapshot).unwrap().collect::<Result<Vec<_>>>().unwrap();
    lines.extend(rest.iter().map(told));
    for loader in [first, second] {
        loader.finish().unwrap();
    }
    lines
}

/// What it gives, whenever and however it was built.
fn expected() -> Vec<String> {
    let lines = [
        r#"0 ticks#0 value=0 it.counted={"count":0,"backwards":"","upper":[],"parts":["0 bytes",""]} sum=0"#,
        r#"1 ticks#1 value=1 it.counted={"count":1,"backwards":"YQ==","upper":[65],"parts":["1 bytes","YQ=="]} sum=1"#,
        r#"2 ticks#2 value=2 it.counted={"count":2,"backwards":"YmE=","upper":[65,66],"parts":["2 bytes","YWI="]} sum=3"#,
        r#"3 ticks#3 value=3 it.counted={"count":3,"backwards":"Y2Jh","upper":[65,66,67],"parts":["3 bytes","YWJj"]} sum=6"#,
        r#"4 ticks#4 value=4 it.counted={"count":4,"backwards":"ZGNiYQ==","upper":[65,66,67,68],"parts":["4 bytes","YWJjZA=="]} sum=10"#,
        r#"5 ticks#5 value=5 it.counted={"count":5,"backwards":"ZWRjYmE=","upper":[65,66,67,68,69],"parts":["5 bytes","YWJjZGU="]} sum=15"#,
        r#"6 ticks#6 value=6 it.counted={"count":6,"backwards":"ZmVkY2Jh","upper":[65,66,67,68,69,70],"parts":["6 bytes","YWJjZGVm"]} sum=21"#,
        r#"7 ticks#7 value=7 it.counted={"count":0,"backwards":"","upper":[],"parts":["0 bytes",""]} sum=28"#,
        r#"8 ticks#8 value=8 it.counted={"count":1,"backwards":"YQ==","upper":[65],"parts":["1 bytes","YQ=="]} sum=36"#,
        r#"9 ticks#9 value=9 it.counted={"count":2,"backwards":"YmE=","upper":[65,66],"parts":["2 bytes","YWI="]} sum=45"#,
        r#"10 ticks#10 value=10 it.counted={"count":3,"backwards":"Y2Jh","upper":[65,66,67],"parts":["3 bytes","YWJj"]} sum=55"#,
        r#"11 ticks#11 value=11 it.counted={"count":4,"backwards":"ZGNiYQ==","upper":[65,66,67,68],"parts":["4 bytes","YWJjZA=="]} sum=66"#,
    ];
    lines.map(str::to_owned).to_vec()
}
