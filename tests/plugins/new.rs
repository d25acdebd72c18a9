//! Crates that `forebay plugins new` makes: each builds outside of the workspace, and is a plugin that keeps what plugins promise.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{fs, path::Path};

use forebay_tests::{
    Cargo,
    command::{forebay, json},
    lock_file, root,
};
use tempfile::TempDir;

/// A new crate with this name, of this kind, with the versions of the workspace, which are here already.
fn new(folder: &Path, name: &str, kind: &str) {
    let path = folder.join(name);
    let output = forebay(&[], &["plugins", "new", name, "--kind", kind, "--path", path.to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
    fs::copy(lock_file(), path.join("Cargo.lock")).unwrap();
}

#[test]
fn every_kind_is_built_outside_and_passes_every_check() {
    let folder = TempDir::new().unwrap();
    for (kind, args) in [
        ("decoder", ["--data", "tests/data"]),
        ("source", ["--seconds", "60"]),
        ("pipe", ["--graph", "range 40 | my_pipe value by=3"]),
        ("container", ["--data", "tests/data"]),
        ("store", ["--data", "my-store://tests/data/hello.txt"]),
    ] {
        let name = format!("my-{kind}");
        new(folder.path(), &name, kind);
        let crate_folder = folder.path().join(&name);
        let library = Cargo::apart(&crate_folder).build(&format!("libmy_{kind}.so"));
        // The command runs elsewhere.
        let data = crate_folder.join("tests/data");
        let args = args.map(|arg| arg.replace("tests/data", data.to_str().unwrap()));
        let args = [
            &["plugins", "test", "--json", library.to_str().unwrap()],
            &args.each_ref().map(String::as_str)[..],
        ];
        let output = forebay(&[], &args.concat());
        assert!(output.status.success(), "{kind}: {}", json(&output));
        let readme = fs::read_to_string(crate_folder.join("README.md")).unwrap();
        assert!(!readme.contains("{{"), "{readme}");
    }
}

#[test]
fn its_own_test_passes_and_fails_with_what_it_breaks() {
    let folder = TempDir::new().unwrap();
    new(folder.path(), "my-grid", "decoder");
    let crate_folder = folder.path().join("my-grid");
    let (said, passed) = Cargo::apart(&crate_folder).test();
    assert!(passed && said.contains("1 passed"), "{said}");

    let code = crate_folder.join("src/lib.rs");
    let whole = fs::read_to_string(&code).unwrap();
    let checked = "if numbers.len() != height * width * 4";
    assert!(whole.contains(checked));
    fs::write(&code, whole.replace(checked, "if numbers[0] == 7")).unwrap();
    let (said, passed) = Cargo::apart(&crate_folder).test();
    assert!(!passed && said.contains("FAILED    damage"), "{said}");
}

#[test]
fn the_guide_leads_to_a_working_decoder() {
    let guide = fs::read_to_string(root().join("docs/plugin-authors/decoder.md")).unwrap();
    let code = guide.split("```rust\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let folder = TempDir::new().unwrap();
    new(folder.path(), "depth-maps", "decoder");
    let crate_folder = folder.path().join("depth-maps");
    fs::write(crate_folder.join("src/lib.rs"), code).unwrap();
    fs::remove_file(crate_folder.join("tests/data/two-by-three.grid")).unwrap();
    let numbers = [0.5_f32, 0.25, 0.125, 1.0, 2.0, 3.0].map(f32::to_le_bytes);
    let sample = crate_folder.join("tests/data/ramp.pfm");
    fs::write(&sample, [b"Pf\n3 2\n-1.0\n", numbers.as_flattened()].concat()).unwrap();
    let (said, passed) = Cargo::apart(&crate_folder).test();
    assert!(passed && said.contains("1 passed"), "{said}");

    let library = Cargo::apart(&crate_folder).build("libdepth_maps.so");
    let output = forebay(&[], &["head", "--plugin", library.to_str().unwrap(), sample.to_str().unwrap()]);
    let told = "  pfm  float32  [2, 3]  1 2 3 0.5 0.25 0.125\n";
    assert!(String::from_utf8_lossy(&output.stdout).ends_with(told), "{output:?}");
    assert!(guide.contains(told));

    // What the guide has the reader break.
    let broken = code.replace("wanted == Some(pixels.len())", "wanted.is_some()");
    assert_ne!(code, broken);
    fs::write(crate_folder.join("src/lib.rs"), broken).unwrap();
    let (said, passed) = Cargo::apart(&crate_folder).test();
    assert!(!passed && said.contains("FAILED    damage"), "{said}");
}

#[test]
fn what_would_be_no_crate_is_refused() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().to_str().unwrap();
    for (args, code, says) in [
        (&["My Format", "--kind", "decoder"][..], 2, "expected a name of small letters"),
        (&["match", "--kind", "decoder"], 2, "a word of Rust"),
        (&["fine", "--kind", "decoder", "--sources", path], 2, "not Forebay's sources"),
        (&["fine", "--kind", "decoder", "--path", path], 1, "File exists"),
        (&["fine", "--kind", "sink"], 2, "invalid value"),
    ] {
        let output = forebay(&[], &[&["plugins", "new"], args].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(says), "{said}");
    }
}
