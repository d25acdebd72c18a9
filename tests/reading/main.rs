//! What is read: files, streams, folders, servers, and what becomes of their bytes.

mod columns;
mod decoders;
mod endings;
mod lines;
mod mnist;
mod open;
mod remote;
mod streams;
mod undecoded;
