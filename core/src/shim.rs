//! Between the safe traits and the tables of `forebay-abi`: what `export_plugin!` puts into a plugin.
//!
//! Every entry runs the author's code inside `guard`, so that a panic becomes an error. The modules
//! in here hold all the unsafe code of this crate.
#![expect(unsafe_code, reason = "the tables are C functions over raw instances")]

mod closures;
mod decoder;
mod flat_map;
mod guard;
mod indexed;
mod note;
mod pipes;
pub mod services;
mod slots;
mod store;

pub(crate) use self::note::Note;
pub use self::{
    closures::{Closure, FilterFn, FlatMapFn, MapFn},
    decoder::{Decodes, decoder, decoder_entry},
    flat_map::flat_map_entry,
    indexed::{count_entry, get_entry},
    pipes::*,
    store::store_entry,
};

use forebay_abi::{
    Outcome, State,
    abi_stable::{
        marker_type::ErasedPrefix,
        prefix_type::PrefixRef,
        std_types::{RBox, ROption},
    },
    code,
};

use crate::{Error, Result};

/// The detail of an outcome that is no failure.
///
/// # Errors
/// The fault's.
#[inline]
pub fn check(outcome: Outcome) -> Result<u32> {
    match outcome {
        Outcome { code: code::ERROR, fault: ROption::RSome(fault), .. } => {
            Err(Error::from(RBox::into_inner(fault)))
        }
        Outcome { code: code::ERROR, .. } => Err(Error::bug("a plugin failed without a reason")),
        Outcome { detail, .. } => Ok(detail),
    }
}

/// An outcome for a result without one of its own.
#[inline]
pub(crate) fn outcome(result: Result<()>) -> Outcome {
    match result {
        Ok(()) => Outcome::of(code::READY, 0),
        Err(error) => Outcome::failed(error.into()),
    }
}

/// Puts a saved state where the caller wants it.
fn give_state(result: Result<State>, place: &mut State) -> Outcome {
    outcome(result.map(|state| *place = state))
}

/// Runs `call`; a panic becomes a failure like any other.
pub fn guarded(call: impl FnOnce() -> Result<()>) -> Outcome {
    guard::guard(|| outcome(call()))
}

/// Forgets the type of a plugin's root, as its header wants it.
#[must_use]
pub fn erased(root: forebay_abi::PluginRef) -> PrefixRef<ErasedPrefix> {
    // SAFETY: the header's reader casts it back to what it was (`LibHeader::init_root_module`).
    unsafe { root.0.cast() }
}
