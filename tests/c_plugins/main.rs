//! Plugins in C: the example, as its reader would build and use it, and one that breaks every rule.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod example;
mod refusals;
mod rogue;

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::Command,
};

use forebay_core::{AnyDecoder, Buffer, Result, Value, Wanted};
use forebay_loader::{Registry, Search};
use forebay_testkit::Host;
use forebay_tests::{plugin_file, root};

/// Compiles one C file into a folder, as plugins.
fn compile(file: &Path, folder: &Path, defines: &[&str]) -> PathBuf {
    let mut name = OsStr::new("lib").to_owned();
    name.push(file.file_stem().unwrap());
    let library = folder.join(name).with_extension("so");
    let mut cc = Command::new("cc");
    cc.args(["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-O1", "-shared", "-fPIC"]);
    cc.args(if defines.is_empty() { &["-Werror"][..] } else { &[] });
    cc.arg("-I").arg(root().join("core/abi/include")).args(defines).arg(file).arg("-o").arg(&library);
    // Rust's linker is a C compiler, so there is one.
    let output = cc.output().unwrap_or_else(|error| panic!("cc: {error}"));
    assert!(output.status.success(), "{cc:?}: {}", String::from_utf8_lossy(&output.stderr));
    library
}

fn rogue_in(folder: &Path, defines: &[&str]) -> PathBuf {
    compile(&root().join("tests/c_plugins/rogue.c"), folder, defines)
}

/// A folder's plugins, and those for files and streams.
fn registry_of(folder: &Path) -> Registry {
    let files = plugin_file("forebay-files");
    Registry::new(Search::nowhere().first(plugin_file("forebay-pipes")).first(files).first(folder)).unwrap()
}

fn decode(decoder: &AnyDecoder, bytes: impl Into<Buffer>, extension: &str) -> Result<Value> {
    let wanted = Wanted { extension, ..Wanted::default() };
    decoder.decode(&bytes.into(), &wanted, &Host::new().context())
}
