//! The function tables of a DataPipe, a Decoder and a Store, and the handles that own an instance.

use abi_stable::{
    StableAbi,
    std_types::{ROption, RSlice, RSliceMut, RStr, RString, RVec},
};

use crate::{Buffer, Chunk, Context, DType, Outcome, Port, State, Value};

/// The functions of a DataPipe, of every class. An entry that a class has no use for fails.
///
/// The first argument is [`Pipe`]'s instance. Calls with `*mut ()` come one at a time; calls with
/// `*const ()` may come from many threads at once, and beside nothing else.
#[repr(C)]
#[derive(StableAbi)]
#[sabi(kind(Prefix(prefix_ref = PipeTableRef)))]
#[sabi(missing_field(panic))]
pub struct PipeTable {
    /// Frees the instance; an outcome, since its drop may panic.
    pub free: unsafe extern "C" fn(*mut ()) -> Outcome,
    /// Starts an epoch or a pass; called before the first of the others but `len`, `length`, `map`, `expand` and `probe`.
    pub reset: unsafe extern "C" fn(*mut (), &Context) -> Outcome,
    /// Sources, streams, flat maps and sinks: takes from the inputs, adds at most so many samples to the outputs.
    pub poll:
        unsafe extern "C" fn(*mut (), &Context, RSliceMut<'_, Port>, RSliceMut<'_, Chunk>, usize) -> Outcome,
    /// Maps: moves every sample of the first chunk, changed, to the second, which is empty. On an error the failed
    /// sample is gone, and those after it are still in the first chunk.
    pub map: unsafe extern "C" fn(*const (), &Context, &mut Chunk, &mut Chunk) -> Outcome,
    /// Saves the position.
    pub state: unsafe extern "C" fn(*const (), &mut State) -> Outcome,
    /// Goes to a saved position; after a reset.
    pub restore: unsafe extern "C" fn(*mut (), &Context, &State) -> Outcome,
    /// How many samples an epoch has; the detail is 1 when the number is known.
    pub len: unsafe extern "C" fn(*const (), &mut u64) -> Outcome,
    /// Parallel flat maps: moves all that the samples of the first chunk become to the second. The number is how many answers
    /// of the first sample's stream to pass over. On an error it is how many that stream has given, this one too, and the
    /// sample is still there; or 0, and the sample is gone.
    pub expand: unsafe extern "C" fn(*const (), &Context, &mut Chunk, &mut u64, &mut Chunk) -> Outcome,
    /// Pipes that open files: how sure they are, in the detail from 0 to 255, that a file with this head and extension is their
    /// own.
    #[sabi(last_prefix_field)]
    pub probe: unsafe extern "C" fn(*const (), RSlice<'_, u8>, RStr<'_>) -> Outcome,
    /// Since 1.1, of pipes with inputs: how many samples each output gives in an epoch, for inputs of so many;
    /// [`length::ENDLESS`] and [`length::UNKNOWN`] are none.
    #[sabi(missing_field(option))]
    pub length: unsafe extern "C" fn(*const (), &Context, RSlice<'_, u64>, &mut u64) -> Outcome,
}

/// What a number of samples means that is none, in [`PipeTable::length`].
pub mod length {
    /// There is no end of them.
    pub const ENDLESS: u64 = u64::MAX;
    /// Nobody knows before they are read.
    pub const UNKNOWN: u64 = u64::MAX - 1;
}

/// The functions of a Decoder; all may be called from many threads at once.
#[repr(C)]
#[derive(StableAbi)]
#[sabi(kind(Prefix(prefix_ref = DecoderTableRef)))]
#[sabi(missing_field(panic))]
pub struct DecoderTable {
    /// Adds a reference to the instance.
    pub retain: unsafe extern "C" fn(*const ()),
    /// Gives up a reference.
    pub release: unsafe extern "C" fn(*const ()),
    /// How sure it is, in the detail from 0 to 255, that bytes with this head and extension are its own.
    pub probe: unsafe extern "C" fn(*const (), RSlice<'_, u8>, RStr<'_>) -> Outcome,
    /// Decodes.
    #[sabi(last_prefix_field)]
    pub decode: unsafe extern "C" fn(*const (), &Context, &Buffer, &Wanted<'_>, &mut Value) -> Outcome,
}

/// The functions of a Store; all may be called from many threads at once.
#[repr(C)]
#[derive(StableAbi)]
#[sabi(kind(Prefix(prefix_ref = StoreTableRef)))]
#[sabi(missing_field(panic))]
pub struct StoreTable {
    /// Adds a reference to the instance.
    pub retain: unsafe extern "C" fn(*const ()),
    /// Gives up a reference.
    pub release: unsafe extern "C" fn(*const ()),
    /// What is directly under a path, sorted.
    pub list: unsafe extern "C" fn(*const (), RStr<'_>, &mut RVec<Listing>) -> Outcome,
    /// How many bytes a path has.
    pub size: unsafe extern "C" fn(*const (), RStr<'_>, &mut u64) -> Outcome,
    /// The bytes of a path from an offset on, at most so many.
    pub read: unsafe extern "C" fn(*const (), RStr<'_>, u64, u64, &mut Buffer) -> Outcome,
    /// The bytes of a path where they lie, for stores that have them in this machine.
    #[sabi(last_prefix_field)]
    pub map: unsafe extern "C" fn(*const (), RStr<'_>, &mut ROption<Buffer>) -> Outcome,
}

/// One entry of a store's list.
#[repr(C)]
#[derive(StableAbi, Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// The whole path, as `read` takes it.
    pub path: RString,
    /// Whether it has entries of its own.
    pub folder: bool,
}

/// What the caller of a decoder wishes for.
#[repr(C)]
#[derive(StableAbi, Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The element type of a tensor; [`DType::ANY`] for the one the decoder gives by itself.
    pub dtype: DType,
    /// The extension of the name the bytes came under, without the dot; may be empty.
    pub extension: RStr<'a>,
}

/// A DataPipe's instance with its functions. Whoever holds it calls [`PipeTable::free`] once.
#[repr(C)]
#[derive(StableAbi)]
pub struct Pipe {
    /// The first argument of each function.
    pub instance: *mut (),
    /// The functions.
    pub table: PipeTableRef,
}

// SAFETY: instances are Send (asked by the traits in core), and shared calls ask for Sync there.
unsafe impl Send for Pipe {}
// SAFETY: the table says which calls may be shared; the host keeps to it.
unsafe impl Sync for Pipe {}

macro_rules! counted {
    ($(#[$doc:meta])* $name:ident, $table:ident) => {
        $(#[$doc])*
        #[repr(C)]
        #[derive(StableAbi)]
        pub struct $name {
            instance: *const (),
            table: $table,
        }

        // SAFETY: instances are Send and Sync (asked by the traits in core).
        unsafe impl Send for $name {}
        // SAFETY: as above.
        unsafe impl Sync for $name {}

        impl $name {
            /// Takes over one reference to `instance`.
            ///
            /// # Safety
            /// `instance` is what `table` was made for, and one reference to it is given up.
            #[must_use]
            pub const unsafe fn from_raw(instance: *const (), table: $table) -> Self {
                Self { instance, table }
            }

            /// The first argument of each function.
            #[must_use]
            pub fn instance(&self) -> *const () {
                self.instance
            }

            /// The functions.
            #[must_use]
            pub fn table(&self) -> $table {
                self.table
            }
        }

        impl Clone for $name {
            fn clone(&self) -> Self {
                // SAFETY: this handle holds a reference (`from_raw`).
                unsafe { self.table.retain()(self.instance) }
                Self { ..*self }
            }
        }

        impl Drop for $name {
            fn drop(&mut self) {
                // SAFETY: this handle's reference ends here.
                unsafe { self.table.release()(self.instance) }
            }
        }
    };
}

counted! {
    /// A Decoder's instance with its functions; a clone shares the instance.
    Decoder, DecoderTableRef
}

counted! {
    /// A Store's instance with its functions; a clone shares the instance.
    Store, StoreTableRef
}
