#![doc = include_str!("../README.md")]

mod codec;
mod forward;
mod input;
mod lz4;
mod lzw;
mod members;
mod stream;
mod whole;
mod zip;

pub use crate::{
    codec::Codec,
    forward::{Forward, peek},
    input::Input,
    stream::{LAYERS, Unpacked, error_of},
    whole::{crc32, inflate, unpack},
    zip::{Directory, Member},
};
