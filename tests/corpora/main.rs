//! Files by many other programs, against what independent readers found in them: a test for each format.
//!
//! The corpora lie outside of the repository: in `FOREBAY_CORPORA`, or else in `../shared/corpora` beside it. Every file is
//! read in a child process, under limits of memory and of time, and what came of it is compared with `manifest.jsonl`.
//! To add a format: a module with its `digest`, and a test here that has its name in the manifest.
#![expect(clippy::unwrap_used, reason = "the manifest and our own children's answers are well-formed")]

mod csv;
mod hdf5;
mod image;
mod ipc;
mod json;
mod jsonl;
mod manifest;
mod npy;
mod parquet;
mod safetensors;
mod tally;
mod tar;
mod tfrecord;
mod wav;
mod words;

use std::path::Path;

use forebay_loader::Error;
use serde_json::Value;

/// A format of the corpora, and how its files are read here.
struct Format {
    /// Its name in the manifest, and that of its test.
    name: &'static str,
    /// What the plugin makes of the file, in the words of the manifest's `digest`: those that it has words for.
    digest: fn(&Path) -> Result<Value, Error>,
    /// Whether that is what was expected: the manifest's `digest`, with its `tolerance` beside it.
    compare: fn(expected: &Value, found: &Value) -> Result<(), String>,
    /// The share of the valid files that must match.
    least: f64,
    /// Extensions of files that are read like all others, and not counted.
    aside: &'static [&'static str],
    /// What is known of files that do not match: TOML, see `tally`.
    known: &'static str,
}

/// A test for each format: its name, the module that reads it, the share that must match, extensions that are not counted, and the
/// file of what is known.
macro_rules! formats {
    ($($name:ident: $module:ident, $least:literal, $aside:expr, $known:expr;)*) => {$(
        #[test]
        fn $name() {
            tally::check(&Format {
                name: stringify!($name),
                digest: $module::digest,
                compare: $module::compare,
                least: $least,
                aside: &$aside,
                known: $known,
            });
        }
    )*};
}

formats! {
    tar: tar, 0.99, [], include_str!("tar.toml");
    json: json, 0.99, ["gz"], include_str!("json.toml");
    jsonl: jsonl, 0.99, ["gz"], "";
    csv: csv, 0.99, ["gz"], "";
    image: image, 0.97, ["avif"], include_str!("image.toml");
    parquet: parquet, 0.99, [], include_str!("parquet.toml");
    ipc: ipc, 0.99, [], "";
    hdf5: hdf5, 0.90, [], include_str!("hdf5.toml");
    npy: npy, 1.0, [], "";
    npz: npy, 1.0, [], "";
    safetensors: safetensors, 1.0, [], "";
    tfrecord: tfrecord, 1.0, [], "";
    wav: wav, 1.0, [], "";
}
