//! The Arrow C Data Interface: columns that cross without a copy, from any Arrow library.
//!
//! Source: <https://arrow.apache.org/docs/format/CDataInterface.html>. The two structs are the
//! specification's; no type of an Arrow crate is in here.

use std::ffi::{c_char, c_void};

use abi_stable::StableAbi;

/// The specification's `ArrowSchema`: the type of an array.
#[repr(C)]
#[derive(StableAbi)]
#[expect(missing_docs, reason = "the fields are the specification's")]
pub struct ArrowSchema {
    pub format: *const c_char,
    pub name: *const c_char,
    pub metadata: *const c_char,
    pub flags: i64,
    pub n_children: i64,
    pub children: *const c_void,
    pub dictionary: *const c_void,
    pub release: Option<unsafe extern "C" fn(*mut c_void)>,
    pub private_data: *mut c_void,
}

/// The specification's `ArrowArray`: the buffers of an array.
#[repr(C)]
#[derive(StableAbi)]
#[expect(missing_docs, reason = "the fields are the specification's")]
pub struct ArrowArray {
    pub length: i64,
    pub null_count: i64,
    pub offset: i64,
    pub n_buffers: i64,
    pub n_children: i64,
    pub buffers: *const c_void,
    pub children: *const c_void,
    pub dictionary: *const c_void,
    pub release: Option<unsafe extern "C" fn(*mut c_void)>,
    pub private_data: *mut c_void,
}

/// An array with its type; dropping it calls both releases.
#[repr(C)]
#[derive(StableAbi)]
pub struct ArrowData {
    /// The type.
    pub schema: ArrowSchema,
    /// The buffers.
    pub array: ArrowArray,
}

// SAFETY: the specification lets a consumer move and read an exported array on any thread.
unsafe impl Send for ArrowData {}
// SAFETY: as above; nothing here changes a published array.
unsafe impl Sync for ArrowData {}

impl Drop for ArrowData {
    fn drop(&mut self) {
        if let Some(release) = self.array.release {
            // SAFETY: the specification: call the release once, with the address of its struct.
            unsafe { release((&raw mut self.array).cast()) }
        }
        if let Some(release) = self.schema.release {
            // SAFETY: as above.
            unsafe { release((&raw mut self.schema).cast()) }
        }
    }
}
