//! The crate for authors of Forebay plugins.
//!
//! A plugin is a crate with one dependency, this one, and no unsafe code:
//!
//! ```toml
//! [lib]
//! crate-type = ["cdylib", "rlib"]
//! ```
//!
//! ```
//! use forebay_core::{Buffer, Context, Decoder, DecoderInfo, Error, NoOptions, Result, Value, Wanted};
//!
//! /// Decodes text into text in capitals.
//! pub struct Shout;
//!
//! impl Decoder for Shout {
//!     const INFO: DecoderInfo =
//!         DecoderInfo { name: "shout", summary: "Text, louder", extensions: &["shout"], ..DecoderInfo::DEFAULT };
//!     type Options = NoOptions;
//!
//!     fn new(_: NoOptions) -> Result<Self> {
//!         Ok(Self)
//!     }
//!
//!     fn decode(&self, bytes: &Buffer, _: &Wanted, _: &Context) -> Result<Value> {
//!         let text = std::str::from_utf8(bytes).map_err(|error| Error::corrupt(error.to_string()))?;
//!         Ok(text.to_uppercase().into())
//!     }
//! }
//!
//! forebay_core::export_plugin! { decoders: [Shout] }
//! # fn main() {}
//! ```
//!
//! `cargo build` gives one file. Put it into a plugin folder, and it decodes every field called `….shout`.
//! A [`Source`], [`Map`], [`FlatMap`] or [`Stream`] is a pipe of a graph; a [`Store`] serves URL schemes.

mod blob;
pub mod codec;
mod context;
mod decoder;
pub mod descriptor;
mod error;
pub mod export;
mod fields;
mod kept;
mod length;
pub mod manifest;
mod maps;
pub mod names;
pub mod nearest;
mod on;
pub mod options;
mod others;
mod pipe;
mod pipe_info;
pub mod random;
mod room;
pub mod sampling;
pub mod shim;
mod shown;
mod size;
mod state;
mod text;
mod texts;
mod writer;

pub use forebay_abi as abi;
pub use forebay_abi::{
    Arena, ArrowData, ArrowParts, Buffer, BufferMut, Chunk, DType, Element, FileView, Key, LentBytes, Limits,
    Port, Sample, Schema, State, Str, Struct, Tensor, Value, View, Waker,
};

pub use crate::{
    blob::{AnyStore, Blob, ENDLESS, scheme_of},
    context::{AnyDecoder, Context, Level, Wanted},
    decoder::{Decoder, Store},
    descriptor::{Class, DecoderInfo, List, Magic, StoreInfo},
    error::{Error, ErrorKind, FailedPlugin, Result},
    export::{Registrar, StaticPlugin},
    fields::{Ragged, SampleExt, TensorView},
    kept::{Keep, Stamp, local_path},
    length::Length,
    maps::{WatchedMap, maps_cut},
    on::On,
    options::{Any, NoOptions, OneOrMany, OptionType, Options},
    others::Others,
    pipe::{DataPipe, FlatMap, Indexed, Io, Items, Map, Output, Source, Step, Stream},
    pipe_info::{
        Access, Condition, Drops, FoldersOption, Noun, Opens, PipeAudit, PipeInfo, PipeLayout, PipeOrder,
        PipePlacement, Randomness, Uids,
    },
    random::Rng,
    room::{room_for, zeroed},
    shown::{shown, without_query, without_secrets},
    size::parse_bytes,
    state::{StateExt, TensorExt},
    text::write_json,
    texts::Texts,
    writer::{Encode, Files, Writer},
};

/// What `export_plugin!` needs; not for anybody else.
#[doc(hidden)]
pub mod __private {
    pub use forebay_abi::{
        Decoder, Outcome, Pipe, Plugin, PluginRef, RootResult, Store,
        abi_stable::{
            library::LibHeader,
            prefix_type::WithMetadata,
            std_types::{ROption, RStr},
        },
        header,
    };

    pub use crate::{
        descriptor::PluginInfo,
        export::{CPU, DecoderEntry, PipeEntry, StaticPlugin, StoreEntry, declared, make},
        manifest::{Manifest, json_len},
        maps::attach,
        shim::{self, erased},
    };
}
