//! What an element is, and its bytes as this machine has them.

use std::{borrow::Cow, fmt};

use forebay_core::DType;

/// The type of an element: its size in the file, and what it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Datatype {
    /// Bytes in the file.
    pub size: usize,
    /// What it is.
    pub class: Class,
}

/// What an element is.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Class {
    /// An integer, a bit field (without sign) or a time (with one), of some of the bits.
    Int {
        /// Whether it is in two's complement.
        signed: bool,
        /// The order of the bytes.
        order: Order,
        /// The lowest bit that counts.
        offset: u16,
        /// How many bits count.
        precision: u16,
    },
    /// A float.
    Float {
        /// The order of the bytes.
        order: Order,
        /// Where its parts are.
        form: FloatForm,
    },
    /// Text of a fixed length.
    Text {
        /// 0 ends with a zero, 1 is padded with zeros, 2 with spaces.
        pad: u8,
        /// Whether it is UTF-8, or else ASCII.
        utf8: bool,
    },
    /// Text of any length, in the file's global heap.
    VarText {
        /// Whether it is UTF-8, or else ASCII.
        utf8: bool,
    },
    /// Any number of elements, in the file's global heap.
    VarList(Box<Datatype>),
    /// Bytes.
    Opaque {
        /// What they are, to whom wrote them.
        tag: String,
    },
    /// A record.
    Compound(Vec<Member>),
    /// The address of an object, or a part of a dataset.
    Reference {
        /// Whether it leads to something else than an object as such.
        region: bool,
    },
    /// An integer with names for its values.
    Enum {
        /// The integer.
        base: Box<Datatype>,
        /// Each name, and the bytes of its value.
        names: Vec<(String, Vec<u8>)>,
    },
    /// Elements of a fixed shape.
    Array {
        /// One of them.
        base: Box<Datatype>,
        /// The length of each axis.
        dims: Vec<usize>,
    },
}

/// The order of an element's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The lowest first.
    Little,
    /// The highest first.
    Big,
    /// As a VAX had it.
    Vax,
}

/// Where the parts of a float are, in bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FloatForm {
    pub(crate) offset: u16,
    pub(crate) precision: u16,
    pub(crate) sign: u8,
    /// Lowest bit and width, here and below.
    pub(crate) exponent: (u8, u8),
    pub(crate) mantissa: (u8, u8),
    pub(crate) bias: u32,
    /// Whether the highest bit of the mantissa is not stored.
    pub(crate) implied: bool,
}

/// A member of a record.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// Where in the record's bytes it starts.
    pub offset: usize,
    /// What it is.
    pub datatype: Datatype,
}

impl Datatype {
    /// The type of the numbers that it is made of and the shape of one element, if it is made of numbers of one type.
    ///
    /// A complex number, which is a record of `r` and `i`, is a pair; a boolean, which is an enumeration of `FALSE` and
    /// `TRUE`, a truth value.
    #[must_use]
    pub fn numbers(&self) -> Option<(DType, Vec<usize>)> {
        match &self.class {
            Class::Array { base, dims } => {
                let (dtype, inner) = base.numbers()?;
                Some((dtype, [dims.as_slice(), &inner].concat()))
            }
            Class::Compound(_) => Some((self.complex()?.scalar()?, vec![2])),
            _ => Some((self.scalar()?, Vec::new())),
        }
    }

    fn complex(&self) -> Option<&Self> {
        let Class::Compound(members) = &self.class else { return None };
        let [real, imaginary] = members.as_slice() else { return None };
        let names = real.name == "r" && imaginary.name == "i";
        let floats =
            matches!(real.datatype.class, Class::Float { .. }) && real.datatype == imaginary.datatype;
        let adjacent =
            real.offset == 0 && imaginary.offset == real.datatype.size && 2 * real.datatype.size == self.size;
        (names && floats && adjacent).then_some(&real.datatype)
    }

    fn scalar(&self) -> Option<DType> {
        match &self.class {
            Class::Int { signed, .. } => int_dtype(self.size, *signed),
            Class::Float { form, order } if *order != Order::Vax => form.dtype(self.size),
            Class::Enum { base, names } => {
                let is = |at: usize, name: &str, value: u8| {
                    names.get(at).is_some_and(|(given, bytes)| given == name && *bytes == [value])
                };
                let truth = names.len() == 2 && is(0, "FALSE", 0) && is(1, "TRUE", 1);
                if truth { Some(DType::BOOL) } else { base.scalar() }
            }
            Class::Reference { region: false } => int_dtype(self.size, false),
            _ => None,
        }
    }

    /// Bytes of an element in this machine's form: records without gaps.
    #[must_use]
    pub fn native_size(&self) -> usize {
        match &self.class {
            Class::Float { .. } => self.scalar().map_or(self.size, DType::size),
            Class::Compound(members) => members.iter().map(|member| member.datatype.native_size()).sum(),
            Class::Array { base, .. } => self.size / base.size * base.native_size(),
            _ => self.size,
        }
    }

    /// Whether the bytes in the file are already in this machine's form.
    #[must_use]
    pub fn is_native(&self) -> bool {
        match &self.class {
            Class::Int { order, offset, precision, .. } => {
                // Larger ones are bytes.
                self.size > 8
                    || self.size == 1 && usize::from(*precision) == 8
                    || *order == Order::Little && *offset == 0 && usize::from(*precision) == 8 * self.size
            }
            Class::Float { order, form } => {
                form.dtype(self.size).is_none() || *order == Order::Little && form.is_standard(self.size)
            }
            Class::Enum { base, .. } | Class::Array { base, .. } => base.is_native(),
            Class::Compound(members) => {
                let mut end = 0;
                let packed = members.iter().all(|member| {
                    let fits = member.offset == end && member.datatype.is_native();
                    end += member.datatype.size;
                    fits
                });
                packed && end == self.size
            }
            _ => true,
        }
    }

    /// Elements in this machine's form: as they are, if that is it already.
    #[must_use]
    pub fn native<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        if self.is_native() {
            return Cow::Borrowed(bytes);
        }
        let mut native = vec![0; bytes.len() / self.size * self.native_size()];
        self.write_native(bytes, &mut native);
        Cow::Owned(native)
    }

    /// Writes elements in this machine's form.
    pub(crate) fn write_native(&self, bytes: &[u8], out: &mut [u8]) {
        let elements = bytes.chunks_exact(self.size).zip(out.chunks_exact_mut(self.native_size().max(1)));
        match &self.class {
            _ if self.is_native() => out.copy_from_slice(bytes),
            Class::Int { order: Order::Big, offset: 0, precision, .. }
                if usize::from(*precision) == 8 * self.size =>
            {
                reverse(self.size, bytes, out);
            }
            Class::Float { order: Order::Big, form } if form.is_standard(self.size) => {
                reverse(self.size, bytes, out)
            }
            Class::Int { .. } => elements.for_each(|(from, to)| self.write_int(from, to)),
            Class::Float { order, form } => elements.for_each(|(from, to)| form.write(*order, from, to)),
            Class::Enum { base, .. } | Class::Array { base, .. } => base.write_native(bytes, out),
            Class::Compound(members) => elements.for_each(|(from, to)| {
                let mut end = 0;
                for Member { offset, datatype, .. } in members {
                    let start = end;
                    end += datatype.native_size();
                    datatype.write_native(&from[*offset..*offset + datatype.size], &mut to[start..end]);
                }
            }),
            _ => out.copy_from_slice(bytes),
        }
    }

    fn write_int(&self, from: &[u8], to: &mut [u8]) {
        let Class::Int { signed, order, offset, precision } = self.class else { return };
        let bits = number(order, from) >> offset;
        let unused = 128 - u32::from(precision).clamp(1, 128);
        let value = match signed {
            true => (((bits << unused) as i128) >> unused) as u128,
            false => bits << unused >> unused,
        };
        let bytes = value.to_le_bytes();
        to.iter_mut().zip(bytes).for_each(|(to, byte)| *to = byte);
    }
}

fn int_dtype(size: usize, signed: bool) -> Option<DType> {
    Some(match (size, signed) {
        (1, true) => DType::I8,
        (2, true) => DType::I16,
        (4, true) => DType::I32,
        (8, true) => DType::I64,
        (1, false) => DType::U8,
        (2, false) => DType::U16,
        (4, false) => DType::U32,
        (8, false) => DType::U64,
        _ => return None,
    })
}

/// The bits of an element of at most 16 bytes.
fn number(order: Order, bytes: &[u8]) -> u128 {
    let add = |value: u128, byte: &u8| value << 8 | u128::from(*byte);
    match order {
        Order::Big => bytes.iter().take(16).fold(0, add),
        _ => bytes.iter().take(16).rev().fold(0, add),
    }
}

/// Turns the bytes of each element round.
fn reverse(size: usize, bytes: &[u8], out: &mut [u8]) {
    fn fixed<const SIZE: usize>(bytes: &[u8], out: &mut [u8]) {
        for (to, from) in out.as_chunks_mut::<SIZE>().0.iter_mut().zip(bytes.as_chunks::<SIZE>().0) {
            *to = *from;
            to.reverse();
        }
    }
    match size {
        2 => fixed::<2>(bytes, out),
        4 => fixed::<4>(bytes, out),
        8 => fixed::<8>(bytes, out),
        _ => out.chunks_exact_mut(size).zip(bytes.chunks_exact(size)).for_each(|(to, from)| {
            to.copy_from_slice(from);
            to.reverse();
        }),
    }
}

impl FloatForm {
    /// The type that holds every such number: the standard ones themselves, others the next larger.
    fn dtype(&self, size: usize) -> Option<DType> {
        match (size, self.exponent.1, self.mantissa.1) {
            _ if !self.implied || size > 16 => None,
            (2, 8, 7) if self.bias == 127 => Some(DType::BF16),
            (_, exponent, mantissa) if exponent <= 5 && mantissa <= 10 && size <= 2 => {
                (self.is_standard(size)).then_some(DType::F16).or(Some(DType::F32))
            }
            (_, exponent, mantissa) if exponent <= 8 && mantissa <= 23 => Some(DType::F32),
            (_, exponent, mantissa) if exponent <= 11 && mantissa <= 52 => Some(DType::F64),
            _ => None,
        }
    }

    /// Whether it is an IEEE number, or a bfloat16, of this size.
    fn is_standard(&self, size: usize) -> bool {
        let parts = (size, self.sign, self.exponent, self.mantissa, self.bias);
        let known = [
            (2, 15, (10, 5), (0, 10), 15),
            (2, 15, (7, 8), (0, 7), 127),
            (4, 31, (23, 8), (0, 23), 127),
            (8, 63, (52, 11), (0, 52), 1023),
        ];
        self.implied && known.contains(&parts)
    }

    /// Writes an odd float as the next larger standard one.
    fn write(&self, order: Order, from: &[u8], to: &mut [u8]) {
        let bits = number(order, from);
        let part = |(at, width): (u8, u8)| bits >> at & ((1 << width) - 1);
        let (exponent, mantissa) = (part(self.exponent), part(self.mantissa));
        let fraction = mantissa as f64 / 2_f64.powi(self.mantissa.1.into());
        let scale = |exponent: i64| 2_f64.powi((exponent - i64::from(self.bias)) as i32);
        let value = match exponent {
            0 => fraction * scale(1),
            _ if exponent == (1 << self.exponent.1) - 1 => {
                if mantissa == 0 {
                    f64::INFINITY
                } else {
                    f64::NAN
                }
            }
            _ => (1.0 + fraction) * scale(exponent as i64),
        };
        let value = if bits >> self.sign & 1 == 1 { -value } else { value };
        match to.len() {
            4 => to.copy_from_slice(&(value as f32).to_le_bytes()),
            8 => to.copy_from_slice(&value.to_le_bytes()),
            _ => {}
        }
    }
}

impl fmt::Display for Datatype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((dtype, dims)) = self.numbers() {
            return if dims.is_empty() { write!(f, "{dtype}") } else { write!(f, "{dtype} {dims:?}") };
        }
        match &self.class {
            Class::Text { .. } => write!(f, "text of {} bytes", self.size),
            Class::VarText { .. } => f.write_str("text"),
            Class::VarList(base) => write!(f, "list of {base}"),
            Class::Array { base, dims } => write!(f, "{base} {dims:?}"),
            Class::Compound(members) => {
                f.write_str("{")?;
                for (nth, Member { name, datatype, .. }) in members.iter().enumerate() {
                    write!(f, "{}{name}: {datatype}", if nth == 0 { "" } else { ", " })?;
                }
                f.write_str("}")
            }
            _ => write!(f, "{} bytes", self.size),
        }
    }
}
