#![doc = include_str!("../README.md")]

mod json;
mod number;
mod text;
mod unique;

pub use crate::{
    json::{DEPTH, Json, parse},
    number::{Number, parse_number},
    text::{Text, parse_text},
};

forebay_core::export_plugin! { decoders: [Json, Number, Text] }
