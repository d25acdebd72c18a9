#![doc = include_str!("../README.md")]

mod disk;
mod fetch;
mod passes;
mod place;
mod prefetch;
mod settings;
mod sources;
mod store;
mod table;
mod wire;

pub use crate::{
    prefetch::{Prefetch, PrefetchOptions},
    settings::Settings,
    store::RemoteStore,
};

forebay_core::export_plugin! {
    state_version: 1,
    streams: [Prefetch],
    stores: [RemoteStore],
}
