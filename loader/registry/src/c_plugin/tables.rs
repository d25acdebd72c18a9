//! The tables of a C plugin: read and checked once, and called.
#![expect(unsafe_code, reason = "reads what a symbol names, and calls C functions")]

use std::{
    ffi::{CString, c_char, c_void},
    mem::MaybeUninit,
    path::Path,
    ptr,
};

use forebay_core::{
    Buffer, Context, DType, Error, Result, Value, Wanted,
    abi::c::{
        FOREBAY_MAJOR, FOREBAY_MINOR, FOREBAY_OK, ForebayDecoder, ForebayError, ForebayHost, ForebayInput,
        ForebayOptions, ForebayPlugin, ForebaySource,
    },
};

use super::{
    builder::broken,
    host::{self, CHost, no_error, verdict},
    options::COptions,
};
use crate::{Manifest, library};

/// The most bytes that a source may save.
const STATE: usize = 16 << 20;
/// More than any table will ever have: what claims more is none.
const TABLE: usize = 1 << 16;

/// What a plugin has, in the order of its manifest.
pub(super) struct Tables {
    pub(super) decoders: Vec<Entry<ForebayDecoder>>,
    pub(super) sources: Vec<Entry<ForebaySource>>,
}

/// A table and the name in it.
pub(super) struct Entry<T> {
    pub(super) name: String,
    table: T,
}

// SAFETY: tables are functions and names that live for ever and never change.
unsafe impl<T: CTable> Send for Entry<T> {}
// SAFETY: as above.
unsafe impl<T: CTable> Sync for Entry<T> {}

/// A table that begins with its size in bytes, and for which all zeros are a value: numbers, pointers and functions or null.
///
/// # Safety
/// The type is just that.
unsafe trait CTable: Copy {
    const NAME: &'static str;
    /// Its bytes in version 1.0.
    const FIRST: usize;
}

// SAFETY: as asked for, here and below; the test `layout` of the ABI holds what they have.
unsafe impl CTable for ForebayPlugin {
    const NAME: &'static str = "ForebayPlugin";
    const FIRST: usize = 40;
}

// SAFETY: as above.
unsafe impl CTable for ForebayDecoder {
    const NAME: &'static str = "ForebayDecoder";
    const FIRST: usize = 48;
}

// SAFETY: as above.
unsafe impl CTable for ForebaySource {
    const NAME: &'static str = "ForebaySource";
    const FIRST: usize = 72;
}

/// What is at `at`, as much as both sides know; the rest is null.
///
/// # Safety
/// Null, or a table of the plugin, whose first word is its size in bytes.
unsafe fn read<T: CTable>(at: *const T) -> Result<T> {
    if at.is_null() || !at.is_aligned() {
        return Err(broken(format!("its {} is at {at:?}", T::NAME)));
    }
    // SAFETY: neither null nor out of line, and the caller's promise.
    let size = unsafe { at.cast::<usize>().read() };
    if !(T::FIRST..=TABLE).contains(&size) {
        return Err(broken(format!(
            "its {} says it has {size} bytes; that of C {FOREBAY_MAJOR}.0 has {}, and later ones more: \
             set its size to sizeof({0})",
            T::NAME,
            T::FIRST
        )));
    }
    let mut table = MaybeUninit::<T>::zeroed();
    // SAFETY: so many bytes are there on both sides, and all zeros are a value of the type (`CTable`).
    Ok(unsafe {
        ptr::copy_nonoverlapping(at.cast::<u8>(), table.as_mut_ptr().cast(), size.min(size_of::<T>()));
        table.assume_init()
    })
}

impl Tables {
    /// Loads the library at `path` and reads its tables, which must have what its manifest names.
    pub(super) fn load(path: &Path, manifest: &Manifest) -> Result<Self> {
        // SAFETY: the manifest says that the symbol is a `ForebayPlugin`; `read` looks at its size before anything else.
        let plugin = unsafe { read(library::symbol::<*const ForebayPlugin>(path, &manifest.entry)?) }?;
        if (plugin.major, plugin.minor) != manifest.abi {
            let (major, minor) = (plugin.major, plugin.minor);
            return Err(broken(format!(
                "its table is of C {major}.{minor} and its manifest of {}, this host has C {FOREBAY_MAJOR}.{FOREBAY_MINOR}: \
                 compile it again with the header of this host",
                manifest.abi_name()
            )));
        }
        let decoders: Vec<_> = manifest.decoders.iter().map(|spec| spec.name.as_str()).collect();
        let sources: Vec<_> = manifest.pipes.iter().map(|spec| spec.name.as_str()).collect();
        // SAFETY: lists of the table's own types that end with null, as the header asks.
        let (decoders, sources) =
            unsafe { (list(plugin.decoders, &decoders)?, list(plugin.sources, &sources)?) };
        Ok(Self { decoders, sources })
    }
}

/// A table that stands in a list under its name.
trait Listed: CTable {
    fn name(&self) -> *const c_char;
    /// A function that it must have and has not.
    fn lacks(&self) -> Option<&'static str>;
}

impl Listed for ForebayDecoder {
    fn name(&self) -> *const c_char {
        self.name
    }

    fn lacks(&self) -> Option<&'static str> {
        self.decode.is_none().then_some("decode")
    }
}

impl Listed for ForebaySource {
    fn name(&self) -> *const c_char {
        self.name
    }

    fn lacks(&self) -> Option<&'static str> {
        match self {
            Self { reset: None, .. } => Some("reset"),
            Self { next: None, .. } => Some("next"),
            Self { state: Some(_), restore: None, .. } => Some("restore, but has a state"),
            Self { state: None, restore: Some(_), .. } => Some("state, but has a restore"),
            _ => None,
        }
    }
}

/// The tables of a list that ends with null, in the order of the manifest's names, which are all and no others.
///
/// # Safety
/// Null, or such a list.
unsafe fn list<T: Listed>(mut at: *const *const T, names: &[&str]) -> Result<Vec<Entry<T>>> {
    let mut entries = Vec::new();
    while !at.is_null() {
        // SAFETY: the caller's promise; the null behind the last was not seen yet.
        let table = unsafe { at.read() };
        if table.is_null() {
            break;
        }
        if entries.len() == names.len() {
            let (kind, most) = (T::NAME, names.len());
            return Err(broken(format!("has more tables {kind} than the {most} that its manifest names")));
        }
        // SAFETY: as above, here and below.
        let table = unsafe { read(table) }?;
        // SAFETY: a name is text that ends with a zero.
        let name = unsafe { host::text(table.name(), "name of a table") }?.to_owned();
        if let Some(lacks) = table.lacks() {
            return Err(broken(format!("its {} `{name}` has no function {lacks}", T::NAME)));
        }
        entries.push(Entry { name, table });
        // SAFETY: not the last one.
        at = unsafe { at.add(1) };
    }
    let one = |name: &&str| {
        let at = entries.iter().position(|entry| entry.name == **name);
        let missing =
            || broken(format!("its manifest names `{name}`, but it has no {} of that name", T::NAME));
        at.map(|at| entries.swap_remove(at)).ok_or_else(missing)
    };
    names.iter().map(one).collect()
}

/// An instance, which is closed once.
struct Instance {
    place: *mut c_void,
    close: Option<unsafe extern "C" fn(*mut c_void)>,
}

// SAFETY: the header says that calls come on any thread: for decoders at once, for sources one at a time.
unsafe impl Send for Instance {}
// SAFETY: as above; who holds a source calls it one at a time, as `&mut` and the host's rule for states say.
unsafe impl Sync for Instance {}

impl Drop for Instance {
    fn drop(&mut self) {
        if let Some(close) = self.close {
            // SAFETY: the plugin's own function and instance, once.
            unsafe { close(self.place) }
        }
    }
}

type Open = unsafe extern "C" fn(*const ForebayOptions, *mut *mut c_void, *mut ForebayError) -> i32;

fn open(
    open: Option<Open>,
    close: Option<unsafe extern "C" fn(*mut c_void)>,
    options: &COptions,
) -> Result<Instance> {
    let mut place = ptr::null_mut();
    let Some(open) = open else { return Ok(Instance { place, close: None }) };
    let mut error = no_error();
    // SAFETY: options, place and error live through the call.
    let status = unsafe { open(options.face(), &raw mut place, &raw mut error) };
    refuse_end("open", verdict("open", status, &error)?)?;
    Ok(Instance { place, close })
}

fn refuse_end(call: &str, is_end: bool) -> Result<()> {
    if is_end { Err(broken(format!("its `{call}` gave FOREBAY_END, which only `next` may"))) } else { Ok(()) }
}

/// Text as C takes it; a zero ends it.
fn c_text(text: &str) -> CString {
    CString::new(text.split('\0').next().unwrap_or_default()).unwrap_or_default()
}

/// A decoder with its instance.
pub(super) struct OpenDecoder {
    table: ForebayDecoder,
    instance: Instance,
}

// SAFETY: the table is functions and a name that live for ever.
unsafe impl Send for OpenDecoder {}
// SAFETY: as above.
unsafe impl Sync for OpenDecoder {}

impl Entry<ForebayDecoder> {
    pub(super) fn open(&self, options: &COptions) -> Result<OpenDecoder> {
        let instance = open(self.table.open, self.table.close, options)?;
        Ok(OpenDecoder { table: self.table, instance })
    }
}

impl OpenDecoder {
    pub(super) fn probe(&self, head: &[u8], extension: &str) -> Result<u8> {
        let Some(probe) = self.table.probe else { return Ok(128) };
        let extension = c_text(extension);
        // SAFETY: the instance is of this table, and all arguments live through the call.
        let sure = unsafe { probe(self.instance.place, head.as_ptr(), head.len(), extension.as_ptr()) };
        u8::try_from(sure).map_err(|_| broken(format!("its `probe` gave {sure}, expected 0 to 255")))
    }

    pub(super) fn decode(&self, bytes: &Buffer, wanted: &Wanted, cx: &Context) -> Result<Value> {
        let Some(decode) = self.table.decode else { return Err(broken("has no function decode")) };
        let extension = c_text(wanted.extension);
        let DType { code, bits, lanes } = wanted.dtype;
        let [low, high] = lanes.to_le_bytes();
        let input = ForebayInput {
            size: size_of::<ForebayInput>(),
            bytes: bytes.as_ptr(),
            len: bytes.len(),
            extension: extension.as_ptr(),
            dtype: if wanted.dtype == DType::ANY { 0 } else { u32::from_le_bytes([code, bits, low, high]) },
        };
        let (mut host, mut error) = (CHost::new(cx, Some(bytes)), no_error());
        // SAFETY: as for `probe`.
        let status = unsafe { decode(self.instance.place, &raw const input, host.face(), &raw mut error) };
        refuse_end("decode", host.verdict("decode", status, &error)?)?;
        host.into_value()
    }
}

/// A source with its instance.
pub(super) struct OpenSource {
    table: ForebaySource,
    instance: Instance,
}

// SAFETY: as for a decoder.
unsafe impl Send for OpenSource {}

impl Entry<ForebaySource> {
    pub(super) fn open(&self, options: &COptions) -> Result<OpenSource> {
        let instance = open(self.table.open, self.table.close, options)?;
        Ok(OpenSource { table: self.table, instance })
    }
}

type InContext = unsafe extern "C" fn(*mut c_void, *mut ForebayHost, *mut ForebayError) -> i32;

impl OpenSource {
    pub(super) fn reset(&mut self, cx: &Context) -> Result<()> {
        let (_, is_end) = self.call("reset", self.table.reset, cx)?;
        refuse_end("reset", is_end)
    }

    /// The next sample, or nothing at the end.
    pub(super) fn next(&mut self, cx: &Context) -> Result<Option<host::NextResult>> {
        let (host, is_end) = self.call("next", self.table.next, cx)?;
        if is_end { Ok(None) } else { host.into_sample().map(Some) }
    }

    fn call<'a>(
        &mut self,
        name: &'static str,
        call: Option<InContext>,
        cx: &Context<'a>,
    ) -> Result<(CHost<'a>, bool)> {
        let Some(call) = call else { return Err(broken(format!("has no function {name}"))) };
        let (mut host, mut error) = (CHost::new(cx, None), no_error());
        // SAFETY: the instance is of this table, `&mut` keeps other calls away, and all arguments live through the call.
        let status = unsafe { call(self.instance.place, host.face(), &raw mut error) };
        let is_end = host.verdict(name, status, &error)?;
        Ok((host, is_end))
    }

    pub(super) fn len(&self) -> Option<u64> {
        let (len, mut number) = (self.table.len?, 0);
        // SAFETY: the host asks no source that is being polled.
        let status = unsafe { len(self.instance.place, &raw mut number) };
        (status == FOREBAY_OK).then_some(number)
    }

    pub(super) fn state(&self) -> Result<Vec<u8>> {
        let Some(state) = self.table.state else {
            return Err(Error::unsupported("this source does not save its position"));
        };
        let mut bytes = vec![0; 256];
        loop {
            let (mut len, mut error) = (0, no_error());
            // SAFETY: as for `len`; there is as much room as said.
            let status = unsafe {
                state(
                    self.instance.place,
                    bytes.as_mut_ptr().cast(),
                    bytes.len(),
                    &raw mut len,
                    &raw mut error,
                )
            };
            refuse_end("state", verdict("state", status, &error)?)?;
            if len <= bytes.len() {
                bytes.truncate(len);
                return Ok(bytes);
            }
            if len > STATE {
                return Err(Error::limit(format!("its `state` has {len} bytes, at most {STATE}")));
            }
            // Not just as much: what grows with every call would be asked for ever.
            bytes.resize(len.next_power_of_two(), 0);
        }
    }

    pub(super) fn restore(&mut self, bytes: &[u8], cx: &Context) -> Result<()> {
        let Some(restore) = self.table.restore else {
            return Err(Error::unsupported("this source does not save its position"));
        };
        let (mut host, mut error) = (CHost::new(cx, None), no_error());
        // SAFETY: as for `call`.
        let status = unsafe {
            restore(self.instance.place, bytes.as_ptr().cast(), bytes.len(), host.face(), &raw mut error)
        };
        refuse_end("restore", host.verdict("restore", status, &error)?)
    }
}
