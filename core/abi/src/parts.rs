//! Arrow columns in safe terms: the parts that the C Data structs are made from, and read back into.
//!
//! Source: <https://arrow.apache.org/docs/format/CDataInterface.html>, sections "Data type description" and "Structure
//! definitions"; which buffers an array has: <https://arrow.apache.org/docs/format/Columnar.html#buffer-listing-for-each-layout>.

use std::{
    ffi::{CStr, CString, c_char, c_void},
    ptr, slice,
};

use crate::{
    ArrowArray, ArrowData, ArrowSchema, Buffer, Value, View,
    layout::{extent, layout, order},
};

/// The most arrays that may lie within each other.
const DEPTH: usize = 64;
/// What an empty buffer points at, so that it is aligned for any type.
static NOTHING: u128 = 0;

/// One array with its type, as the C Data Interface describes both.
///
/// [`ArrowData::new`] makes the structs of it, and [`Value::arrow`] reads them back; both share the buffers. That every buffer is as
/// long as format, length and offset ask for is checked, what is in it is not.
///
/// ```
/// use forebay_abi::{ArrowData, ArrowParts, Buffer, Value};
///
/// let numbers = Buffer::from(vec![1, 2, 3]);
/// let parts = ArrowParts::new("C", 3, vec![None, Some(numbers.clone())]);
/// let value = Value::from(ArrowData::new(parts)?);
/// let back = value.arrow()?;
/// assert_eq!((back.length, back.buffers[1].as_ref().map(|bytes| bytes.as_ptr())), (3, Some(numbers.as_ptr())));
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ArrowParts {
    /// The type's format string.
    pub format: String,
    /// The column's name.
    pub name: String,
    /// The type's metadata, which names extension types.
    pub metadata: Vec<(String, String)>,
    /// 1 dictionary ordered, 2 nullable, 4 map keys sorted.
    pub flags: i64,
    /// How many values there are.
    pub length: usize,
    /// How many of them are null, where that is known.
    pub nulls: Option<usize>,
    /// How many values to pass over at the start of the buffers.
    pub offset: usize,
    /// The buffers in the specification's order: validity first, where the type has one.
    pub buffers: Vec<Option<Buffer>>,
    /// The arrays within this one.
    pub children: Vec<ArrowParts>,
    /// The values that this array's numbers stand for.
    pub dictionary: Option<Box<ArrowParts>>,
}

impl ArrowParts {
    /// A nullable array without a name, an offset or children, and with an unknown number of nulls.
    #[must_use]
    pub fn new(format: impl Into<String>, length: usize, buffers: Vec<Option<Buffer>>) -> Self {
        Self { format: format.into(), flags: 2, length, buffers, ..Self::default() }
    }

    /// How many bytes all buffers have; those that parts share count each time.
    #[must_use]
    pub fn size(&self) -> usize {
        let own: usize = self.buffers.iter().flatten().map(|buffer| buffer.len()).sum();
        own + self.children.iter().chain(self.dictionary.as_deref()).map(Self::size).sum::<usize>()
    }
}

impl ArrowData {
    /// The structs of these parts, which keep the buffers.
    ///
    /// Cost: six small allocations an array, whatever its length.
    ///
    /// # Errors
    /// A sentence, when a buffer is missing or too short for format, length and offset, or text has a zero byte.
    pub fn new(parts: ArrowParts) -> Result<Self, String> {
        check(&parts, DEPTH)?;
        let schema = schema_of(&parts)?;
        Ok(Self { schema, array: array_of(parts) })
    }
}

impl Value {
    /// The parts of Arrow columns, whose buffers keep this value.
    ///
    /// # Errors
    /// A sentence, when this is no Arrow value, or its format is not one of the specification's.
    pub fn arrow(&self) -> Result<ArrowParts, String> {
        let View::Arrow(data) = self.view() else { return Err(format!("{self:?} is no Arrow value")) };
        // SAFETY: the structs are a producer's, filled as the specification has it, and live as long as `self`.
        unsafe { read(&data.schema, &data.array, self, DEPTH) }
    }
}

/// Checks that every buffer reaches as far as the rest says.
fn check(parts: &ArrowParts, depth: usize) -> Result<(), String> {
    let within = |error| format!("{error} in an array of format `{}`", parts.format);
    if parts.format.contains('\0') || parts.name.contains('\0') {
        return Err(format!("a zero byte in {:?} or {:?}", parts.format, parts.name));
    }
    let layout = layout(&parts.format)?;
    let rows = parts.length.checked_add(parts.offset).filter(|rows| i64::try_from(*rows).is_ok());
    let rows = rows.ok_or_else(|| within("too many values".to_owned()))?;
    if depth == 0 || layout.children.is_some_and(|count| count != parts.children.len()) {
        return Err(within(format!("found {} children", parts.children.len())));
    }
    let count = parts.buffers.len();
    for at in order(&layout, count).map_err(within)? {
        let needed = extent(&layout, at, count, rows, &parts.buffers).map_err(within)?;
        match parts.buffers.get(at).and_then(Option::as_ref) {
            None if (layout.validity && at == 0) || needed == 0 => {}
            Some(buffer) if buffer.len() >= needed => {}
            found => {
                let found = found.map_or(0, |buffer| buffer.len());
                return Err(within(format!("buffer {at} has {found} bytes, expected {needed}")));
            }
        }
    }
    parts.children.iter().chain(parts.dictionary.as_deref()).try_for_each(|part| check(part, depth - 1))
}

/// What an exported schema keeps.
struct SchemaHeld {
    _text: [CString; 2],
    _metadata: Vec<u8>,
    children: Vec<*mut ArrowSchema>,
    dictionary: *mut ArrowSchema,
}

/// What an exported array keeps.
struct ArrayHeld {
    _buffers: Vec<Option<Buffer>>,
    pointers: Vec<*const c_void>,
    children: Vec<*mut ArrowArray>,
    dictionary: *mut ArrowArray,
}

fn schema_of(parts: &ArrowParts) -> Result<ArrowSchema, String> {
    let text = |text: &str| CString::new(text).map_err(|_| format!("{text:?} has a zero byte"));
    let text = [text(&parts.format)?, text(&parts.name)?];
    let metadata = metadata_of(&parts.metadata)?;
    let boxed = |part: &ArrowParts| schema_of(part).map(|schema| Box::into_raw(Box::new(schema)));
    let mut schema = ArrowSchema {
        format: text[0].as_ptr(),
        name: text[1].as_ptr(),
        metadata: if metadata.is_empty() { ptr::null() } else { metadata.as_ptr().cast::<c_char>() },
        flags: parts.flags,
        n_children: parts.children.len() as i64,
        children: ptr::null(),
        dictionary: ptr::null(),
        release: Some(release_schema),
        private_data: ptr::null_mut(),
    };
    // `check` has seen that no text is unfit, so none of these fails.
    let children = parts.children.iter().map(boxed).collect::<Result<Vec<_>, _>>()?;
    let dictionary = parts.dictionary.as_deref().map(boxed).transpose()?.unwrap_or(ptr::null_mut());
    let held = Box::new(SchemaHeld { _text: text, _metadata: metadata, children, dictionary });
    schema.children = held.children.as_ptr().cast();
    schema.dictionary = dictionary.cast_const().cast();
    schema.private_data = Box::into_raw(held).cast();
    Ok(schema)
}

/// Keys and values as the specification packs them.
fn metadata_of(pairs: &[(String, String)]) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    let len = |len: usize| i32::try_from(len).map_err(|_| "metadata of more than 2 GiB".to_owned());
    if !pairs.is_empty() {
        out.extend(len(pairs.len())?.to_ne_bytes());
    }
    for text in pairs.iter().flat_map(|(key, value)| [key, value]) {
        out.extend(len(text.len())?.to_ne_bytes());
        out.extend(text.as_bytes());
    }
    Ok(out)
}

fn array_of(parts: ArrowParts) -> ArrowArray {
    let boxed = |part: ArrowParts| Box::into_raw(Box::new(array_of(part)));
    let pointers = parts.buffers.iter().map(|buffer| match buffer {
        None => ptr::null(),
        Some(buffer) if buffer.is_empty() => (&raw const NOTHING).cast(),
        Some(buffer) => buffer.as_ptr().cast(),
    });
    let held = Box::new(ArrayHeld {
        pointers: pointers.collect(),
        _buffers: parts.buffers,
        children: parts.children.into_iter().map(boxed).collect(),
        dictionary: parts.dictionary.map_or(ptr::null_mut(), |part| boxed(*part)),
    });
    ArrowArray {
        length: parts.length as i64,
        null_count: parts.nulls.map_or(-1, |nulls| nulls as i64),
        offset: parts.offset as i64,
        n_buffers: held.pointers.len() as i64,
        n_children: held.children.len() as i64,
        buffers: held.pointers.as_ptr().cast(),
        children: held.children.as_ptr().cast(),
        dictionary: held.dictionary.cast_const().cast(),
        release: Some(release_array),
        private_data: Box::into_raw(held).cast(),
    }
}

unsafe extern "C" fn release_schema(schema: *mut c_void) {
    // SAFETY: the specification: the address of a schema that `schema_of` made and nobody has released.
    let schema = unsafe { &mut *schema.cast::<ArrowSchema>() };
    // SAFETY: `private_data` is the box that `schema_of` made.
    let held = unsafe { Box::from_raw(schema.private_data.cast::<SchemaHeld>()) };
    for &child in held.children.iter().chain(Some(&held.dictionary)).filter(|child| !child.is_null()) {
        // SAFETY: each is a box that `schema_of` made; a consumer that moved one out has set its release to none.
        unsafe {
            if let Some(release) = (*child).release {
                release(child.cast());
            }
            drop(Box::from_raw(child));
        }
    }
    schema.release = None;
}

unsafe extern "C" fn release_array(array: *mut c_void) {
    // SAFETY: the specification: the address of an array that `array_of` made and nobody has released.
    let array = unsafe { &mut *array.cast::<ArrowArray>() };
    // SAFETY: `private_data` is the box that `array_of` made.
    let held = unsafe { Box::from_raw(array.private_data.cast::<ArrayHeld>()) };
    for &child in held.children.iter().chain(Some(&held.dictionary)).filter(|child| !child.is_null()) {
        // SAFETY: each is a box that `array_of` made; a consumer that moved one out has set its release to none.
        unsafe {
            if let Some(release) = (*child).release {
                release(child.cast());
            }
            drop(Box::from_raw(child));
        }
    }
    array.release = None;
}

/// Bytes that lie behind an Arrow value, which keeps them.
struct Kept {
    ptr: *const u8,
    len: usize,
    _value: Value,
}

// SAFETY: the bytes are immutable, and the value that keeps them is Send and Sync.
unsafe impl Send for Kept {}
// SAFETY: as above.
unsafe impl Sync for Kept {}

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: `read` was told that so many bytes lie there, for as long as the value is kept.
        unsafe { slice::from_raw_parts(self.ptr, self.len) }
    }
}

/// # Safety
/// Both structs are as the specification has it, of one array, and live as long as `owner`.
unsafe fn read(
    schema: &ArrowSchema,
    array: &ArrowArray,
    owner: &Value,
    depth: usize,
) -> Result<ArrowParts, String> {
    if depth == 0 {
        return Err(format!("arrays lie more than {DEPTH} levels within each other"));
    }
    let count = |number: i64| usize::try_from(number).map_err(|_| format!("found {number} for a length"));
    // SAFETY: the caller's promise, here and below.
    let format = unsafe { text(schema.format) };
    let layout = layout(&format)?;
    let (length, offset) = (count(array.length)?, count(array.offset)?);
    let rows = length.checked_add(offset).ok_or("too many values")?;
    let buffers = count(array.n_buffers)?;
    let mut known = vec![None; buffers];
    for at in order(&layout, buffers)? {
        // SAFETY: there are so many pointers.
        let ptr = unsafe { *array.buffers.cast::<*const u8>().add(at) };
        let len = extent(&layout, at, buffers, rows, &known)?;
        if !ptr.is_null() {
            known[at] = Some(Buffer::from_owner(Kept { ptr, len, _value: owner.clone() }));
        }
    }
    let children = (0..count(array.n_children)?).map(|at| {
        // SAFETY: array and schema have so many children.
        unsafe {
            let schema = &**schema.children.cast::<*const ArrowSchema>().add(at);
            read(schema, &**array.children.cast::<*const ArrowArray>().add(at), owner, depth - 1)
        }
    });
    let children = children.collect::<Result<_, _>>()?;
    let dictionary = match schema.dictionary.is_null() || array.dictionary.is_null() {
        true => None,
        // SAFETY: both are there.
        false => Some(Box::new(unsafe {
            read(&*schema.dictionary.cast(), &*array.dictionary.cast(), owner, depth - 1)
        }?)),
    };
    // SAFETY: null, or as the specification packs it.
    let (name, metadata) = unsafe { (text(schema.name), metadata(schema.metadata.cast())) };
    let nulls = usize::try_from(array.null_count).ok();
    let flags = schema.flags;
    Ok(ArrowParts {
        format,
        name,
        metadata,
        flags,
        length,
        nulls,
        offset,
        buffers: known,
        children,
        dictionary,
    })
}

/// # Safety
/// Null, or text that ends in a zero byte.
unsafe fn text(text: *const c_char) -> String {
    // SAFETY: the caller's promise.
    let text = (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) });
    text.map_or(String::new(), |text| text.to_string_lossy().into_owned())
}

/// # Safety
/// Null, or pairs as the specification packs them.
unsafe fn metadata(mut from: *const u8) -> Vec<(String, String)> {
    if from.is_null() {
        return Vec::new();
    }
    // SAFETY: the caller's promise: each number says how many pairs or bytes follow.
    unsafe {
        let pairs = count(&mut from);
        (0..pairs).map(|_| (sized(&mut from), sized(&mut from))).collect()
    }
}

/// # Safety
/// An integer of 32 bits stands there.
unsafe fn count(from: &mut *const u8) -> usize {
    // SAFETY: the caller's promise.
    let count = unsafe { from.cast::<i32>().read_unaligned() };
    *from = from.wrapping_add(4);
    usize::try_from(count).unwrap_or(0)
}

/// # Safety
/// A length of 32 bits stands there, and so many bytes behind it.
unsafe fn sized(from: &mut *const u8) -> String {
    // SAFETY: the caller's promise.
    let bytes = unsafe {
        let len = count(from);
        slice::from_raw_parts(*from, len)
    };
    *from = from.wrapping_add(bytes.len());
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(numbers: &[i32]) -> Option<Buffer> {
        Some(numbers.iter().flat_map(|number| number.to_ne_bytes()).collect::<Vec<_>>().into())
    }

    fn text(offsets: &[i32], text: &str) -> ArrowParts {
        let buffers = vec![None, bytes(offsets), Some(text.as_bytes().to_vec().into())];
        ArrowParts::new("u", offsets.len() - 1, buffers)
    }

    fn nested() -> ArrowParts {
        let words = Some(Box::new(text(&[0, 5, 9], "herongull")));
        let names =
            ArrowParts { dictionary: words, ..ArrowParts::new("i", 3, vec![None, bytes(&[1, 0, 1])]) };
        let list = ArrowParts {
            children: vec![names],
            name: "birds".into(),
            metadata: vec![("k".into(), "v".into()), (String::new(), "ü".into())],
            ..ArrowParts::new("+l", 1, vec![Some(vec![1].into()), bytes(&[0, 3])])
        };
        let mut views = vec![0_u8; 16];
        views[0] = 1;
        let lengths = Some(3_i64.to_ne_bytes().to_vec().into());
        let view = ArrowParts::new("vz", 1, vec![None, Some(views.into()), Some(vec![7; 3].into()), lengths]);
        ArrowParts { children: vec![list, view], ..ArrowParts::new("+s", 1, vec![None]) }
    }

    #[test]
    fn what_goes_in_comes_out_and_shares_its_buffers() {
        let parts = nested();
        let value = Value::from(ArrowData::new(parts.clone()).unwrap());
        let back = value.arrow().unwrap();
        assert_eq!(back, parts);
        drop(value);
        let (child, original) = (&back.children[0].children[0], &parts.children[0].children[0]);
        let place = |part: &ArrowParts| part.buffers[1].as_ref().unwrap().as_ptr();
        assert_eq!(place(child), place(original), "no copy");
        drop(parts);
        assert_eq!(back, nested(), "the buffers keep what they need");
    }

    #[test]
    fn a_child_that_was_moved_out_is_not_released_twice() {
        let mut data = ArrowData::new(nested()).unwrap();
        // SAFETY: as the specification lets a consumer move a child out.
        let moved = unsafe {
            let child = &mut **data.array.children.cast::<*mut ArrowArray>();
            let schema = &mut **data.schema.children.cast::<*mut ArrowSchema>();
            let moved = ArrowData { schema: ptr::read(schema), array: ptr::read(child) };
            (child.release, schema.release) = (None, None);
            moved
        };
        // Its own release takes the address of where it lies now.
        data.array.offset = 0;
        drop(data);
        assert_eq!(Value::from(moved).arrow().unwrap(), nested().children[0]);
    }

    #[test]
    fn buffers_that_do_not_reach_are_refused() {
        let short = |format: &str, length, buffers| ArrowData::new(ArrowParts::new(format, length, buffers));
        let cases = [
            short("i", 3, vec![None, bytes(&[1, 2])]),
            short("i", 3, vec![None, None]),
            short("i", 3, vec![bytes(&[0])]),
            short("i", usize::MAX, vec![None, bytes(&[1])]),
            short("u", 1, vec![None, bytes(&[0, 5]), Some(vec![1; 4].into())]),
            short("u", 1, vec![None, bytes(&[0, -1]), Some(vec![1; 4].into())]),
            short("b", 9, vec![Some(vec![1].into()), Some(vec![1, 1].into())]),
            short("vu", 1, vec![None, Some(vec![0; 16].into()), Some(vec![3].into()), bytes(&[2, 0])]),
            short("+l", 1, vec![None, bytes(&[0, 5])]),
            short("heron", 0, vec![]),
            ArrowData::new(ArrowParts { name: "a\0b".into(), ..ArrowParts::new("n", 1, vec![]) }),
        ];
        for (at, case) in cases.iter().enumerate() {
            assert!(case.is_err(), "case {at}");
        }
        assert!(short("u", 0, vec![None, None, None]).is_ok());
        assert!(Value::from(1_i64).arrow().is_err());
    }
}
