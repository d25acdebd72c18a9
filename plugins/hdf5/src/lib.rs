#![doc = include_str!("../README.md")]

mod bytes;
mod choice;
mod dataset;
mod datatype;
mod file;
mod filter;
mod object;
mod origin;
mod pieces;
mod rows;
mod structure;
mod value;

pub use crate::{
    dataset::{Alloc, Dataset},
    datatype::{Class, Datatype, FloatForm, Member, Order},
    file::File,
    object::{Attribute, Group, Object},
    pieces::{Hdf5Pieces, Hdf5PiecesOptions, Pieces},
    rows::{Hdf5Rows, Rows},
    structure::{
        link::{Link, Target},
        pipeline::Filter,
    },
};

forebay_core::export_plugin! { state_version: 1, flat_maps: [Hdf5Pieces, Hdf5Rows] }
