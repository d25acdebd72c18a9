//! `npy`: one array, by the header that NumPy writes.
//!
//! <https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>
//!
//! ```toml
//! [npy]
//! gives = "a tensor; lists for strings, a struct for structured arrays"
//! when = "one array a sample"
//! ```

use forebay_core::{
    Buffer, Context, DType, Decoder, DecoderInfo, Error, Magic, NoOptions, Result, Str, Value, Wanted,
};

use crate::{
    dtype::{Element, axes, count},
    literal::{self, Literal},
    memory::{Memory, swap},
    order,
};

const MAGIC: &[u8] = b"\x93NUMPY";
/// The most bytes that a header may have.
const HEADER: usize = 1 << 20;
/// The most axes that NumPy gives an array.
const AXES: usize = 64;

/// Decodes an array as `numpy.save` writes it: see [`parse_npy`].
#[derive(Debug)]
pub struct Npy;

impl Decoder for Npy {
    const INFO: DecoderInfo = DecoderInfo {
        name: "npy",
        summary: "NumPy arrays to tensors",
        extensions: &["npy"],
        magic: &[Magic { offset: 0, bytes: MAGIC }],
        ..DecoderInfo::DEFAULT
    };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self)
    }

    fn decode(&self, bytes: &Buffer, _: &Wanted, cx: &Context) -> Result<Value> {
        parse_within(bytes, &Memory::of(cx))
    }
}

/// Reads one npy file.
///
/// Numbers become a tensor in the machine's byte order and in row-major order, which shares the memory of `bytes` where they
/// are so stored. Complex numbers have an axis of two more, raw bytes one of their own, and times are int64. Strings become
/// a list, or lists of lists; structured arrays a struct of their fields.
///
/// ```
/// let header = "{'descr': '<i2', 'fortran_order': False, 'shape': (2,)}\n";
/// let file = [b"\x93NUMPY\x01\0", &[header.len() as u8, 0][..], header.as_bytes(), &[1, 0, 2, 0]].concat();
/// let value = forebay_tensors::parse_npy(&file.into())?;
/// assert_eq!(value.as_tensor().map(|tensor| tensor.shape()), Some(&[2][..]));
/// # Ok::<(), forebay_core::Error>(())
/// ```
///
/// # Errors
/// `Corrupt` with the byte; `Unsupported` for Python objects, long doubles and more than 8 axes; `Limit` when the array needs
/// more memory than is usual for one value.
pub fn parse_npy(bytes: &Buffer) -> Result<Value> {
    parse_within(bytes, &Memory::own())
}

/// As [`parse_npy`], into this memory.
pub(crate) fn parse_within(bytes: &Buffer, memory: &Memory) -> Result<Value> {
    let header = Header::read(bytes)?;
    let size = header.element.size();
    let len = count(&header.shape).and_then(|count| count.checked_mul(size));
    let found = bytes.len() - header.data;
    if len != Some(found) {
        let expected = len.map_or("more than there can be".to_owned(), |len| len.to_string());
        let message = format!(
            "found {found} bytes after the header, expected {expected} for the shape {:?} of {size} bytes each",
            header.shape
        );
        return Err(Error::corrupt(message).context("byte", header.data));
    }
    let array = Array { data: &bytes.slice(header.data..), file_offset: header.data, memory };
    let places = Places::new(&header.shape, size, header.fortran);
    array.value(&header.element, &places)
}

/// The one element that begins `bytes`, which lie at `file_offset`: numbers are tensors, of no axis where the element gives them none.
pub(crate) fn element(
    element: &Element,
    bytes: &Buffer,
    file_offset: usize,
    memory: &Memory,
) -> Result<Value> {
    Array { data: bytes, file_offset, memory }.value(element, &Places::new(&[], element.size(), false))
}

/// What stands before the numbers.
struct Header {
    element: Element,
    fortran: bool,
    shape: Vec<usize>,
    /// Where the numbers begin.
    data: usize,
}

impl Header {
    fn read(bytes: &[u8]) -> Result<Self> {
        let short = || {
            Error::corrupt(format!("{} bytes end within the header", bytes.len()))
                .context("byte", bytes.len())
        };
        if !bytes.starts_with(MAGIC) {
            return Err(Error::corrupt("expected the bytes \\x93NUMPY").context("byte", 0));
        }
        let version = *bytes.get(MAGIC.len()).ok_or_else(short)?;
        let (start, len) = match (version, bytes.get(8..)) {
            (1, Some([a, b, ..])) => (10, usize::from(u16::from_le_bytes([*a, *b]))),
            (2 | 3, Some([a, b, c, d, ..])) => (12, u32::from_le_bytes([*a, *b, *c, *d]) as usize),
            (1..=3, _) => return Err(short()),
            _ => {
                return Err(Error::unsupported(format!("version {version} of npy, known are 1 to 3"))
                    .context("byte", 6));
            }
        };
        if len > HEADER {
            return Err(Error::limit(format!("a header of {len} bytes, expected at most {HEADER}"))
                .context("byte", 8));
        }
        let data = start + len;
        let text = bytes.get(start..data).ok_or_else(short)?;
        // Before version 3 the header is Latin-1, which in names of fields may matter.
        let text = match version {
            3 => std::str::from_utf8(text)
                .map_err(|error| {
                    Error::corrupt("the header is not UTF-8").context("byte", start + error.valid_up_to())
                })?
                .to_owned(),
            _ => text.iter().copied().map(char::from).collect(),
        };
        Self::of(literal::parse(&text)?, data).map_err(|error| error.context("byte", start))
    }

    fn of(literal: Literal, data: usize) -> Result<Self> {
        let wrong = |what: &str| Error::corrupt(format!("the header {what}"));
        let Literal::Dict(entries) = literal else { return Err(wrong("is no dictionary")) };
        let get = |name: &str| {
            let mut found = entries.iter().filter(|(key, _)| *key == Literal::Str(name.to_owned()));
            match (found.next(), found.next()) {
                (Some((_, value)), None) => Ok(value),
                (None, _) => Err(wrong(&format!("has no `{name}`"))),
                _ => Err(wrong(&format!("has `{name}` twice"))),
            }
        };
        let (descr, fortran, shape) = (get("descr")?, get("fortran_order")?, get("shape")?);
        if entries.len() != 3 {
            return Err(wrong("has other keys than descr, fortran_order and shape"));
        }
        let Literal::Bool(fortran) = *fortran else {
            return Err(wrong("has a fortran_order that is neither True nor False"));
        };
        let shape = match shape {
            Literal::Row(_) => axes(shape).ok_or_else(|| wrong("has a shape that is no tuple of lengths"))?,
            _ => return Err(wrong("has a shape that is no tuple")),
        };
        if shape.len() > AXES {
            return Err(Error::limit(format!("found {} axes, expected at most {AXES}", shape.len())));
        }
        Ok(Self { element: Element::read(descr)?, fortran, shape, data })
    }
}

/// Where the elements lie: a length and a step in bytes for each axis.
#[derive(Clone)]
struct Places {
    start: usize,
    axes: Vec<(usize, usize)>,
}

impl Places {
    fn new(shape: &[usize], size: usize, fortran: bool) -> Self {
        let mut places = Self { start: 0, axes: Vec::new() };
        places.push(shape, size);
        if fortran {
            let mut step = size;
            for axis in &mut places.axes {
                axis.1 = step;
                step = step.wrapping_mul(axis.0); // Only an empty array can wrap.
            }
        }
        places
    }

    /// Adds axes in row-major order, within each element.
    fn push(&mut self, shape: &[usize], size: usize) {
        let first = self.axes.len();
        let mut step = size;
        for &len in shape.iter().rev() {
            self.axes.insert(first, (len, step));
            step = step.wrapping_mul(len); // Only an empty array can wrap.
        }
    }

    fn shape(&self) -> Vec<usize> {
        self.axes.iter().map(|&(len, _)| len).collect()
    }

    /// How many of the last axes lie together, with how many bytes, for elements of `size` bytes.
    fn together(&self, size: usize) -> (usize, usize) {
        let (mut axes, mut bytes) = (0, size);
        for &(len, step) in self.axes.iter().rev() {
            if step != bytes && len != 1 {
                break;
            }
            (axes, bytes) = (axes + 1, bytes * len);
        }
        (axes, bytes)
    }
}

/// The bytes of an array, whose length fits its places.
struct Array<'a> {
    data: &'a Buffer,
    file_offset: usize,
    memory: &'a Memory<'a>,
}

impl Array<'_> {
    fn value(&self, element: &Element, places: &Places) -> Result<Value> {
        match element {
            Element::Number { dtype, parts: 1, big } => self.numbers(*dtype, *big, places),
            Element::Number { dtype, parts, big } => {
                let mut places = places.clone();
                places.push(&[*parts], dtype.size());
                self.numbers(*dtype, *big, &places)
            }
            Element::Bytes(_) | Element::Text { .. } => {
                self.check_list(element, places)?;
                self.list(element, places.start, &places.axes)
            }
            Element::Struct(fields) => {
                let shown = fields.iter().filter(|field| !field.name.is_empty());
                let values = shown.map(|field| {
                    let mut places = places.clone();
                    places.start += field.offset;
                    places.push(&field.shape, field.element.size());
                    let value = self.value(&field.element, &places);
                    let value = value.map_err(|error| error.context("field", &field.name))?;
                    Ok((Str::from(field.name.as_str()), value))
                });
                values.collect::<Result<_>>().map(Value::structure)
            }
        }
    }

    fn numbers(&self, dtype: DType, big: bool, places: &Places) -> Result<Value> {
        let shape = places.shape();
        let data = self.gather(places, dtype.size(), big && dtype.size() > 1)?;
        if dtype == DType::BOOL
            && let Some(at) = data.iter().position(|&byte| byte > 1)
        {
            let found = data.get(at..=at).map_or(0, |byte| byte[0]);
            return Err(Error::corrupt(format!("found a truth value of {found}, expected 0 or 1"))
                .context("element", at));
        }
        self.memory.tensor(dtype, &shape, data).map(Value::from)
    }

    /// The elements in row-major order: shared where they lie so and are not to be swapped, else a copy.
    fn gather(&self, places: &Places, size: usize, swapped: bool) -> Result<Buffer> {
        let len = count(&places.shape()).and_then(|count| count.checked_mul(size));
        let len = len.ok_or_else(|| Error::limit("more elements than can be counted"))?;
        if len == 0 {
            return Ok(Buffer::EMPTY);
        }
        let (inner, block) = places.together(size);
        let outer = &places.axes[..places.axes.len() - inner];
        if outer.is_empty() && !swapped {
            return self.bytes(places.start, len);
        }
        let mut out = self.memory.take(len)?;
        let source = self.data.get(places.start..).ok_or_else(|| self.outside(places.start))?;
        if !order::gather(&source, outer, block, &mut out) {
            return Err(self.outside(places.start));
        }
        if swapped {
            swap(&mut out, size);
        }
        Ok(out.freeze())
    }

    fn bytes(&self, start: usize, len: usize) -> Result<Buffer> {
        self.data.get(start..start + len).ok_or_else(|| self.outside(start))
    }

    fn outside(&self, at: usize) -> Error {
        Error::bug("an element outside the array").context("byte", self.file_offset + at)
    }

    /// Refuses lists that take more memory than one value may have.
    fn check_list(&self, element: &Element, places: &Places) -> Result<()> {
        let mut values = 1_usize;
        let mut all = 1_usize;
        for &(len, _) in &places.axes {
            values = values.saturating_mul(len);
            all = all.saturating_add(values);
        }
        let text = values.saturating_mul(element.size());
        self.memory.check(all.saturating_mul(size_of::<Value>()).saturating_add(text))
    }

    fn list(&self, element: &Element, start: usize, axes: &[(usize, usize)]) -> Result<Value> {
        match axes.split_first() {
            None => self.text(element, start),
            Some((&(len, step), rest)) => {
                let items = (0..len).map(|at| self.list(element, start + at * step, rest));
                items.collect::<Result<_>>().map(Value::list)
            }
        }
    }

    /// One string, without the zeros at its end.
    fn text(&self, element: &Element, start: usize) -> Result<Value> {
        let bytes = self.bytes(start, element.size())?;
        let Element::Text { big, .. } = element else {
            let len = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
            return Ok(bytes.slice(..len).into());
        };
        let mut codes: Vec<_> =
            bytes.as_chunks::<4>().0.iter().map(|code| u32::from_le_bytes(*code)).collect();
        if *big {
            codes.iter_mut().for_each(|code| *code = code.swap_bytes());
        }
        codes.truncate(codes.iter().rposition(|&code| code != 0).map_or(0, |last| last + 1));
        let text = codes.iter().enumerate().map(|(at, &code)| {
            char::from_u32(code).ok_or_else(|| {
                Error::corrupt(format!("found the number 0x{code:x}, expected a character of Unicode"))
                    .context("byte", self.file_offset + start + at * 4)
            })
        });
        text.collect::<Result<String>>().map(Value::from)
    }
}

#[cfg(test)]
#[path = "npy_tests.rs"]
pub(crate) mod tests;
