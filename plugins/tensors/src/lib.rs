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
mod split_idx;

pub use crate::{
    idx::{Idx, parse_idx},
    npy::{Npy, parse_npy},
    npz::{Npz, parse_npz},
    pickle::Pickle,
    records::{FixedLength, FixedLengthRecords, RecordsOptions},
    safetensors::{Entry, Header, Safetensors, parse_safetensors},
    split::{SplitOptions, SplitSafetensors, Tensors, tensors},
    split_idx::{IdxRows, SplitIdx, SplitIdxOptions, idx_rows},
};

forebay_core::export_plugin! { state_version: 1, flat_maps: [FixedLengthRecords, SplitIdx, SplitSafetensors], decoders: [Npy, Npz, Safetensors, Idx, Pickle] }
