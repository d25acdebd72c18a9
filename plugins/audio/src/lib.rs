#![doc = include_str!("../README.md")]

mod companding;
mod flac;
mod riff;
mod sound;
mod wav;

pub use crate::{
    flac::{Flac, parse_flac},
    wav::{Wav, parse_wav},
};

forebay_core::export_plugin! { state_version: 1, decoders: [Flac, Wav] }
