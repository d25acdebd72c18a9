#![doc = include_str!("../README.md")]

mod store;
mod url;

pub use crate::store::Git;

forebay_core::export_plugin! { stores: [Git] }
