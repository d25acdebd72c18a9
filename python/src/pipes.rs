//! Pipes that are functions of Python's, as a plugin that is linked into this module and into its workers.

mod batched;
mod function;
mod map;
mod sampler;
mod source;

pub(crate) use self::function::is_within;
use self::{
    batched::{PyGather, PyRows},
    map::{PyFilter, PyFlatMap, PyMap},
    sampler::PySampler,
    source::{PyIndexed, PySource},
};

forebay_core::export_plugin! {
    sources: [PySource],
    indexed: [PyIndexed],
    maps: [PyMap],
    flat_maps: [PyFilter, PyFlatMap, PyRows],
    streams: [PyGather, PySampler],
}
