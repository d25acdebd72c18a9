#![doc = include_str!("../README.md")]

mod dedup;
mod fingerprint;

pub use crate::{
    dedup::{Dedup, DedupOptions},
    fingerprint::fingerprint,
};

forebay_core::export_plugin! { streams: [Dedup] }
