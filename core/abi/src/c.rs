//! The C interface, version 1: what a plugin in C and the host say to each other. `include/forebay.h` is made of this file.
//!
//! Tables begin with their size and grow at their end only: what a shorter one lacks counts as null. What is needed to free a
//! thing ([`ForebayData`]) never moves. Names are the header's, so both read alike.

use std::ffi::{c_char, c_void};

use crate::{ArrowArray, ArrowSchema};

/// The major version of this interface; a plugin of another is refused.
pub const FOREBAY_MAJOR: u32 = 1;
/// Counts what was added since; plugin and host may differ.
pub const FOREBAY_MINOR: u32 = 0;

/// Done.
pub const FOREBAY_OK: i32 = 0;
/// Failed: the system could not read or write; trying again may help.
pub const FOREBAY_IO: i32 = 1;
/// Failed: the bytes break their format's rules.
pub const FOREBAY_CORRUPT: i32 = 2;
/// Failed: the bytes are right, but this feature of the format is not handled.
pub const FOREBAY_UNSUPPORTED: i32 = 3;
/// Failed: an option is wrong.
pub const FOREBAY_INVALID: i32 = 4;
/// Failed: a limit was met before memory was taken.
pub const FOREBAY_LIMIT: i32 = 5;
/// Failed: the run was stopped.
pub const FOREBAY_CANCELLED: i32 = 9;
/// Failed: the plugin broke one of its own promises.
pub const FOREBAY_BUG: i32 = 10;
/// No failure: a source has no more samples.
pub const FOREBAY_END: i32 = 100;

/// Element type: truth, one byte.
pub const FOREBAY_BOOL: u32 = 0x0001_0806;
/// Element type: signed, 8 bits.
pub const FOREBAY_INT8: u32 = 0x0001_0800;
/// Element type: signed, 16 bits.
pub const FOREBAY_INT16: u32 = 0x0001_1000;
/// Element type: signed, 32 bits.
pub const FOREBAY_INT32: u32 = 0x0001_2000;
/// Element type: signed, 64 bits.
pub const FOREBAY_INT64: u32 = 0x0001_4000;
/// Element type: unsigned, 8 bits.
pub const FOREBAY_UINT8: u32 = 0x0001_0801;
/// Element type: unsigned, 16 bits.
pub const FOREBAY_UINT16: u32 = 0x0001_1001;
/// Element type: unsigned, 32 bits.
pub const FOREBAY_UINT32: u32 = 0x0001_2001;
/// Element type: unsigned, 64 bits.
pub const FOREBAY_UINT64: u32 = 0x0001_4001;
/// Element type: IEEE half.
pub const FOREBAY_FLOAT16: u32 = 0x0001_1002;
/// Element type: the upper half of an IEEE single.
pub const FOREBAY_BFLOAT16: u32 = 0x0001_1004;
/// Element type: IEEE single.
pub const FOREBAY_FLOAT32: u32 = 0x0001_2002;
/// Element type: IEEE double.
pub const FOREBAY_FLOAT64: u32 = 0x0001_4002;

/// The value that a call makes; its fields are a sample's.
pub const FOREBAY_ROOT: u32 = 0;
/// No value: what adding gives when it fails.
pub const FOREBAY_NONE: u32 = 0xffff_ffff;
/// The index of a key whose origin is one sample.
pub const FOREBAY_WHOLE: u64 = 0xffff_ffff_ffff_ffff;

/// A value under construction, or one inside of it: a number that the host gave out in this call.
pub type ForebayValue = u32;

/// Why a call failed: the plugin writes a sentence, which ends with a zero, and the host copies it.
/// It says what was found, where (the byte), and what was expected. `FOREBAY_FAIL` fills it.
#[repr(C)]
pub struct ForebayError {
    /// Bytes in this struct.
    pub size: usize,
    /// The sentence.
    pub message: [c_char; 1016],
}

/// Bytes of a value. The host does not copy them: `release` is called once, with `owner`, on any thread, when nobody
/// reads them any more, and also when the call that took them fails.
/// Without a `release` they must lie in the input, or in memory that `alloc` gave in this call.
#[repr(C)]
pub struct ForebayData {
    /// The first byte.
    pub bytes: *const c_void,
    /// How many.
    pub len: usize,
    /// Gives the bytes back; null for those of the host.
    pub release: Option<unsafe extern "C" fn(owner: *mut c_void)>,
    /// The argument of `release`.
    pub owner: *mut c_void,
}

/// What the host offers during one call, on the thread of the call. Pass the same pointer as the first argument.
///
/// Values are built from the root: set it to something, or add fields or items and set those. Each is set once. All
/// functions return `FOREBAY_OK` or a failure, which may be ignored: the host keeps the first, and the call fails with
/// it whatever it returns.
#[repr(C)]
pub struct ForebayHost {
    /// Bytes in this struct.
    pub size: usize,
    /// The most bytes one value may decode to; to be checked before memory is taken.
    pub max_bytes: u64,
    /// The most pixels one picture may have.
    pub max_pixels: u64,
    /// The run's seed: randomness is a function of it, the epoch and the sample's number.
    pub seed: u64,
    /// The epoch, from 0.
    pub epoch: u64,
    /// Which pass of the epoch this is: 0 for the first.
    pub pass: u64,
    /// Memory for output, with anything in it, which the host frees; null where it gives no more.
    pub alloc: unsafe extern "C" fn(host: *mut ForebayHost, len: usize) -> *mut c_void,
    /// Whether the run was stopped (not 0): a long call looks now and then, and returns `FOREBAY_CANCELLED`.
    pub cancelled: unsafe extern "C" fn(host: *mut ForebayHost) -> i32,
    /// Writes a line to the host's log: level 1 error, 2 warning, 3 information, 4 detail.
    pub log: unsafe extern "C" fn(host: *mut ForebayHost, level: u32, line: *const c_char) -> i32,
    /// Sets a value to null.
    pub put_null: unsafe extern "C" fn(host: *mut ForebayHost, at: ForebayValue) -> i32,
    /// Sets a value to false (0) or true.
    pub put_bool: unsafe extern "C" fn(host: *mut ForebayHost, at: ForebayValue, truth: i32) -> i32,
    /// Sets a value to a signed integer.
    pub put_int: unsafe extern "C" fn(host: *mut ForebayHost, at: ForebayValue, number: i64) -> i32,
    /// Sets a value to an unsigned integer.
    pub put_uint: unsafe extern "C" fn(host: *mut ForebayHost, at: ForebayValue, number: u64) -> i32,
    /// Sets a value to a float.
    pub put_float: unsafe extern "C" fn(host: *mut ForebayHost, at: ForebayValue, number: f64) -> i32,
    /// Sets a value to UTF-8 text of `len` bytes, which is copied.
    pub put_text: unsafe extern "C" fn(
        host: *mut ForebayHost,
        at: ForebayValue,
        text: *const c_char,
        len: usize,
    ) -> i32,
    /// Sets a value to bytes, which are not copied.
    pub put_bytes: unsafe extern "C" fn(host: *mut ForebayHost, at: ForebayValue, data: ForebayData) -> i32,
    /// Sets a value to a row-major tensor: a `FOREBAY_` element type, so many axes (at most 8), and data of just as many
    /// elements, in this machine's byte order. The shape is copied, the data are not, unless they are out of line.
    pub put_tensor: unsafe extern "C" fn(
        host: *mut ForebayHost,
        at: ForebayValue,
        dtype: u32,
        axes: usize,
        shape: *const i64,
        data: ForebayData,
    ) -> i32,
    /// Sets a value to columns by the Arrow C Data Interface. Both structs are moved: their `release` becomes null.
    pub put_arrow: unsafe extern "C" fn(
        host: *mut ForebayHost,
        at: ForebayValue,
        schema: *mut ArrowSchema,
        array: *mut ArrowArray,
    ) -> i32,
    /// Sets a value to a list, to which items may be added; for one that may stay empty.
    pub put_list: unsafe extern "C" fn(host: *mut ForebayHost, at: ForebayValue) -> i32,
    /// Sets a value to a struct, to which fields may be added; for one that may stay without.
    pub put_struct: unsafe extern "C" fn(host: *mut ForebayHost, at: ForebayValue) -> i32,
    /// Adds an item to a list, or to a value that was not set, which becomes one; gives the item, to be set.
    pub add_item: unsafe extern "C" fn(host: *mut ForebayHost, list: ForebayValue) -> ForebayValue,
    /// Adds a field to a struct, or to a value that was not set, which becomes one; gives the field, to be set.
    pub add_field: unsafe extern "C" fn(
        host: *mut ForebayHost,
        fields: ForebayValue,
        name: *const c_char,
    ) -> ForebayValue,
    /// In `next`: where the sample came from, as a person finds it: a file, a name in it (or null), an index in it (or
    /// `FOREBAY_WHOLE`). Without it the source's name and how many samples came before.
    pub set_key: unsafe extern "C" fn(
        host: *mut ForebayHost,
        origin: *const c_char,
        name: *const c_char,
        index: u64,
    ) -> i32,
    /// In `next`: the sample's number, which random draws for it are keyed by: the same in every epoch, whatever the
    /// order. Without it how many samples came before in this epoch.
    pub set_number: unsafe extern "C" fn(host: *mut ForebayHost, number: u64) -> i32,
}

/// The options of one decoder or source, checked against the manifest, with the defaults of those that were not given.
/// Texts live as long as the call of `open`.
#[repr(C)]
pub struct ForebayOptions {
    /// Bytes in this struct.
    pub size: usize,
    /// All of them as a JSON object.
    pub json: *const c_char,
    /// A text; null for an option that is none.
    pub text: unsafe extern "C" fn(options: *const ForebayOptions, name: *const c_char) -> *const c_char,
    /// A whole number or truth; `otherwise` for an option that is none.
    /// Of one above INT64_MAX it is what `(uint64_t)` makes it again.
    pub integer:
        unsafe extern "C" fn(options: *const ForebayOptions, name: *const c_char, otherwise: i64) -> i64,
    /// A number; `otherwise` for an option that is none.
    pub number:
        unsafe extern "C" fn(options: *const ForebayOptions, name: *const c_char, otherwise: f64) -> f64,
}

/// What is to be decoded.
#[repr(C)]
pub struct ForebayInput {
    /// Bytes in this struct.
    pub size: usize,
    /// The bytes: immutable, and of any alignment.
    pub bytes: *const u8,
    /// How many.
    pub len: usize,
    /// The extension of the name they came under, without the dot; may be empty, and may be wrong.
    pub extension: *const c_char,
    /// The element type that is wished for in a tensor; 0 for the one the decoder gives by itself.
    pub dtype: u32,
}

/// A decoder: turns the bytes of one value into a value. Stateless: `probe` and `decode` are called for one instance from
/// many threads at once.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ForebayDecoder {
    /// `sizeof(ForebayDecoder)`.
    pub size: usize,
    /// Its name, as in the manifest.
    pub name: *const c_char,
    /// Makes an instance; null for a decoder without options. After a failure there is none to close.
    pub open: Option<
        unsafe extern "C" fn(
            options: *const ForebayOptions,
            instance: *mut *mut c_void,
            error: *mut ForebayError,
        ) -> i32,
    >,
    /// Frees the instance; may be null.
    pub close: Option<unsafe extern "C" fn(instance: *mut c_void)>,
    /// How sure it is, from 0 (no) to 255, that bytes with this head (at most 4 KiB) are its own. May be null: then
    /// the manifest's magic bytes and extensions are trusted.
    pub probe: Option<
        unsafe extern "C" fn(
            instance: *mut c_void,
            head: *const u8,
            len: usize,
            extension: *const c_char,
        ) -> i32,
    >,
    /// Decodes.
    pub decode: Option<
        unsafe extern "C" fn(
            instance: *mut c_void,
            input: *const ForebayInput,
            host: *mut ForebayHost,
            error: *mut ForebayError,
        ) -> i32,
    >,
}

/// A source of samples. Its functions are called one at a time, not always on the same thread. The host deals samples out
/// to ranks and workers.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ForebaySource {
    /// `sizeof(ForebaySource)`.
    pub size: usize,
    /// Its name in a graph, as in the manifest.
    pub name: *const c_char,
    /// Makes an instance, and opens no file: a graph is checked without touching data. May be null. After a failure there is none to close.
    pub open: Option<
        unsafe extern "C" fn(
            options: *const ForebayOptions,
            instance: *mut *mut c_void,
            error: *mut ForebayError,
        ) -> i32,
    >,
    /// Frees the instance; may be null.
    pub close: Option<unsafe extern "C" fn(instance: *mut c_void)>,
    /// Goes to the first sample of the epoch in `host`; called before the first `next`.
    pub reset: Option<
        unsafe extern "C" fn(instance: *mut c_void, host: *mut ForebayHost, error: *mut ForebayError) -> i32,
    >,
    /// Gives one sample, as fields of the root, or `FOREBAY_END`. Columns of many rows are one sample with an Arrow
    /// field. After a failure the next call goes on behind the place that failed.
    pub next: Option<
        unsafe extern "C" fn(instance: *mut c_void, host: *mut ForebayHost, error: *mut ForebayError) -> i32,
    >,
    /// Writes at most `room` bytes of what `restore` needs to go on with the next sample, and sets `len` to how many there are;
    /// with more than `room` it is called again. Null where the position cannot be saved: then a resume
    /// reads the epoch again from its start.
    pub state: Option<
        unsafe extern "C" fn(
            instance: *mut c_void,
            bytes: *mut c_void,
            room: usize,
            len: *mut usize,
            error: *mut ForebayError,
        ) -> i32,
    >,
    /// Goes to a saved position; called after `reset`. The bytes may be of any origin.
    pub restore: Option<
        unsafe extern "C" fn(
            instance: *mut c_void,
            bytes: *const c_void,
            len: usize,
            host: *mut ForebayHost,
            error: *mut ForebayError,
        ) -> i32,
    >,
    /// How many samples an epoch has, where that is known before it is read: `FOREBAY_OK`, else any failure. May be null.
    pub len: Option<unsafe extern "C" fn(instance: *mut c_void, len: *mut u64) -> i32>,
}

/// The only symbol of a plugin, which `FOREBAY_PLUGIN` defines.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ForebayPlugin {
    /// `sizeof(ForebayPlugin)`.
    pub size: usize,
    /// `FOREBAY_MAJOR` of the header it was compiled with.
    pub major: u32,
    /// `FOREBAY_MINOR`.
    pub minor: u32,
    /// The manifest: named here so that no linker leaves it out.
    pub manifest: *const c_void,
    /// The decoders, and null behind the last; or null for none.
    pub decoders: *const *const ForebayDecoder,
    /// The sources, and null behind the last; or null for none.
    pub sources: *const *const ForebaySource,
}
