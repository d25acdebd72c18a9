//! What goes on after an end: snapshots, caches, writers.

mod caching;
mod changed;
mod resume;
mod writers;
