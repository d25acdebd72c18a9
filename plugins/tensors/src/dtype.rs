//! What one element of an npy file is: the `descr` of its header.
//!
//! <https://numpy.org/doc/stable/reference/arrays.interface.html#arrays-interface>

use forebay_core::{DType, Error, Result};

use crate::literal::Literal;

/// The most fields that one element may have, those of fields too.
const FIELDS: usize = 4096;
/// The most bytes that one element may have, as in NumPy.
const ELEMENT: usize = i32::MAX as usize;

/// One element.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Element {
    /// Numbers; `parts` of them make one element, and one axis more if that is not 1.
    Number { dtype: DType, parts: usize, big: bool },
    /// So many bytes, filled up with zeros.
    Bytes(usize),
    /// So many characters in UTF-32, filled up with zeros.
    Text { len: usize, big: bool },
    /// Named fields, one after the other.
    Struct(Vec<Field>),
}

/// A field of a structured element.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Field {
    /// Empty for bytes between fields, which nobody sees.
    pub(crate) name: String,
    pub(crate) element: Element,
    /// The axes that each element has by itself.
    pub(crate) shape: Vec<usize>,
    /// Where it lies in the element around it.
    pub(crate) offset: usize,
}

impl Element {
    /// Reads a `descr`.
    pub(crate) fn read(descr: &Literal) -> Result<Self> {
        read(descr, &mut 0)
    }

    /// Bytes in one.
    pub(crate) fn size(&self) -> usize {
        match self {
            // None of these is above `ELEMENT`, which `read` has checked.
            Self::Number { dtype, parts, .. } => dtype.size() * parts,
            Self::Bytes(len) => *len,
            Self::Text { len, .. } => len * 4,
            Self::Struct(fields) => fields
                .last()
                .map_or(0, |last| last.offset + last.element.size() * last.shape.iter().product::<usize>()),
        }
    }
}

fn read(descr: &Literal, fields: &mut usize) -> Result<Element> {
    match descr {
        Literal::Str(code) => simple(code),
        Literal::Row(list) => {
            let mut read = Vec::new();
            let mut offset = 0;
            for item in list {
                *fields += 1;
                if *fields > FIELDS {
                    return Err(Error::limit(format!("more than {FIELDS} fields in one element")));
                }
                let (field, end) = field(item, offset, fields)?;
                if !field.name.is_empty() && read.iter().any(|other: &Field| other.name == field.name) {
                    return Err(Error::corrupt(format!("two fields are called `{}`", field.name)));
                }
                read.push(field);
                offset = end;
            }
            Ok(Element::Struct(read))
        }
        other => {
            Err(Error::corrupt(format!("found the type {other:?}, expected a string or a list of fields")))
        }
    }
}

/// A field that begins at `offset`, and where it ends.
fn field(item: &Literal, offset: usize, fields: &mut usize) -> Result<(Field, usize)> {
    let wrong =
        || Error::corrupt(format!("found the field {item:?}, expected (name, type) or (name, type, shape)"));
    let Literal::Row(parts) = item else { return Err(wrong()) };
    let (name, descr, shape) = match parts.as_slice() {
        [name, descr] => (name, descr, Vec::new()),
        [name, descr, shape] => (name, descr, axes(shape).ok_or_else(wrong)?),
        _ => return Err(wrong()),
    };
    let name = match name {
        Literal::Str(name) => name.clone(),
        // A title beside the name.
        Literal::Row(names) => match names.as_slice() {
            [Literal::Str(_), Literal::Str(name)] => name.clone(),
            _ => return Err(wrong()),
        },
        _ => return Err(wrong()),
    };
    let element = read(descr, fields)?;
    let size = count(&shape).and_then(|count| count.checked_mul(element.size()));
    let end = size.and_then(|size| offset.checked_add(size)).filter(|&end| end <= ELEMENT);
    let end = end.ok_or_else(|| Error::limit(format!("an element of more than {ELEMENT} bytes")))?;
    Ok((Field { name, element, shape, offset }, end))
}

/// A shape: a tuple of lengths, or one length.
pub(crate) fn axes(shape: &Literal) -> Option<Vec<usize>> {
    let axis = |literal: &Literal| match literal {
        Literal::Int(len) => usize::try_from(*len).ok(),
        _ => None,
    };
    match shape {
        Literal::Row(list) => list.iter().map(axis).collect(),
        one => axis(one).map(|one| vec![one]),
    }
}

/// How many elements a shape has, if that is a number; no axis is longer than a tensor's may be.
pub(crate) fn count(shape: &[usize]) -> Option<usize> {
    let fits = |axis: &usize| isize::try_from(*axis).is_ok();
    let all = shape.iter().all(fits);
    shape.iter().try_fold(1_usize, |count, &axis| count.checked_mul(axis)).filter(|_| all)
}

/// A type in one string, such as `<f4`.
fn simple(code: &str) -> Result<Element> {
    let wrong = || Error::corrupt(format!("found the type `{code}`, which is none of NumPy's"));
    let unsupported = |why: &str| Err(Error::unsupported(format!("the type `{code}` {why}")));
    let (big, rest) = match code.chars().next() {
        Some('>') => (true, &code[1..]),
        Some('<' | '|' | '=') => (false, &code[1..]),
        _ => (false, code),
    };
    let kind = rest.chars().next().ok_or_else(wrong)?;
    let rest = &rest[kind.len_utf8()..];
    // A unit follows the width of times.
    let digits = rest.split('[').next().unwrap_or_default();
    let width = if digits.is_empty() { Some(0) } else { digits.parse::<usize>().ok() };
    let width = width.filter(|&width| width <= ELEMENT / 4).ok_or_else(wrong)?;
    let number = |dtype| Ok(Element::Number { dtype, parts: 1, big });
    match (kind, width) {
        ('b', 1) | ('?', 0) => number(DType::BOOL),
        ('i', 1) => number(DType::I8),
        ('i', 2) => number(DType::I16),
        ('i', 4) => number(DType::I32),
        ('i', 8) | ('m' | 'M', 8) => number(DType::I64),
        ('u', 1) => number(DType::U8),
        ('u', 2) => number(DType::U16),
        ('u', 4) => number(DType::U32),
        ('u', 8) => number(DType::U64),
        ('f', 2) => number(DType::F16),
        ('f', 4) => number(DType::F32),
        ('f', 8) => number(DType::F64),
        ('c', 8) => Ok(Element::Number { dtype: DType::F32, parts: 2, big }),
        ('c', 16) => Ok(Element::Number { dtype: DType::F64, parts: 2, big }),
        ('S' | 'a', len) => Ok(Element::Bytes(len)),
        ('U', len) => Ok(Element::Text { len, big }),
        ('V', parts) => Ok(Element::Number { dtype: DType::U8, parts, big: false }),
        ('O', _) => unsupported(
            "holds pickled Python objects, and to read a pickle runs the code in it; save the array with a dtype of its own \
             (`allow_pickle=False`)",
        ),
        ('f' | 'c', 10 | 12 | 16 | 20 | 24 | 32) => {
            unsupported("is a long double, which differs from machine to machine; save it as float64")
        }
        _ => Err(wrong()),
    }
}
