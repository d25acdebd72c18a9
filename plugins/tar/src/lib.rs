#![doc = include_str!("../README.md")]

mod archive;
mod header;
mod index;
mod members;
mod part;
mod pax;
mod pieces;
mod sparse;
mod untar;
mod walk;
mod window;
mod write_tar;

pub use forebay_core::names::split_name;

pub use crate::{
    header::Kind,
    index::Index,
    members::{Members, Walk, read, walk},
    pieces::{TarPieces, TarPiecesItems, TarPiecesOptions, UntarPieces},
    untar::{Group, Untar, UntarItems, UntarOptions, open, samples},
    walk::Member,
    write_tar::{TarFormat, WriteTar, WriteTarOptions},
};

forebay_core::export_plugin! { state_version: 1, flat_maps: [Untar, TarPieces, UntarPieces], streams: [WriteTar] }
