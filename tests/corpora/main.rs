//! Files by many other programs, against what independent readers found in them: a test for each format.
//!
//! The corpora lie outside of the repository: in `FOREBAY_CORPORA`, or else in `../shared/corpora` beside it. Every file is
//! read in a child process, under limits of memory and of time, and what came of it is compared with `manifest.jsonl`.
//! To add a format: a module with its `digest`, and a test here that has its name in the manifest.
#![expect(clippy::unwrap_used, reason = "the manifest and our own children's answers are well-formed")]

mod child;
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

#[test]
fn tar() {
    tally::check(&Format {
        name: "tar",
        digest: tar::digest,
        compare: tar::compare,
        least: 0.99,
        aside: &[],
        known: include_str!("tar.toml"),
    });
}

#[test]
fn json() {
    tally::check(&Format {
        name: "json",
        digest: json::digest,
        compare: json::compare,
        least: 0.99,
        aside: &["gz"],
        known: include_str!("json.toml"),
    });
}

#[test]
fn image() {
    tally::check(&Format {
        name: "image",
        digest: image::digest,
        compare: image::compare,
        least: 0.97,
        aside: &["avif"],
        known: include_str!("image.toml"),
    });
}

#[test]
fn parquet() {
    tally::check(&Format {
        name: "parquet",
        digest: parquet::digest,
        compare: parquet::compare,
        least: 0.99,
        aside: &[],
        known: include_str!("parquet.toml"),
    });
}

#[test]
fn ipc() {
    tally::check(&Format {
        name: "ipc",
        digest: ipc::digest,
        compare: ipc::compare,
        least: 0.985,
        aside: &[],
        known: include_str!("ipc.toml"),
    });
}

#[test]
fn jsonl() {
    tally::check(&Format {
        name: "jsonl",
        digest: jsonl::digest,
        compare: jsonl::compare,
        least: 0.99,
        aside: &["gz"],
        known: "",
    });
}

#[test]
fn csv() {
    tally::check(&Format {
        name: "csv",
        digest: csv::digest,
        compare: same,
        least: 0.99,
        aside: &["gz"],
        known: "",
    });
}

#[test]
fn hdf5() {
    tally::check(&Format {
        name: "hdf5",
        digest: hdf5::digest,
        compare: hdf5::compare,
        least: 0.90,
        aside: &[],
        known: include_str!("hdf5.toml"),
    });
}

#[test]
fn npy() {
    tally::check(&Format {
        name: "npy",
        digest: npy::digest,
        compare: npy::compare,
        least: 1.0,
        aside: &[],
        known: "",
    });
}

#[test]
fn npz() {
    tally::check(&Format {
        name: "npz",
        digest: npy::digest,
        compare: npy::compare,
        least: 1.0,
        aside: &[],
        known: "",
    });
}

#[test]
fn safetensors() {
    tally::check(&Format {
        name: "safetensors",
        digest: safetensors::digest,
        compare: safetensors::compare,
        least: 1.0,
        aside: &[],
        known: "",
    });
}

#[test]
fn tfrecord() {
    tally::check(&Format {
        name: "tfrecord",
        digest: tfrecord::digest,
        compare: tfrecord::compare,
        least: 1.0,
        aside: &[],
        known: "",
    });
}

#[test]
fn wav() {
    tally::check(&Format {
        name: "wav",
        digest: wav::digest,
        compare: wav::compare,
        least: 1.0,
        aside: &[],
        known: "",
    });
}

/// Where both are in the same words.
fn same(expected: &Value, found: &Value) -> Result<(), String> {
    if expected == found { Ok(()) } else { Err(format!("found {found}, expected {expected}")) }
}
