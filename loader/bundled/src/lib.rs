//! The plugins of the tree, as libraries: a crate for each folder of `plugins/`, and [`register`] for all of them. The build script lists
//! the folder, so nothing here names a plugin; `Cargo.toml` has a line for each.

use forebay_core::{Registrar, Result};

include!(concat!(env!("OUT_DIR"), "/plugins.rs"));
