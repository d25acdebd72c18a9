//! `idx`: the arrays of MNIST and its like.
//!
//! <https://yann.lecun.org/exdb/mnist/>, "the IDX file format".
//!
//! ```toml
//! [idx]
//! gives = "a tensor with all rows"
//! when = "whole files in a sample; for one row a sample, use `split_idx`"
//! ```

use forebay_core::{
    Buffer, Context, DType, Decoder, DecoderInfo, Error, Magic, NoOptions, Result, Value, Wanted,
};

use crate::{
    dtype::count,
    memory::{Memory, swap},
};

/// The types of elements that there are.
const TYPES: [u8; 6] = [0x08, 0x09, 0x0b, 0x0c, 0x0d, 0x0e];
/// The most axes of a file that is found by its bytes.
const AXES: usize = 8;
/// Types with each count of axes.
const FORMS: usize = TYPES.len() * AXES;
/// So many first bytes a probe is shown, unless the file has fewer.
const HEAD: usize = 4096;

/// How a file of each type and count of axes begins.
static BEGINS: [[u8; 4]; FORMS] = {
    let mut all = [[0; 4]; FORMS];
    let mut at = 0;
    while at < all.len() {
        all[at] = [0, 0, TYPES[at / AXES], (at % AXES) as u8 + 1];
        at += 1;
    }
    all
};

/// Any of those; and nothing, so that files with the extensions are candidates however they begin.
const MAGIC: [Magic; FORMS + 1] = {
    let mut all = [Magic { offset: 0, bytes: b"" }; FORMS + 1];
    let mut at = 0;
    while at < FORMS {
        all[at].bytes = &BEGINS[at];
        at += 1;
    }
    all
};

/// Decodes an IDX file to one tensor: see [`parse_idx`].
#[derive(Debug)]
pub struct Idx;

impl Decoder for Idx {
    const INFO: DecoderInfo = DecoderInfo {
        name: "idx",
        summary: "IDX files, as MNIST's, to tensors",
        extensions: &["idx", "ubyte", "idx1-ubyte", "idx2-ubyte", "idx3-ubyte", "idx4-ubyte"],
        magic: &MAGIC,
        ..DecoderInfo::DEFAULT
    };
    type Options = NoOptions;

    fn new(_: NoOptions) -> Result<Self> {
        Ok(Self)
    }

    fn probe(&self, head: &[u8], extension: &str) -> u8 {
        probe(head, extension)
    }

    fn decode(&self, bytes: &Buffer, _: &Wanted, cx: &Context) -> Result<Value> {
        parse_within(bytes, &Memory::of(cx))
    }
}

/// How sure it is that bytes that begin so are an IDX file.
///
/// The four bytes of the magic say little, so the lengths that stand behind them must go with how much there is.
pub(crate) fn probe(head: &[u8], extension: &str) -> u8 {
    let named = extension.to_ascii_lowercase();
    let (named, surely) = (named == "idx" || named.ends_with("ubyte"), named.ends_with("ubyte"));
    match Header::read(head).map(|header| header.len()) {
        // The head is all of a short file.
        Ok(Some(len)) if len == head.len() as u64 || (head.len() >= HEAD && len > head.len() as u64) => {
            if named {
                240
            } else {
                200
            }
        }
        // Of one that is cut off, or too long, its reader tells more than that it is left as bytes.
        Ok(Some(_)) if named => 64,
        // Many files are called `.idx` that are an index of something.
        _ => u8::from(surely) * 16,
    }
}

/// What stands before the elements.
#[derive(Debug, Clone)]
pub(crate) struct Header {
    pub(crate) dtype: DType,
    pub(crate) shape: Vec<usize>,
    /// How many bytes it has.
    pub(crate) start: usize,
}

impl Header {
    /// The header that `bytes` begin with.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self> {
        let short = || {
            Error::corrupt(format!("{} bytes end within the header", bytes.len()))
                .context("byte", bytes.len())
        };
        let (head, rest) = bytes.split_first_chunk::<4>().ok_or_else(short)?;
        let [0, 0, code, axes] = *head else {
            return Err(Error::corrupt(format!(
                "found {head:02x?}, expected two zeros, a type and a count of axes"
            ))
            .context("byte", 0));
        };
        let dtype = match code {
            0x08 => DType::U8,
            0x09 => DType::I8,
            0x0b => DType::I16,
            0x0c => DType::I32,
            0x0d => DType::F32,
            0x0e => DType::F64,
            _ => {
                return Err(Error::corrupt(format!("found the type {code:#04x}, expected 8, 9 or 11 to 14"))
                    .context("byte", 2));
            }
        };
        let lengths = rest.get(..usize::from(axes) * 4).ok_or_else(short)?;
        let lengths = lengths.as_chunks::<4>().0.iter();
        let shape: Vec<_> = lengths.map(|len| u32::from_be_bytes(*len) as usize).collect();
        Ok(Self { dtype, start: 4 + 4 * shape.len(), shape })
    }

    /// How many bytes all elements of these axes have.
    pub(crate) fn bytes_of(&self, shape: &[usize]) -> Option<usize> {
        count(shape).and_then(|count| count.checked_mul(self.dtype.size()))
    }

    /// How many bytes the file has.
    pub(crate) fn len(&self) -> Option<u64> {
        self.bytes_of(&self.shape).and_then(|bytes| bytes.checked_add(self.start)).map(|len| len as u64)
    }
}

/// Reads one IDX file to a tensor in the machine's byte order, which shares the memory of `bytes` where elements are single bytes.
///
/// ```
/// let value = forebay_tensors::parse_idx(&vec![0, 0, 11, 1, 0, 0, 0, 2, 0, 7, 1, 0].into())?;
/// assert_eq!(&**value.as_tensor().unwrap().data(), &[7, 0, 0, 1]);
/// # Ok::<(), forebay_core::Error>(())
/// ```
///
/// # Errors
/// `Corrupt` with the byte; `Unsupported` for more than 8 axes; `Limit`.
pub fn parse_idx(bytes: &Buffer) -> Result<Value> {
    parse_within(bytes, &Memory::own())
}

fn parse_within(bytes: &Buffer, memory: &Memory) -> Result<Value> {
    let header = Header::read(bytes)?;
    let Header { dtype, shape, start } = &header;
    let data = bytes.slice(*start..);
    if header.bytes_of(shape) != Some(data.len()) {
        let message =
            format!("found {} bytes after the header, which {dtype} {shape:?} does not fill", data.len());
        return Err(Error::corrupt(message).context("byte", start));
    }
    elements(*dtype, shape, data, memory)
}

/// The tensor of big-endian elements.
pub(crate) fn elements(dtype: DType, shape: &[usize], data: Buffer, memory: &Memory) -> Result<Value> {
    if dtype.size() == 1 {
        return memory.tensor(dtype, shape, data).map(Value::from);
    }
    let mut out = memory.take(data.len())?;
    out.copy_from_slice(&data);
    swap(&mut out, dtype.size());
    memory.tensor(dtype, shape, out.freeze()).map(Value::from)
}

#[cfg(test)]
mod tests {
    use forebay_core::ErrorKind;

    use super::*;

    #[test]
    fn reads_pictures_and_labels() {
        let bytes =
            Buffer::from([&[0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 2][..], &[1, 2, 3, 4]].concat());
        let value = parse_idx(&bytes).unwrap();
        let tensor = value.as_tensor().unwrap();
        assert_eq!(
            (tensor.dtype(), tensor.shape(), &**tensor.data()),
            (DType::U8, &[1, 2, 2][..], &[1, 2, 3, 4][..])
        );
        assert!(tensor.data().same_owner(&bytes));
        let double = [&[0, 0, 14, 0][..], &2.5_f64.to_be_bytes()].concat();
        assert_eq!(&**parse_idx(&double.into()).unwrap().as_tensor().unwrap().data(), &2.5_f64.to_le_bytes());
    }

    #[test]
    fn damage_is_found() {
        let whole = [&[0, 0, 8, 1, 0, 0, 0, 5][..], b"heron"].concat();
        for len in 0..whole.len() {
            let error = parse_idx(&whole[..len].to_vec().into()).unwrap_err();
            assert!(error.kind() == ErrorKind::Corrupt && error.get("byte").is_some(), "{len}: {error}");
        }
        for at in 0..8 {
            for bit in 0..8 {
                let mut bytes = whole.clone();
                bytes[at] ^= 1 << bit;
                // Five signed bytes are as good as five unsigned ones.
                assert_eq!(parse_idx(&bytes.into()).is_ok(), (at, bit) == (2, 0), "byte {at}, bit {bit}");
            }
        }
        let many = [&[0, 0, 8, 9][..], &[0, 0, 0, 1].repeat(9), &[7]].concat();
        assert_eq!(parse_idx(&many.into()).unwrap_err().kind(), ErrorKind::Unsupported);
        let wide = [&[0, 0, 14, 255][..], &[255; 255 * 4]].concat();
        assert_eq!(parse_idx(&wide.into()).unwrap_err().kind(), ErrorKind::Corrupt);
    }
}
