//! What lies in a file, one module for each structure of the "HDF5 File Format Specification Version 3.0".

pub(crate) mod attribute;
pub(crate) mod btree1;
pub(crate) mod btree2;
pub(crate) mod chunks;
pub(crate) mod dataspace;
pub(crate) mod datatype;
pub(crate) mod extensible_array;
pub(crate) mod fill;
pub(crate) mod fixed_array;
pub(crate) mod fractal_heap;
pub(crate) mod global_heap;
pub(crate) mod header;
pub(crate) mod layout;
pub(crate) mod link;
pub(crate) mod pipeline;
pub(crate) mod shared;
pub(crate) mod superblock;
pub(crate) mod symbols;
