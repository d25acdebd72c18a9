//! What the host offers to a C plugin during one call: memory, the parts of a value, and the ends of the call.
#![expect(unsafe_code, reason = "functions that C calls, and memory that C gives back")]

use std::{
    ffi::{CStr, c_char, c_void},
    slice,
};

use forebay_core::{
    ArrowData, Buffer, Context, DType, Error, ErrorKind, Key, Level, Result, Str, Value,
    abi::{
        ArrowArray, ArrowSchema, MAX_DIMS,
        c::{self, ForebayData, ForebayError, ForebayHost},
    },
};

use super::builder::{BytesKind, CBytes, CallValues, broken, within};

/// What one call has: the face that C sees comes first, so that a pointer to it is one to all.
#[repr(C)]
pub(super) struct CHost<'a> {
    face: ForebayHost,
    cx: Context<'a>,
    input: Option<&'a Buffer>,
    builder: CallValues,
    key: Option<Key>,
    number: Option<u64>,
    /// The first failure.
    failed: Option<Error>,
}

/// What a call of `next` gave.
pub(super) struct NextResult {
    pub(super) names: Vec<Str>,
    pub(super) values: Vec<Value>,
    pub(super) key: Option<Key>,
    pub(super) number: Option<u64>,
}

impl<'a> CHost<'a> {
    pub(super) fn new(cx: &Context<'a>, input: Option<&'a Buffer>) -> Self {
        let face = ForebayHost {
            size: size_of::<ForebayHost>(),
            max_bytes: cx.limits().bytes,
            max_pixels: cx.limits().pixels,
            seed: cx.seed(),
            epoch: cx.epoch(),
            pass: cx.pass(),
            alloc,
            cancelled,
            log,
            put_null,
            put_bool,
            put_int,
            put_uint,
            put_float,
            put_text,
            put_bytes,
            put_tensor,
            put_arrow,
            put_list,
            put_struct,
            add_item,
            add_field,
            set_key,
            set_number,
        };
        Self { face, cx: *cx, input, builder: CallValues::new(), key: None, number: None, failed: None }
    }

    /// What C is given. The host is reached by nothing else until the call is over.
    pub(super) fn face(&mut self) -> *mut ForebayHost {
        (&raw mut *self).cast()
    }

    /// The end of a call that gave this status: whether it was `FOREBAY_END`.
    pub(super) fn verdict(&mut self, call: &str, status: i32, error: &ForebayError) -> Result<bool> {
        match self.failed.take() {
            Some(failed) => Err(failed),
            None => verdict(call, status, error),
        }
    }

    pub(super) fn into_value(self) -> Result<Value> {
        self.builder.value(&self.cx)
    }

    pub(super) fn into_sample(self) -> Result<NextResult> {
        let (names, values) = self.builder.fields(&self.cx)?;
        Ok(NextResult { names, values, key: self.key, number: self.number })
    }

    /// Where the bytes of `data` are, and who gives them back.
    fn place(&self, data: ForebayData) -> Result<CBytes> {
        // First of all: from here on they are given back whatever happens.
        let owned = Owned::new(data);
        if owned.data.bytes.is_null() && owned.data.len > 0 {
            return Err(broken(format!("gave {} bytes at a null pointer", owned.data.len)));
        }
        if isize::try_from(owned.data.len).is_err() {
            return Err(broken(format!("gave {} bytes, more than there can be", owned.data.len)));
        }
        if owned.data.len == 0 {
            return Ok(CBytes::Buffer(Buffer::EMPTY));
        }
        if owned.data.release.is_some() {
            return Ok(CBytes::Buffer(Buffer::from_owner(owned)));
        }
        let (address, len) = (owned.data.bytes.addr(), owned.data.len);
        let part = |input: &Buffer| input.get(within(input, address, len)?);
        self.input
            .and_then(part)
            .map(CBytes::Buffer)
            .or_else(|| self.builder.find(address, len))
            .ok_or_else(|| broken("gave bytes without a release, expected bytes of the input or of `alloc`"))
    }
}

/// The result that a status is: whether it was `FOREBAY_END`.
pub(super) fn verdict(call: &str, status: i32, error: &ForebayError) -> Result<bool> {
    use c::*;
    if matches!(status, FOREBAY_OK | FOREBAY_END) {
        return Ok(status == FOREBAY_END);
    }
    let kinds = [
        FOREBAY_IO,
        FOREBAY_CORRUPT,
        FOREBAY_UNSUPPORTED,
        FOREBAY_INVALID,
        FOREBAY_LIMIT,
        FOREBAY_CANCELLED,
        FOREBAY_BUG,
    ];
    if !kinds.contains(&status) {
        return Err(broken(format!(
            "its `{call}` gave status {status}, which C {FOREBAY_MAJOR}.{FOREBAY_MINOR} does not have"
        )));
    }
    let bytes = error.message.map(c_char::cast_unsigned);
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    let text = match String::from_utf8_lossy(text).trim() {
        "" => format!("its `{call}` failed and did not say why"),
        text => text.to_owned(),
    };
    Err(Error::new(ErrorKind::from_code(status.cast_unsigned()), text))
}

/// A place for the words of a failure.
pub(super) fn no_error() -> ForebayError {
    ForebayError { size: size_of::<ForebayError>(), message: [0; 1016] }
}

/// Bytes that are given back when this is dropped.
struct Owned {
    data: ForebayData,
}

// SAFETY: the header asks that the bytes do not change and that `release` may be called on any thread.
unsafe impl Send for Owned {}
// SAFETY: as above.
unsafe impl Sync for Owned {}

impl Owned {
    fn new(data: ForebayData) -> Self {
        Self { data }
    }
}

impl AsRef<[u8]> for Owned {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: `place` looked at pointer and length, and the plugin promises the bytes until the release.
        unsafe { slice::from_raw_parts(self.data.bytes.cast(), self.data.len) }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if let Some(release) = self.data.release {
            // SAFETY: the plugin's own function with its own argument, once: nothing clones this.
            unsafe { release(self.data.owner) }
        }
    }
}

/// Runs `work` with the host behind a face, and keeps its failure.
fn with<T>(host: *mut ForebayHost, otherwise: T, work: impl FnOnce(&mut CHost<'_>) -> Result<T>) -> T {
    // SAFETY: null, or what `face` gave, which is reached by nothing else during a call of the plugin.
    let Some(host) = (unsafe { host.cast::<CHost<'_>>().as_mut() }) else { return otherwise };
    work(host).unwrap_or_else(|error| {
        host.failed.get_or_insert(error);
        otherwise
    })
}

fn done(host: *mut ForebayHost, work: impl FnOnce(&mut CHost<'_>) -> Result<()>) -> i32 {
    with(host, c::FOREBAY_BUG, |host| work(host).map(|()| c::FOREBAY_OK))
}

/// The text at `text`, for as long as the call that gave it.
///
/// # Safety
/// Null, or text that ends with a zero.
pub(super) unsafe fn text<'a>(text: *const c_char, what: &str) -> Result<&'a str> {
    if text.is_null() {
        return Err(broken(format!("gave no {what}: a null pointer")));
    }
    // SAFETY: the caller's promise.
    let bytes = unsafe { CStr::from_ptr(text) };
    bytes.to_str().map_err(|_| broken(format!("gave a {what} that is not UTF-8: {bytes:?}")))
}

unsafe extern "C" fn alloc(host: *mut ForebayHost, len: usize) -> *mut c_void {
    with(host, std::ptr::null_mut(), |host| {
        let most = host.cx.limits().bytes;
        if len as u64 > most {
            return Err(Error::limit(format!("asked for {len} bytes of output, at most {most}")));
        }
        let block = host.cx.alloc(len)?;
        Ok(host.builder.keep(block).cast())
    })
}

unsafe extern "C" fn cancelled(host: *mut ForebayHost) -> i32 {
    with(host, 0, |host| Ok(host.cx.cancelled().into()))
}

unsafe extern "C" fn log(host: *mut ForebayHost, level: u32, line: *const c_char) -> i32 {
    done(host, |host| {
        let level = match level {
            1 => Level::Error,
            2 => Level::Warning,
            3 => Level::Info,
            _ => Level::Detail,
        };
        // SAFETY: the header asks for text that ends with a zero; here and below.
        host.cx.log(level, unsafe { text(line, "line for the log") }?);
        Ok(())
    })
}

unsafe extern "C" fn put_null(host: *mut ForebayHost, at: u32) -> i32 {
    done(host, |host| host.builder.put(at, Value::NULL))
}

unsafe extern "C" fn put_bool(host: *mut ForebayHost, at: u32, truth: i32) -> i32 {
    done(host, |host| host.builder.put(at, (truth != 0).into()))
}

unsafe extern "C" fn put_int(host: *mut ForebayHost, at: u32, number: i64) -> i32 {
    done(host, |host| host.builder.put(at, number.into()))
}

unsafe extern "C" fn put_uint(host: *mut ForebayHost, at: u32, number: u64) -> i32 {
    done(host, |host| host.builder.put(at, number.into()))
}

unsafe extern "C" fn put_float(host: *mut ForebayHost, at: u32, number: f64) -> i32 {
    done(host, |host| host.builder.put(at, number.into()))
}

unsafe extern "C" fn put_text(host: *mut ForebayHost, at: u32, text: *const c_char, len: usize) -> i32 {
    done(host, |host| {
        if len > 0 && (text.is_null() || isize::try_from(len).is_err()) {
            return Err(broken(format!("gave a text of {len} bytes at {text:?}")));
        }
        let bytes = match len {
            0 => &[],
            // SAFETY: the header asks for so many bytes; neither null nor too many, as just seen.
            _ => unsafe { slice::from_raw_parts(text.cast::<u8>(), len) },
        };
        let text = std::str::from_utf8(bytes)
            .map_err(|error| broken(format!("gave text that is not UTF-8: byte {}", error.valid_up_to())))?;
        host.builder.put(at, text.into())
    })
}

unsafe extern "C" fn put_bytes(host: *mut ForebayHost, at: u32, data: ForebayData) -> i32 {
    done(host, |host| {
        let place = host.place(data)?;
        host.builder.put_data(at, place, BytesKind::Bytes)
    })
}

unsafe extern "C" fn put_tensor(
    host: *mut ForebayHost,
    at: u32,
    dtype: u32,
    axes: usize,
    shape: *const i64,
    data: ForebayData,
) -> i32 {
    done(host, |host| {
        let place = host.place(data)?;
        let dtype = named(dtype)?;
        if axes > MAX_DIMS || (shape.is_null() && axes > 0) {
            return Err(broken(format!("gave a tensor of {axes} axes at {shape:?}, at most {MAX_DIMS}")));
        }
        let shape = match axes {
            0 => &[],
            // SAFETY: the header asks for so many numbers; neither null nor many, as just seen.
            _ => unsafe { slice::from_raw_parts(shape, axes) },
        };
        let axis = |axis: &i64| usize::try_from(*axis);
        let shape: Vec<_> = shape
            .iter()
            .map(axis)
            .collect::<Result<_, _>>()
            .map_err(|_| broken(format!("gave a tensor with a negative axis: {shape:?}")))?;
        host.builder.put_data(at, place, BytesKind::Tensor(dtype, shape))
    })
}

/// The type that a word names.
fn named(dtype: u32) -> Result<DType> {
    let [code, bits, low, high] = dtype.to_le_bytes();
    let found = DType { code, bits, lanes: u16::from_le_bytes([low, high]) };
    let is_known = DType::NAMED.iter().any(|(known, _)| *known == found);
    is_known.then_some(found).ok_or_else(|| broken(format!("gave a tensor of the unknown dtype {dtype:#x}")))
}

unsafe extern "C" fn put_arrow(
    host: *mut ForebayHost,
    at: u32,
    schema: *mut ArrowSchema,
    array: *mut ArrowArray,
) -> i32 {
    done(host, |host| {
        if schema.is_null() || array.is_null() {
            return Err(broken("gave Arrow columns at a null pointer"));
        }
        // SAFETY: the header asks for both; the specification's way of moving them: a copy, and no release in the original.
        let data = unsafe {
            let data = ArrowData { schema: schema.read(), array: array.read() };
            (*schema).release = None;
            (*array).release = None;
            data
        };
        if data.schema.release.is_none() || data.array.release.is_none() {
            return Err(broken("gave Arrow columns that were released before"));
        }
        host.builder.put(at, data.into())
    })
}

unsafe extern "C" fn put_list(host: *mut ForebayHost, at: u32) -> i32 {
    done(host, |host| host.builder.put_list(at))
}

unsafe extern "C" fn put_struct(host: *mut ForebayHost, at: u32) -> i32 {
    done(host, |host| host.builder.put_struct(at))
}

unsafe extern "C" fn add_item(host: *mut ForebayHost, list: u32) -> u32 {
    with(host, c::FOREBAY_NONE, |host| host.builder.add_item(list))
}

unsafe extern "C" fn add_field(host: *mut ForebayHost, fields: u32, name: *const c_char) -> u32 {
    with(host, c::FOREBAY_NONE, |host| {
        // SAFETY: as for `log`.
        host.builder.add_field(fields, unsafe { text(name, "name of a field") }?)
    })
}

unsafe extern "C" fn set_key(
    host: *mut ForebayHost,
    origin: *const c_char,
    name: *const c_char,
    index: u64,
) -> i32 {
    done(host, |host| {
        // SAFETY: as for `log`, for both.
        let origin = unsafe { text(origin, "origin of a key") }?;
        // SAFETY: as above.
        let name = if name.is_null() { "" } else { unsafe { text(name, "name of a key") }? };
        host.key = Some(Key { origin: origin.into(), name: name.into(), index });
        Ok(())
    })
}

unsafe extern "C" fn set_number(host: *mut ForebayHost, number: u64) -> i32 {
    done(host, |host| {
        host.number = Some(number);
        Ok(())
    })
}
