//! Copies what fuzzing begins with to a folder, one below it for each target; see `fuzz/README.md`.
#![expect(clippy::unwrap_used, reason = "a tool for those who fuzz")]

mod seeds;

use std::{env, fs, path::PathBuf};

use forebay_formats::parsers;
use seeds::seeds;

/// The largest file that is copied.
const LARGEST: u64 = 65536;
/// How many files of the corpora each target is given, beside seeds.
const OF_CORPORA: usize = 300;

fn main() {
    let to = PathBuf::from(env::args_os().nth(1).unwrap_or_else(|| "fuzz/corpus".into()));
    for parser in parsers() {
        let folder = to.join(parser.name);
        fs::create_dir_all(&folder).unwrap();
        for (number, path) in seeds(parser, LARGEST, OF_CORPORA).iter().enumerate() {
            fs::copy(path, folder.join(format!("seed-{number}"))).unwrap();
        }
    }
}
