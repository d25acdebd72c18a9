#![doc = include_str!("../README.md")]

mod braces;
mod listing;
#[expect(unsafe_code, reason = "a memory map is a promise about the file that only its owner can keep")]
mod map;
mod nearby;
mod pattern;
mod read;
mod source;
mod store;
mod stream;
mod url;

pub use crate::{
    listing::{Found, Listing, list},
    map::map_file,
    read::{Read, ReadOptions},
    source::{Files, FilesOptions},
    store::FileStore,
};

forebay_core::export_plugin! {
    state_version: 1,
    indexed: [Files],
    maps: [Read],
    stores: [FileStore],
}
