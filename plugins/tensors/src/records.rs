//! `fixed_length_records`: the records of a file in which all have the same length, one a sample.
//!
//! ```toml
//! [fixed_length_records]
//! examples = ['forebay head -n 1 "files plugins/tensors/seeds/cifar.bin | fixed_length_records dtype=u1"']
//! ```

use forebay_core::{
    Blob, Buffer, Context, DataPipe, Error, FlatMap, Items, Key, Others, PipeInfo, Result, Sample, Schema,
    State, StateExt as _, Str, Value, View, options,
};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::{
    dtype::{Element, Field},
    literal::{self, Literal},
    memory::Memory,
    npy,
};

/// The version of a saved position.
const STATE: u32 = 1;
const BYTES: &str = "bytes";
const VALUE: &str = "value";
/// How much of a file far away is read at once.
const WINDOW: u64 = 4 << 20;

options! {
    /// Options of `fixed_length_records`.
    pub struct RecordsOptions {
        /// The bytes of a record; null for the size of `dtype`. If `dtype` is smaller, the rest of each record is
        /// skipped.
        record_bytes: Option<u64> = null, in 1..=2147483647;
        /// The type of a record, as NumPy writes a dtype: `<f4`, or a list of fields, such as `[('label', 'u1'),
        /// ('image', 'u1', (3, 32, 32))]`; null for bytes.
        dtype: Option<String> = null;
        /// How many bytes precede the first record.
        header_bytes: u64 = 0;
        /// How many bytes follow the last record.
        footer_bytes: u64 = 0;
    }
}

/// Turns a sample that is about a file of records of one length into a sample for each of them.
///
/// Takes `bytes`, or else `path`. Gives the fields of `dtype`, or `value` where that has none, or `bytes`, and the file's other fields but `path`.
/// They share the file's memory where numbers lie in the machine's order and on their own boundaries. State: how many records were given; a
/// resume reads nothing before them.
#[derive(Debug)]
pub struct FixedLengthRecords {
    layout: Layout,
    header: u64,
    footer: u64,
}

/// What is in a record.
#[derive(Debug, Clone)]
struct Layout {
    size: u64,
    /// None where it is bytes.
    element: Option<Element>,
}

impl DataPipe for FixedLengthRecords {
    const INFO: PipeInfo = PipeInfo {
        name: "fixed_length_records",
        summary: "The records of files in which all have the same length",
        ..PipeInfo::DEFAULT
    };
    type Options = RecordsOptions;

    fn new(options: RecordsOptions) -> Result<Self> {
        let RecordsOptions { record_bytes, dtype, header_bytes, footer_bytes } = options;
        let element = dtype.as_deref().map(element).transpose();
        let element = element.map_err(|error| error.context("option", "dtype"))?;
        let own = element.as_ref().map(|element| element.size() as u64);
        let size = record_bytes.or(own).ok_or_else(|| {
            Error::invalid("expected it, or a `dtype` that says how many").context("option", "record_bytes")
        })?;
        if own.is_some_and(|own| own > size) {
            let error = Error::invalid(format!("found {size}, and {} bytes of `dtype`", own.unwrap_or(0)));
            return Err(error.context("option", "record_bytes"));
        }
        Ok(Self { layout: Layout { size, element }, header: header_bytes, footer: footer_bytes })
    }
}

/// What a dtype says that is written as in Python, or by its code alone.
fn element(text: &str) -> Result<Element> {
    let invalid = |error: Error| Error::invalid(error.message());
    let literal = match text.starts_with(['[', '(', '\'', '"']) {
        true => literal::parse(text).map_err(invalid)?,
        false => Literal::Str(text.to_owned()),
    };
    let element = Element::read(&literal).map_err(invalid)?;
    if element.size() == 0 {
        return Err(Error::invalid("records of no bytes"));
    }
    Ok(element)
}

impl FlatMap for FixedLengthRecords {
    type Items = FixedLength;

    fn open(&self, sample: Sample, cx: &Context) -> Result<FixedLength> {
        let blob = Blob::of(&sample, cx)?;
        self.items(blob, &sample).map_err(|error| error.context("file", &sample.key().origin))
    }
}

impl FixedLengthRecords {
    fn items(&self, file: Blob, sample: &Sample) -> Result<FixedLength> {
        if file.is_stream() {
            return Err(Error::unsupported(
                "nobody knows how long it is before it ends: take it into memory first, with open=read",
            ));
        }
        let around = self.header.checked_add(self.footer);
        let body = around.and_then(|around| file.len().checked_sub(around)).ok_or_else(|| {
            Error::corrupt(format!(
                "found {} bytes, expected a header of {} and a footer of {}",
                file.len(),
                self.header,
                self.footer
            ))
        })?;
        let own: Vec<&str> = match &self.layout.element {
            None => vec![BYTES],
            Some(Element::Struct(fields)) => shown(fields).map(|field| field.name.as_str()).collect(),
            Some(_) => vec![VALUE],
        };
        let others = Others::of(sample, &own);
        let (names, others): (Vec<Str>, Vec<Value>) = others.fields().iter().cloned().unzip();
        Ok(FixedLength {
            schema: Schema::new(own.into_iter().map(Str::from).chain(names)),
            others,
            layout: self.layout.clone(),
            header: self.header,
            count: body / self.layout.size,
            rest: body % self.layout.size,
            next: 0,
            window: (0, Buffer::EMPTY),
            file,
            origin: sample.key().origin.clone(),
            uid: sample.uid(),
        })
    }
}

/// The fields that are not bytes between others.
fn shown(fields: &[Field]) -> impl Iterator<Item = &Field> {
    fields.iter().filter(|field| !field.name.is_empty())
}

/// The records of one file, in its order.
pub struct FixedLength {
    file: Blob,
    layout: Layout,
    header: u64,
    /// How many there are, and how many bytes are left behind the last.
    count: u64,
    rest: u64,
    next: u64,
    /// Records that were read together, and the number of the first.
    window: (u64, Buffer),
    origin: Str,
    uid: u64,
    schema: Schema,
    /// The fields that go on.
    others: Vec<Value>,
}

impl Items for FixedLength {
    fn next(&mut self, cx: &Context) -> Result<Option<Sample>> {
        self.next_within(&Memory::of(cx)).map_err(|error| error.context("file", &self.origin))
    }

    /// A record with a truth value that is none, say, is one loss.
    fn goes_on(&self) -> bool {
        true
    }

    fn state(&self) -> Result<State> {
        State::json(STATE, &self.next)
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        let next = state.parse(STATE)?;
        if next > self.count + u64::from(self.rest > 0) {
            let error = Error::invalid(format!("the saved place is record {next} of {}", self.count));
            return Err(error.context("file", &self.origin));
        }
        self.next = next;
        Ok(())
    }
}

impl FixedLength {
    fn next_within(&mut self, memory: &Memory) -> Result<Option<Sample>> {
        let index = self.next;
        let size = self.layout.size;
        if index >= self.count {
            if index > self.count || self.rest == 0 {
                return Ok(None);
            }
            self.next += 1;
            let message = format!("found {} bytes behind the last whole record, expected {size}", self.rest);
            return Err(Error::corrupt(message).context("byte", self.header + self.count * size));
        }
        self.next += 1;
        let at = self.header + index * size;
        let values = self.read(index, memory).and_then(|bytes| self.values(&bytes, at, memory));
        let mut values = values.map_err(|error| error.context("record", index))?;
        values.extend(self.others.iter().cloned());
        let uid = xxh3_64_with_seed(&index.to_le_bytes(), self.uid);
        let key = Key { origin: self.origin.clone(), name: Str::EMPTY, index };
        Ok(Some(Sample::with_schema(uid, key, self.schema.clone(), values)))
    }

    /// The bytes of a record that is there.
    fn read(&mut self, index: u64, memory: &Memory) -> Result<Buffer> {
        let size = self.layout.size;
        memory.check(size as usize)?;
        let place = |index: u64| self.header + index * size;
        if self.file.in_memory().is_some() {
            return self.file.read(place(index)..place(index + 1));
        }
        let (first, window) = &self.window;
        if !(*first..first + window.len() as u64 / size).contains(&index) {
            let end = index.saturating_add((WINDOW / size).max(1)).min(self.count);
            self.window = (index, self.file.read(place(index)..place(end))?);
        }
        let (first, window) = &self.window;
        let start = ((index - first) * size) as usize;
        window.get(start..start + size as usize).ok_or_else(|| Error::corrupt("the file became shorter"))
    }

    fn values(&self, bytes: &Buffer, at: u64, memory: &Memory) -> Result<Vec<Value>> {
        let Some(element) = &self.layout.element else { return Ok(vec![bytes.clone().into()]) };
        let found = plain(npy::element(element, bytes, at as usize, memory)?);
        match (element, found.view()) {
            (Element::Struct(_), View::Struct(fields)) => Ok(fields.values().to_vec()),
            _ => Ok(vec![found]),
        }
    }
}

/// Numbers in place of tensors without an axis.
fn plain(value: Value) -> Value {
    match value.view() {
        View::Tensor(tensor) if tensor.shape().is_empty() => {
            let (dtype, data) = (tensor.dtype(), tensor.data());
            Value::scalar(dtype, dtype.scalar_bits(data).unwrap_or(0))
        }
        View::Struct(fields) => {
            let fields = fields.fields().map(|(name, value)| (name.clone(), plain(value.clone())));
            Value::structure(fields.collect())
        }
        _ => value,
    }
}

#[cfg(test)]
mod tests {
    use forebay_core::{DType, ErrorKind, Options as _};

    use super::*;

    const CIFAR: &str = "[('label', 'u1'), ('image', 'u1', (3, 2, 2))]";

    fn pipe(options: &serde_json::Value) -> Result<FixedLengthRecords> {
        FixedLengthRecords::new(RecordsOptions::parse(&options.to_string())?)
    }

    fn open(options: &serde_json::Value, file: &[u8]) -> Result<FixedLength> {
        let mut sample = Sample::new(5, Key::whole("data_batch_1.bin"));
        sample.set("path", "data_batch_1.bin");
        sample.set("split", "train");
        sample.set("label", "of the file");
        pipe(options)?.items(Buffer::from(file.to_vec()).into(), &sample)
    }

    fn all(mut items: FixedLength) -> (Vec<Sample>, Vec<Error>) {
        let (mut samples, mut errors) = (Vec::new(), Vec::new());
        loop {
            match items.next_within(&Memory::own()) {
                Ok(Some(sample)) => samples.push(sample),
                Ok(None) => return (samples, errors),
                Err(error) => errors.push(error),
            }
        }
    }

    fn names(sample: &Sample) -> Vec<&str> {
        sample.schema().names().iter().map(|name| name.as_str()).collect()
    }

    #[test]
    fn records_have_the_fields_of_their_dtype_and_of_the_file() {
        let file: Vec<u8> = (0..39).collect();
        let (samples, errors) = all(open(&serde_json::json!({"dtype": CIFAR}), &file).unwrap());
        assert_eq!((samples.len(), errors.len()), (3, 0));
        for (at, sample) in samples.iter().enumerate() {
            assert_eq!(names(sample), ["label", "image", "split"]);
            assert_eq!(sample.get("label"), Some(&Value::from(13 * at as u8)));
            let image = sample.get("image").and_then(Value::as_tensor).unwrap();
            assert_eq!((image.dtype(), image.shape()), (DType::U8, &[3, 2, 2][..]));
            assert_eq!(&**image.data(), &file[13 * at + 1..13 * (at + 1)]);
            assert_eq!(
                (sample.key().index, sample.key().to_string()),
                (at as u64, format!("data_batch_1.bin#{at}"))
            );
            assert!(samples[..at].iter().all(|other| other.uid() != sample.uid()));
        }
    }

    #[test]
    fn numbers_are_read_in_any_order_and_width() {
        let file = [0xfe, 0xff, 0, 0, 0xff, 0xfe, 7, 7];
        let read = |dtype: &str, more: &str| {
            let mut options = serde_json::json!({"dtype": dtype});
            if !more.is_empty() {
                options["record_bytes"] = 4.into();
            }
            let (samples, errors) = all(open(&options, &file).unwrap());
            assert!(errors.is_empty(), "{errors:?}");
            samples.iter().map(|sample| sample.get(VALUE).cloned().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(read("<i2", "4"), [Value::from(-2_i16), Value::from(-257_i16)]);
        assert_eq!(read(">i2", "4"), [Value::from(-257_i16), Value::from(-2_i16)]);
        assert_eq!(read("'<u4'", ""), [Value::from(0xfffe_u32), Value::from(0x0707_feff_u32)]);
        assert_eq!(read("i1", "4"), [Value::from(-2_i8), Value::from(-1_i8)]);
        assert_eq!(read("<f8", ""), [Value::from(f64::from_le_bytes(file))]);
    }

    #[test]
    fn headers_and_footers_are_passed_over_and_a_broken_end_is_told_behind_what_is_whole() {
        let options = serde_json::json!({"record_bytes": 3, "header_bytes": 2, "footer_bytes": 1});
        let (samples, errors) = all(open(&options, b"hhabcdeff").unwrap());
        assert!(errors.is_empty());
        let bytes: Vec<_> = samples
            .iter()
            .map(|sample| sample.get(BYTES).and_then(Value::as_bytes).unwrap().to_vec())
            .collect();
        assert_eq!(bytes, [b"abc", b"def"]);
        let (samples, errors) = all(open(&options, b"hhabcdef").unwrap());
        assert_eq!((samples.len(), errors.len(), errors[0].kind()), (1, 1, ErrorKind::Corrupt));
        assert_eq!(errors[0].get("byte"), Some("5"));
        assert_eq!(all(open(&options, b"hhf").unwrap()).0.len(), 0);
        assert_eq!(open(&options, b"hh").err().unwrap().kind(), ErrorKind::Corrupt);
        let (samples, errors) = all(open(&serde_json::json!({"dtype": "?"}), &[1, 2, 0]).unwrap());
        assert_eq!((samples.len(), errors[0].get("record")), (2, Some("1")));
    }

    #[test]
    fn goes_on_from_a_saved_place() {
        let options = serde_json::json!({"record_bytes": 2});
        let whole = all(open(&options, b"abcdefg").unwrap());
        for taken in 0..=4_u64 {
            let mut items = open(&options, b"abcdefg").unwrap();
            for _ in 0..taken {
                drop(items.next_within(&Memory::own()));
            }
            let state = Items::state(&items).unwrap();
            let mut other = open(&options, b"abcdefg").unwrap();
            let next: u64 = state.parse(STATE).unwrap();
            other.next = next;
            let (samples, errors) = all(other);
            assert_eq!(samples, whole.0[(taken as usize).min(3)..]);
            assert_eq!(errors.len(), usize::from(taken < 4));
        }
    }

    #[test]
    fn options_that_do_not_fit_are_refused_by_name() {
        for (options, option) in [
            (serde_json::json!({}), "record_bytes"),
            (serde_json::json!({"record_bytes": 12, "dtype": CIFAR}), "record_bytes"),
            (serde_json::json!({"record_bytes": 0}), "record_bytes"),
            (serde_json::json!({"dtype": "x9"}), "dtype"),
            (serde_json::json!({"dtype": "[('a', 'u1'), ('a', 'u1')]"}), "dtype"),
            (serde_json::json!({"dtype": "[('a', 'O')]"}), "dtype"),
            (serde_json::json!({"dtype": "[('a', 'u1'"}), "dtype"),
            (serde_json::json!({"dtype": "[]"}), "dtype"),
        ] {
            let error = pipe(&options).unwrap_err();
            assert_eq!(
                (error.kind(), error.get("option")),
                (ErrorKind::Invalid, Some(option)),
                "{options}: {error}"
            );
        }
    }
}
