//! One field's value: a tag, a word beside it, and a buffer that holds or owns the rest.

use std::{any::TypeId, fmt, ptr, slice};

use abi_stable::StableAbi;

use crate::{ArrowData, Buffer, DType, Schema, Str, Tensor, shared::share};

mod from;
mod read;

/// The numbers that tell values apart. New ones may come; a host or plugin that does not know one
/// can still hold it, hand it on and free it.
pub mod tag {
    /// Nothing.
    pub const NULL: u32 = 0;
    /// One number or truth value: its type in the word beside, its bits in the buffer's length.
    pub const SCALAR: u32 = 1;
    /// UTF-8 text.
    pub const STR: u32 = 2;
    /// Bytes.
    pub const BYTES: u32 = 3;
    /// The buffer points at a [`Tensor`](crate::Tensor).
    pub const TENSOR: u32 = 4;
    /// The buffer points at values, as many as its length says.
    pub const LIST: u32 = 5;
    /// The buffer points at a [`Struct`](crate::Struct).
    pub const STRUCT: u32 = 6;
    /// The buffer points at an [`ArrowData`](crate::ArrowData).
    pub const ARROW: u32 = 7;
    /// The buffer points at something that only the plugin that made it can read.
    pub const OPAQUE: u32 = 8;
}

/// One field's value, 32 bytes: null, a number, text, bytes, a tensor, a list, named values, Arrow
/// columns, or something of a plugin's own.
///
/// Immutable and cheap to clone: a clone shares what lies behind it. Read it through
/// [`view`](Value::view).
///
/// ```
/// use forebay_abi::{Value, View};
///
/// let value = Value::from("heron");
/// assert!(matches!(value.view(), View::Str("heron")));
/// assert_eq!(Value::from(17_u8).as_i64(), Some(17));
/// assert!(matches!(Value::from(vec![0.5, 1.5]).view(), View::Tensor(_)));
/// ```
#[repr(C)]
#[derive(StableAbi, Clone, Default)]
pub struct Value {
    pub(crate) tag: u32,
    pub(crate) word: u32,
    pub(crate) payload: Buffer,
}

/// What a [`Value`] holds.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum View<'a> {
    /// Nothing.
    Null,
    /// Truth.
    Bool(bool),
    /// A signed integer of any width.
    Int(i64),
    /// An unsigned integer of any width.
    UInt(u64),
    /// A float of any width.
    Float(f64),
    /// Text.
    Str(&'a str),
    /// Bytes; a clone of the buffer shares them.
    Bytes(&'a Buffer),
    /// A block of numbers.
    Tensor(&'a Tensor),
    /// Values in order.
    List(&'a [Value]),
    /// Named values in order.
    Struct(&'a Struct),
    /// Arrow columns.
    Arrow(&'a ArrowData),
    /// Something only its maker reads; the text names its type.
    Opaque(&'a str),
    /// A kind of value that came after this release.
    Unknown(u32),
}

/// Named values in order, which whoever keeps this keeps too.
#[repr(C)]
#[derive(StableAbi)]
pub struct Struct {
    schema: Schema,
    /// One for each name.
    values: *const Value,
}

// SAFETY: schema and values are immutable, and both may be used from any thread.
unsafe impl Send for Struct {}
// SAFETY: as above.
unsafe impl Sync for Struct {}

impl Struct {
    /// What has these names and the values at `values`.
    ///
    /// # Safety
    /// There are as many values as names, and they live as long as this.
    pub(crate) unsafe fn over(schema: Schema, values: *const Value) -> Self {
        Self { schema, values }
    }

    /// The names.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The values, one for each name.
    #[must_use]
    pub fn values(&self) -> &[Value] {
        // SAFETY: the promise given to `over`.
        unsafe { slice::from_raw_parts(self.values, self.schema.len()) }
    }

    /// The value called `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.values().get(self.schema.position(name)?)
    }

    /// Names and values, in order.
    pub fn fields(&self) -> impl Iterator<Item = (&Str, &Value)> {
        self.schema.names().iter().zip(self.values())
    }
}

impl PartialEq for Struct {
    fn eq(&self, other: &Self) -> bool {
        self.schema == other.schema && self.values() == other.values()
    }
}

impl fmt::Debug for Struct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.fields()).finish()
    }
}

/// A struct that has its values to itself.
#[repr(C)]
struct Own {
    /// First, as a value points at it.
    fields: Struct,
    /// What `fields` points into.
    _values: Vec<Value>,
}

/// The head of an opaque value; what follows is known to its maker alone.
#[repr(C)]
struct Opaque<T> {
    name: Str,
    /// The address of [`HOME`] in the library that made it: `type_id` means something only there.
    home: *const u8,
    type_id: TypeId,
    value: T,
}

// SAFETY: `home` is only compared; `Value::opaque` asks that `T` is Send and Sync.
unsafe impl<T: Send> Send for Opaque<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Opaque<T> {}

/// Its address tells one library's copy of this crate from another's.
static HOME: u8 = 0;

impl Value {
    /// Nothing.
    pub const NULL: Self = Self { tag: tag::NULL, word: 0, payload: Buffer::EMPTY };

    pub(crate) const EMPTY_LIST: Self = {
        let payload = Buffer { ptr: ptr::dangling::<Self>().cast(), len: 0, owner: ptr::null() };
        Self { tag: tag::LIST, word: 0, payload }
    };

    /// A number of type `dtype` with these bits.
    #[must_use]
    #[inline]
    pub const fn scalar(dtype: DType, bits: u64) -> Self {
        let payload = Buffer { ptr: ptr::null(), len: bits as usize, owner: ptr::null() };
        Self { tag: tag::SCALAR, word: dtype.to_word(), payload }
    }

    /// A number of type `dtype` from the bytes of one element of a tensor; none unless there are 1, 2, 4 or 8.
    #[must_use]
    pub fn element(dtype: DType, bytes: &[u8]) -> Option<Self> {
        dtype.scalar_bits(bytes).map(|bits| Self::scalar(dtype, bits))
    }

    /// Values in order.
    #[must_use]
    pub fn list(values: Vec<Value>) -> Self {
        if values.is_empty() {
            return Self::EMPTY_LIST;
        }
        let (owner, values) = share(values);
        // SAFETY: `share` gives the place of a vector that the owner keeps.
        let values = unsafe { &*values };
        let payload = Buffer { ptr: values.as_ptr().cast(), len: values.len(), owner };
        Self { tag: tag::LIST, word: 0, payload }
    }

    /// Named values in order.
    #[must_use]
    pub fn structure(fields: Vec<(Str, Value)>) -> Self {
        let (names, values): (Vec<_>, Vec<_>) = fields.into_iter().unzip();
        Self::with_schema(Schema::new(names), values)
    }

    /// Named values, one for each name of `schema`, which others may share; missing values are null, surplus ones dropped.
    #[must_use]
    pub fn with_schema(schema: Schema, mut values: Vec<Value>) -> Self {
        values.resize(schema.len(), Self::NULL);
        // SAFETY: as many as names, since just now; a vector's values stay where they are when it is moved.
        let fields = unsafe { Struct::over(schema, values.as_ptr()) };
        Self::boxed(tag::STRUCT, Own { fields, _values: values })
    }

    /// Something that only this library reads back, with [`downcast`](Value::downcast).
    pub fn opaque<T: Send + Sync + 'static>(name: impl Into<Str>, value: T) -> Self {
        let home = &raw const HOME;
        Self::boxed(tag::OPAQUE, Opaque { name: name.into(), home, type_id: TypeId::of::<T>(), value })
    }

    fn boxed<T: Send + Sync + 'static>(tag: u32, value: T) -> Self {
        let (owner, value) = share(value);
        Self { tag, word: 0, payload: Buffer { ptr: value.cast(), len: 0, owner } }
    }

    /// The number that tells what this is; see [`tag`].
    #[must_use]
    #[inline]
    pub fn tag(&self) -> u32 {
        self.tag
    }

    /// What this holds.
    #[must_use]
    #[inline]
    pub fn view(&self) -> View<'_> {
        match self.tag {
            tag::NULL => View::Null,
            tag::SCALAR => self.view_scalar(),
            // SAFETY: the tag says that the payload is text (invariant of every constructor).
            tag::STR => View::Str(unsafe { std::str::from_utf8_unchecked(&self.payload) }),
            tag::BYTES => View::Bytes(&self.payload),
            // SAFETY: the tag says what the payload points at (invariant of `boxed`), for this and the others.
            tag::TENSOR => View::Tensor(unsafe { self.target() }),
            tag::LIST => {
                let Buffer { ptr, len, .. } = self.payload;
                // SAFETY: as above, and that there are as many as the length says.
                View::List(unsafe { slice::from_raw_parts(ptr.cast(), len) })
            }
            // SAFETY: as above.
            tag::STRUCT => View::Struct(unsafe { self.target() }),
            // SAFETY: as above.
            tag::ARROW => View::Arrow(unsafe { self.target() }),
            // SAFETY: as above; the name comes first whatever the type is.
            tag::OPAQUE => View::Opaque(unsafe { self.target::<Str>() }),
            unknown => View::Unknown(unknown),
        }
    }

    /// # Safety
    /// The payload points at a `T` that its owner keeps.
    unsafe fn target<T>(&self) -> &T {
        // SAFETY: the caller's promise.
        unsafe { &*self.payload.ptr.cast::<T>() }
    }

    #[expect(clippy::cast_possible_truncation, reason = "the type says how many bits count")]
    fn view_scalar(&self) -> View<'_> {
        let bits = self.bits();
        match DType::from_word(self.word) {
            DType::BOOL => View::Bool(bits != 0),
            DType::I8 => View::Int((bits as i8).into()),
            DType::I16 => View::Int((bits as i16).into()),
            DType::I32 => View::Int((bits as i32).into()),
            DType::I64 => View::Int(bits as i64),
            DType::U8 => View::UInt((bits as u8).into()),
            DType::U16 => View::UInt((bits as u16).into()),
            DType::U32 => View::UInt((bits as u32).into()),
            DType::U64 => View::UInt(bits),
            DType::F16 => View::Float(half_to_f64(bits as u16)),
            DType::BF16 => View::Float(f32::from_bits((bits as u32) << 16).into()),
            DType::F32 => View::Float(f32::from_bits(bits as u32).into()),
            DType::F64 => View::Float(f64::from_bits(bits)),
            _ => View::Unknown(self.tag),
        }
    }

    /// A scalar's bits; see [`dtype`](Value::dtype) for what they mean.
    #[must_use]
    #[inline]
    pub fn bits(&self) -> u64 {
        self.payload.len as u64
    }

    /// The bits of a scalar of this very type, if this is one.
    #[must_use]
    #[inline]
    pub fn bits_of(&self, dtype: DType) -> Option<u64> {
        (self.tag == tag::SCALAR && self.word == dtype.to_word()).then(|| self.bits())
    }

    /// The type of a scalar or of a tensor's elements.
    #[must_use]
    #[inline]
    pub fn dtype(&self) -> Option<DType> {
        if self.tag == tag::SCALAR {
            return Some(DType::from_word(self.word));
        }
        match self.view() {
            View::Tensor(tensor) => Some(tensor.dtype()),
            _ => None,
        }
    }

    /// The object, if [`opaque`](Value::opaque) of this very library made it of this type.
    #[must_use]
    pub fn downcast<T: 'static>(&self) -> Option<&T> {
        if self.tag != tag::OPAQUE {
            return None;
        }
        // SAFETY: what comes before the value lies at the same place for every type; `type_id` is read only
        // when the object is of this library, and the value only when it is of this type.
        unsafe {
            let head = self.payload.ptr.cast::<Opaque<()>>();
            let ours = (*head).home == &raw const HOME && (*head).type_id == TypeId::of::<T>();
            ours.then(|| &(*self.payload.ptr.cast::<Opaque<T>>()).value)
        }
    }

    /// About how many bytes of memory this keeps, beside its own 32.
    #[must_use]
    #[inline]
    pub fn size(&self) -> usize {
        // The tag first: most values in small samples are numbers.
        match self.tag {
            tag::NULL | tag::SCALAR => 0,
            tag::STR | tag::BYTES => self.payload.len,
            _ => self.size_behind(),
        }
    }

    fn size_behind(&self) -> usize {
        match self.view() {
            View::Tensor(tensor) => tensor.data().len(),
            View::List(values) => values.iter().map(|value| value.size() + size_of::<Self>()).sum(),
            View::Struct(fields) => {
                fields.values().iter().map(|value| value.size() + size_of::<Self>()).sum()
            }
            View::Arrow(_) => self.arrow().map_or(0, |parts| parts.size()),
            _ => 0,
        }
    }
}

/// IEEE half to double; every half is exact in a double.
fn half_to_f64(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let fraction = f64::from(bits & 0x3ff);
    sign * match bits >> 10 & 0x1f {
        0 => fraction * 2f64.powi(-24),
        0x1f if fraction == 0.0 => f64::INFINITY,
        0x1f => f64::NAN,
        exponent => (1.0 + fraction / 1024.0) * 2f64.powi(i32::from(exponent) - 15),
    }
}

impl PartialEq for Value {
    /// Floats are equal when their bits are; opaque and Arrow values when they are the same object.
    fn eq(&self, other: &Self) -> bool {
        if (self.tag, self.word) != (other.tag, other.word) {
            return false;
        }
        match (self.view(), other.view()) {
            _ if self.tag == tag::SCALAR => self.bits() == other.bits(),
            (View::Arrow(_) | View::Opaque(_) | View::Unknown(_), _) => self.payload.ptr == other.payload.ptr,
            (one, two) => one == two,
        }
    }
}

impl PartialEq for ArrowData {
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self, other)
    }
}

impl fmt::Debug for ArrowData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Arrow({} rows)", self.array.length)
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.view(), f)
    }
}
