#![doc = include_str!("../README.md")]

mod dtype;
mod idx;
mod literal;
mod memory;
mod npy;
mod npz;
mod order;
mod pickle;
mod records;
mod safetensors;
mod split;
mod zip;

pub use crate::{
    idx::{Idx, parse_idx},
    npy::{Npy, parse_npy},
    npz::{Npz, parse_npz},
    pickle::Pickle,
    records::{FixedLength, FixedLengthRecords, RecordsOptions},
    safetensors::{Entry, Header, Safetensors, parse_safetensors},
    split::{SplitOptions, SplitSafetensors, Tensors, tensors},
};

forebay_core::export_plugin! { flat_maps: [FixedLengthRecords, SplitSafetensors], decoders: [Npy, Npz, Safetensors, Idx, Pickle] }
