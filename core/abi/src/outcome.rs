//! What every call across a library boundary gives back, and what a pipe saves of itself.

use abi_stable::{
    StableAbi,
    std_types::{RBox, ROption, RString, RVec, Tuple2},
};

/// The numbers of [`Outcome::code`].
pub mod code {
    /// Done; for a poll: gave what it could, ask again.
    pub const READY: u32 = 0;
    /// Cannot go on before the input named by the detail has samples or has ended.
    pub const NEED_INPUT: u32 = 1;
    /// Nothing now; the context's waker will be called.
    pub const PENDING: u32 = 2;
    /// Nothing any more, until a reset.
    pub const END: u32 = 3;
    /// Wants the input named by the detail, which has ended, to start again.
    pub const REWIND: u32 = 4;
    /// Failed; the fault says why.
    pub const ERROR: u32 = 5;
}

/// The result of a call: a code, a detail (such as an input's number), and the fault of an error.
#[repr(C)]
#[derive(StableAbi, Debug)]
pub struct Outcome {
    /// One of [`code`].
    pub code: u32,
    /// What the code says it is.
    pub detail: u32,
    /// Why, for [`code::ERROR`].
    pub fault: ROption<RBox<Fault>>,
}

impl Outcome {
    /// An outcome without a fault.
    #[must_use]
    #[inline]
    pub const fn of(code: u32, detail: u32) -> Self {
        Self { code, detail, fault: ROption::RNone }
    }

    /// A failure.
    #[must_use]
    pub fn failed(fault: Fault) -> Self {
        Self { code: code::ERROR, detail: 0, fault: ROption::RSome(RBox::new(fault)) }
    }
}

/// An error as it crosses: the number of its kind, a message, and the places.
#[repr(C)]
#[derive(StableAbi, Debug, Clone)]
pub struct Fault {
    /// The kind's number; an unknown one counts as a bug.
    pub kind: u32,
    /// What went wrong.
    pub message: RString,
    /// Names and values of the places, innermost first.
    pub context: RVec<Tuple2<RString, RString>>,
}

/// What a pipe saves to go on later: bytes that only the pipe reads, with the version of their form, and which of the
/// samples it has taken it wants again.
#[repr(C)]
#[derive(StableAbi, Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    /// The version of the bytes' form; the pipe's own count.
    pub version: u32,
    /// The bytes.
    pub bytes: RVec<u8>,
    /// For each input, how many of the samples last taken are to be given again after a restore: a pipe that holds
    /// samples saves where they came from instead of what is in them. Inputs that are left out count as 0.
    pub again: RVec<u64>,
}
