//! A third party's plugin: built outside of the workspace, dropped into a folder, found and used.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;

use forebay_loader::{ErrorKind, Loader, Registry, Result, Sample, Search};
use forebay_tests::{Cargo, copy, line, lock_file, plugin_file, root, write};

fn registry(folder: &std::path::Path) -> Registry {
    let search = Search::nowhere()
        .first(plugin_file("forebay-rogue"))
        .first(plugin_file("forebay-pipes"))
        .first(folder);
    Registry::new(search).unwrap()
}

fn decode(registry: &Registry, payload: &str) -> Result<Sample> {
    let graph = line(&format!("rogue_source count=1 payload='{payload}' | rename 'rogue=a.hex' | decode"));
    Loader::builder(graph).build(registry)?.epoch(0).next().unwrap()
}

#[test]
fn a_plugin_from_outside_is_found_checked_and_used() {
    let source = root().join("examples/hello_plugin");
    // The versions that are here already; the file is left out of the repository.
    if !source.join("Cargo.lock").exists() {
        write(&source.join("Cargo.lock"), &fs::read(lock_file()).unwrap());
    }
    let built = Cargo::apart(&source).build("libhello_plugin.so");
    let folder = tempfile::tempdir().unwrap();
    let file = copy(&built, folder.path());

    let registry = registry(folder.path());
    let record = registry.plugins().iter().find(|record| record.manifest().name == "hello-plugin").unwrap();
    assert_eq!(record.path(), Some(file.as_path()));
    assert!(!record.is_loaded());
    record.check().unwrap();

    let sample = decode(&registry, "48 65 6C 6c 6f").unwrap();
    assert_eq!(sample.get("a.hex").unwrap().as_bytes().unwrap().as_slice(), b"Hello");
    // Another decoder, of another plugin, is reachable beside it.
    assert_eq!(registry.rank("rogue", b"")[0].decoder, "rogue");
    assert_eq!(registry.rank("hex", b"48")[0].decoder, "hex");

    for (payload, says) in
        [("4x", "found byte 120, expected a digit"), ("486", "odd number"), ("4", "odd number")]
    {
        let error = decode(&registry, payload).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert!(error.message().contains(says), "{error}");
        assert_eq!((error.get("pipe"), error.get("field")), (Some("decode"), Some("a.hex")), "{error}");
    }
}

#[test]
fn the_example_is_as_small_as_it_says() {
    let folder = root().join("examples/hello_plugin");
    assert!(fs::read_to_string(folder.join("src/lib.rs")).unwrap().lines().count() <= 40);
}
