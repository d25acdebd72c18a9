//! Files by many other programs, against what independent readers found in them.
//!
//! The corpora lie outside of the repository: in `FOREBAY_CORPORA`, or else in `../shared/corpora` beside it. Every file is
//! read in a child process, under limits of memory and of time, and what came of it is compared with `manifest.jsonl`.
//! How a plugin reads those of its formats is in its `format.rs`.
#![expect(clippy::unwrap_used, reason = "the manifest and our own children's answers are well-formed")]

mod manifest;
mod tally;

#[test]
fn files_by_other_programs_give_what_their_readers_found() {
    let failed =
        tally::failures("files_by_other_programs_give_what_their_readers_found", &forebay_formats::corpora());
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
