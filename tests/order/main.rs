//! The order of samples, and what draws it.

mod behaviours;
mod epochs;
mod expand;
mod interleave;
mod lengths;
mod orders;
mod packed;
mod pipes;
mod quality;
mod replays;
mod samplers;
mod shuffles;
mod unneeded;
mod unordered;
mod unshuffled;
