#![doc = include_str!("../README.md")]

mod companding;
mod riff;
mod wav;

pub use crate::wav::{Wav, parse_wav};

forebay_core::export_plugin! { decoders: [Wav] }
