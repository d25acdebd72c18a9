#![doc = include_str!("../README.md")]

mod decoders;
mod decompress;
mod unzip;

pub use crate::{
    decoders::{Bzip2, Gzip, Lz4, Lzw, Xz, Zlib, Zstd},
    decompress::{Decompress, DecompressOptions},
    unzip::{Unzip, UnzipItems, UnzipOptions, members, samples},
};

forebay_core::export_plugin! {
    state_version: 1,
    maps: [Decompress],
    flat_maps: [Unzip],
    decoders: [Gzip, Zlib, Zstd, Xz, Bzip2, Lz4, Lzw],
}
