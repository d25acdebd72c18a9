#![doc = include_str!("../README.md")]

mod archive;
mod group;
mod header;
mod members;
mod pax;
mod sparse;
mod untar;
mod walk;
mod window;

pub use crate::{
    group::split_name,
    header::Kind,
    members::{Members, Walk, read, walk},
    untar::{Group, Untar, UntarItems, UntarOptions, open, samples},
    walk::Member,
};

forebay_core::export_plugin! { flat_maps: [Untar] }
