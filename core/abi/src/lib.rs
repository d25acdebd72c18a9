//! The frozen page: every type and function table that crosses between the host and a plugin.
//!
//! Nothing here opens, decodes or schedules anything. A plugin author meets these types through
//! `forebay-core`; only the host's loader and the code that `export_plugin!` writes use the tables.
//!
//! Rules that keep it loadable (`README.md` has what may change, and when; the test `layout` holds every size and offset, typed by hand):
//! - what can be freed carries its own release function, and the fields needed to free it never move;
//! - tables are prefix types: new entries go to the end, and a missing entry means "cannot";
//! - values are told apart by numbers, never by Rust enums, so an unknown one can be held and freed;
//! - nothing unwinds across: every table entry returns an [`Outcome`].

#[cfg(not(target_pointer_width = "64"))]
compile_error!("forebay-abi is laid out for 64-bit targets");

mod arena;
mod arrow;
mod buffer;
pub mod c;
mod chunk;
mod context;
mod dtype;
mod element;
mod key;
mod layout;
mod maps;
mod outcome;
mod parts;
mod plugin;
mod sample;
mod schema;
mod shared;
mod small;
mod tables;
mod tensor;
mod value;
mod waker;

pub use abi_stable;

pub use crate::{
    arena::Arena,
    arrow::{ArrowArray, ArrowData, ArrowSchema},
    buffer::{Buffer, BufferMut, Str},
    chunk::{Chunk, Port, Row},
    context::{Context, HostServices, HostServicesRef, Limits, Noting},
    dtype::DType,
    element::Element,
    key::Key,
    maps::{Maps, MapsRef},
    outcome::{Fault, Outcome, State, code},
    parts::ArrowParts,
    plugin::{ABI_MAJOR, ABI_MINOR, Plugin, PluginRef, RootResult, header},
    sample::Sample,
    schema::Schema,
    shared::{FileView, LentBytes, Owner},
    tables::{
        Decoder, DecoderTable, DecoderTableRef, Listing, Pipe, PipeTable, PipeTableRef, Store, StoreTable,
        StoreTableRef, Wanted, length,
    },
    tensor::{MAX_DIMS, Tensor},
    value::{Struct, Value, View, tag},
    waker::Waker,
};
