//! Plugins that each break one promise: one file each in `examples/`, and one library each when they are built.
