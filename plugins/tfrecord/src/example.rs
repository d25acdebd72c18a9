//! `tf.train.Example` and `SequenceExample`: messages to named values.
//!
//! <https://github.com/tensorflow/tensorflow/blob/master/tensorflow/core/example/example.proto> and `feature.proto`.

use std::collections::BTreeMap;

use forebay_core::{Buffer, BufferMut, DType, Error, Limits, Result, Str, Tensor, TensorExt as _, Value};

use crate::proto::{Message, Wire, number, varints};

/// What a caller expects of one feature.
#[derive(Debug, Clone, PartialEq)]
pub struct Wish {
    /// The feature's name.
    pub name: Str,
    /// What it must hold; `None` takes anything.
    pub kind: Option<Kind>,
    /// The axes of its values; `None` is one axis, as long as there are values.
    pub shape: Option<Vec<usize>>,
}

/// What a feature holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Byte strings.
    Bytes,
    /// Byte strings that are UTF-8.
    Text,
    /// float32.
    Float,
    /// int64.
    Int,
}

impl Kind {
    /// The name in an option.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Text => "str",
            Self::Float => "float32",
            Self::Int => "int64",
        }
    }
}

/// Gives output memory, or refuses what is above the limit.
type Alloc<'a> = &'a dyn Fn(usize) -> Result<BufferMut>;

/// Reads a `tf.train.Example`: its features by name, sorted, or those of `wishes`, in that order.
///
/// Floats and integers become a tensor with one axis; bytes, which share the memory of `message`, become the bytes alone
/// where there is one value and else a list. A [`Wish`] may say more. A feature that is wished for and not there, or empty, is null.
///
/// ```
/// // features { feature { key: "n" value { int64_list { value: [3, 4] } } } }
/// let message = b"\x0a\x0d\x0a\x0b\x0a\x01n\x12\x06\x1a\x04\x0a\x02\x03\x04".to_vec().into();
/// let fields = forebay_tfrecord::parse_example(&message, &[])?;
/// assert_eq!(fields[0].1.as_tensor().map(|tensor| tensor.shape()), Some(&[2][..]));
/// # Ok::<(), forebay_core::Error>(())
/// ```
///
/// # Errors
/// `Corrupt` with byte and feature, also for a feature of another kind or number of values than wished for; `Limit`.
pub fn parse_example(message: &Buffer, wishes: &[Wish]) -> Result<Vec<(Str, Value)>> {
    example(message, wishes, &own)
}

/// Reads a `tf.train.SequenceExample`: the features of its context and of its steps, as [`parse_example`].
///
/// The values of a feature of steps are stacked along a first axis where each step has as many, else a list of the steps' own.
///
/// # Errors
/// As `parse_example`; `Corrupt` when context and steps have a feature of one name.
pub fn parse_sequence_example(message: &Buffer, wishes: &[Wish]) -> Result<Vec<(Str, Value)>> {
    sequence_example(message, wishes, &own)
}

fn own(len: usize) -> Result<BufferMut> {
    within(len, Limits::DEFAULT.bytes)?;
    Ok(BufferMut::zeroed(len))
}

/// Refuses more bytes than one value may have.
pub(crate) fn within(len: usize, limit: u64) -> Result<()> {
    if len as u64 > limit {
        return Err(Error::limit(format!("a feature of {len} bytes, expected at most {limit}")));
    }
    Ok(())
}

pub(crate) fn example(message: &Buffer, wishes: &[Wish], alloc: Alloc) -> Result<Vec<(Str, Value)>> {
    let mut found = BTreeMap::new();
    each(Message { bytes: message, at: 0 }, 1, |features| each(features, 1, |entry| one(entry, &mut found)))?;
    give(found, wishes, |feature, wish| feature.value(message, wish, alloc))
}

pub(crate) fn sequence_example(message: &Buffer, wishes: &[Wish], alloc: Alloc) -> Result<Vec<(Str, Value)>> {
    let (mut context, mut steps) = (BTreeMap::new(), BTreeMap::new());
    let whole = Message { bytes: message, at: 0 };
    each(whole, 1, |features| each(features, 1, |entry| one(entry, &mut context)))?;
    each(whole, 2, |lists| {
        each(lists, 1, |entry| {
            let (name, value) = key_and_value(entry)?;
            let mut list = Vec::new();
            each(value, 1, |feature| {
                list.push(Feature::read(feature).map_err(|error| error.context("feature", name))?);
                Ok(())
            })?;
            steps.insert(name, list);
            Ok(())
        })
    })?;
    if let Some(twice) = context.keys().find(|name| steps.contains_key(*name)) {
        return Err(
            Error::corrupt("both the context and the steps have this feature").context("feature", twice)
        );
    }
    let context = context.into_iter().map(|(name, feature)| (name, Found::One(feature)));
    let all = context.chain(steps.into_iter().map(|(name, list)| (name, Found::Steps(list)))).collect();
    give(all, wishes, |found, wish| match found {
        Found::One(feature) => feature.value(message, wish, alloc),
        Found::Steps(list) => stack(list, message, wish, alloc),
    })
}

/// Whether a message of `len` bytes, of which these are the first, is an Example: features alone, and the first of them a name and a list,
/// each as long as what is around it says.
pub(crate) fn begins_example(mut bytes: &[u8], len: u64) -> bool {
    let mut first = || {
        let features = part(&mut bytes, &[1], len)?.filter_whole()?;
        let entry = part(&mut bytes, &[1], features)?;
        let name = part(&mut bytes, &[1], entry.len)?;
        let (text, rest) = bytes.split_at_checked(usize::try_from(name.len).ok()?)?;
        std::str::from_utf8(text).ok()?;
        bytes = rest;
        let value = part(&mut bytes, &[2], name.left)?.filter_whole()?;
        match value {
            0 => Some(()),
            _ => part(&mut bytes, &[1, 2, 3], value)?.filter_whole().map(drop),
        }
    };
    first().is_some()
}

/// A message within another.
struct Part {
    len: u64,
    /// How much of the other one follows.
    left: u64,
}

impl Part {
    /// Its length, if nothing follows it.
    fn filter_whole(self) -> Option<u64> {
        (self.left == 0).then_some(self.len)
    }
}

/// Takes off the front of a message within one that has `len` bytes left, which is one of these fields.
fn part(bytes: &mut &[u8], fields: &[u8], len: u64) -> Option<Part> {
    let (tag, rest) = bytes.split_first()?;
    let end = rest.iter().take(10).position(|byte| byte & 0x80 == 0)? + 1;
    let (length, rest) = rest.split_at_checked(end)?;
    let known = fields.iter().any(|field| field << 3 | 2 == *tag);
    let inner = number(length).ok().filter(|_| known)?;
    *bytes = rest;
    let left = len.checked_sub(1 + end as u64)?.checked_sub(inner)?;
    Some(Part { len: inner, left })
}

/// A feature of a sequence.
enum Found<'a> {
    One(Feature<'a>),
    Steps(Vec<Feature<'a>>),
}

/// The values of what was found, or of what was wished for.
fn give<T>(
    found: BTreeMap<&str, T>,
    wishes: &[Wish],
    value: impl Fn(&T, Option<&Wish>) -> Result<Value>,
) -> Result<Vec<(Str, Value)>> {
    let named =
        |name: &str, found: &T, wish| value(found, wish).map_err(|error| error.context("feature", name));
    if wishes.is_empty() {
        return found.iter().map(|(name, one)| Ok((Str::from(*name), named(name, one, None)?))).collect();
    }
    let wished = wishes.iter().map(|wish| {
        let value = found.get(&*wish.name).map_or(Ok(Value::NULL), |one| named(&wish.name, one, Some(wish)));
        Ok((wish.name.clone(), value?))
    });
    wished.collect()
}

/// Calls `work` with each message that is the field `field` of `message`; other fields are left out.
fn each<'a>(
    mut message: Message<'a>,
    field: u64,
    mut work: impl FnMut(Message<'a>) -> Result<()>,
) -> Result<()> {
    while let Some((number, wire)) = message.next()? {
        match wire {
            Wire::Bytes(inner) if number == field => work(inner)?,
            _ if number == field => return Err(unexpected(message.at, "a message")),
            _ => {}
        }
    }
    Ok(())
}

fn unexpected(at: usize, what: &str) -> Error {
    Error::corrupt(format!("found a field of another wire type, expected {what}")).context("byte", at)
}

/// An entry of a map; of equal keys the last counts.
fn one<'a>(entry: Message<'a>, features: &mut BTreeMap<&'a str, Feature<'a>>) -> Result<()> {
    let (name, value) = key_and_value(entry)?;
    features.insert(name, Feature::read(value).map_err(|error| error.context("feature", name))?);
    Ok(())
}

fn key_and_value<'a>(mut entry: Message<'a>) -> Result<(&'a str, Message<'a>)> {
    let (mut key, mut value) = ("", Message { bytes: &[], at: entry.at });
    while let Some((field, wire)) = entry.next()? {
        match (field, wire) {
            (1, Wire::Bytes(text)) => {
                key = std::str::from_utf8(text.bytes)
                    .map_err(|_| Error::corrupt("a feature's name is not UTF-8").context("byte", text.at))?;
            }
            (2, Wire::Bytes(message)) => value = message,
            (1 | 2, _) => return Err(unexpected(entry.at, "a name or a feature")),
            _ => {}
        }
    }
    Ok((key, value))
}

/// The values of one feature, as they stand in the message.
#[derive(Debug)]
enum Feature<'a> {
    Empty,
    Bytes(Vec<Message<'a>>),
    /// Pieces with numbers one after the other.
    Floats(Vec<&'a [u8]>),
    Ints(Vec<&'a [u8]>),
}

impl<'a> Feature<'a> {
    fn read(mut message: Message<'a>) -> Result<Self> {
        let mut feature = Self::Empty;
        while let Some((field, wire)) = message.next()? {
            let Wire::Bytes(list) = wire else {
                if (1..=3).contains(&field) {
                    return Err(unexpected(message.at, "a list"));
                }
                continue;
            };
            match field {
                1 => feature = Self::Bytes(Vec::new()),
                2 => feature = Self::Floats(Vec::new()),
                3 => feature = Self::Ints(Vec::new()),
                _ => continue,
            }
            feature.add(list)?;
        }
        Ok(feature)
    }

    /// Adds what a list holds.
    fn add(&mut self, mut list: Message<'a>) -> Result<()> {
        while let Some((field, wire)) = list.next()? {
            if field != 1 {
                continue;
            }
            match (&mut *self, wire) {
                (Self::Bytes(values), Wire::Bytes(value)) => values.push(value),
                (Self::Floats(parts), Wire::Fixed32(value)) => parts.push(value),
                (Self::Floats(parts), Wire::Bytes(packed)) if packed.bytes.len().is_multiple_of(4) => {
                    parts.push(packed.bytes)
                }
                (Self::Ints(parts), Wire::Varint(value)) => parts.push(value),
                (Self::Ints(parts), Wire::Bytes(packed)) => parts.push(packed.bytes),
                _ => return Err(unexpected(list.at, "a value of the list's kind")),
            }
        }
        Ok(())
    }

    fn kind(&self) -> Option<Kind> {
        match self {
            Self::Empty => None,
            Self::Bytes(_) => Some(Kind::Bytes),
            Self::Floats(_) => Some(Kind::Float),
            Self::Ints(_) => Some(Kind::Int),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Empty => 0,
            Self::Bytes(values) => values.len(),
            Self::Floats(parts) => parts.iter().map(|part| part.len() / 4).sum(),
            Self::Ints(parts) => {
                parts.iter().flat_map(|part| part.iter()).filter(|byte| **byte & 0x80 == 0).count()
            }
        }
    }

    fn value(&self, message: &Buffer, wish: Option<&Wish>, alloc: Alloc) -> Result<Value> {
        self.check(wish)?;
        let shape = wish.and_then(|wish| wish.shape.as_deref());
        match self {
            Self::Empty => Ok(Value::NULL),
            Self::Bytes(values) => strings(values, message, wish),
            _ => {
                let own = [self.len()];
                let shape = shape.unwrap_or(&own);
                numbers(&[self], shape, alloc)
            }
        }
    }

    /// Whether this is what was wished for.
    fn check(&self, wish: Option<&Wish>) -> Result<()> {
        let (Some(wish), Some(kind)) = (wish, self.kind()) else { return Ok(()) };
        let fits =
            wish.kind.is_none_or(|wanted| kind == wanted || (kind == Kind::Bytes && wanted == Kind::Text));
        if !fits {
            let wanted = wish.kind.map_or("", Kind::name);
            return Err(Error::corrupt(format!("found {}, expected {wanted}", kind.name())));
        }
        let Some(shape) = &wish.shape else { return Ok(()) };
        let wanted = shape.iter().try_fold(1_usize, |count, &axis| count.checked_mul(axis));
        if wanted != Some(self.len()) {
            return Err(Error::corrupt(format!("found {} values, expected the shape {shape:?}", self.len())));
        }
        Ok(())
    }
}

/// Byte strings: one alone, unless its shape has axes, or a list.
fn strings(values: &[Message], message: &Buffer, wish: Option<&Wish>) -> Result<Value> {
    let text = wish.is_some_and(|wish| wish.kind == Some(Kind::Text));
    let listed = wish.and_then(|wish| wish.shape.as_ref()).is_some_and(|shape| !shape.is_empty());
    let items = values.iter().map(|value| {
        let bytes = message.get(value.at..value.at + value.bytes.len());
        let bytes = bytes.ok_or_else(|| Error::bug("a value outside its message"))?;
        if text {
            let text = Str::from_utf8(bytes)
                .map_err(|_| Error::corrupt("the text is not UTF-8").context("byte", value.at))?;
            return Ok(text.into());
        }
        Ok(bytes.into())
    });
    let mut items = items.collect::<Result<Vec<Value>>>()?;
    match items.pop() {
        Some(only) if items.is_empty() && !listed => Ok(only),
        last => {
            items.extend(last);
            Ok(Value::list(items))
        }
    }
}

/// The numbers of features of one kind, one after the other, as one tensor; their count fits the shape.
fn numbers(features: &[&Feature], shape: &[usize], alloc: Alloc) -> Result<Value> {
    let count: usize = features.iter().map(|feature| feature.len()).sum();
    let ints = matches!(features.first(), Some(Feature::Ints(_)));
    let (dtype, size) = if ints { (DType::I64, 8) } else { (DType::F32, 4) };
    let mut out = alloc(count * size)?;
    let mut places = out.chunks_exact_mut(size);
    for feature in features {
        match feature {
            Feature::Floats(parts) => {
                for (value, place) in parts.iter().flat_map(|part| part.chunks_exact(4)).zip(&mut places) {
                    place.copy_from_slice(value);
                }
            }
            Feature::Ints(parts) => {
                for (value, place) in parts.iter().flat_map(|part| varints(part)).zip(&mut places) {
                    place.copy_from_slice(&value?.to_le_bytes());
                }
                // A number that is cut off is not counted, and so not read above.
                let cut = |part: &&&[u8]| part.last().is_some_and(|last| last & 0x80 != 0);
                if let Some(part) = parts.iter().find(cut) {
                    varints(part).collect::<Result<Vec<_>>>()?;
                }
            }
            _ => {}
        }
    }
    Ok(Tensor::new(dtype, shape, out.freeze())?.into())
}

/// The values of all steps: along one more axis where they are numbers and equally many, else a list.
fn stack(steps: &[Feature], message: &Buffer, wish: Option<&Wish>, alloc: Alloc) -> Result<Value> {
    let Some(first) = steps.first() else { return Ok(Value::list(Vec::new())) };
    let alike = steps.iter().all(|step| step.kind() == first.kind() && step.len() == first.len());
    if alike && matches!(first, Feature::Floats(_) | Feature::Ints(_)) {
        steps.iter().try_for_each(|step| step.check(wish))?;
        let own = vec![first.len()];
        let each = wish.and_then(|wish| wish.shape.as_ref()).unwrap_or(&own);
        let shape: Vec<_> = [steps.len()].into_iter().chain(each.iter().copied()).collect();
        return numbers(&steps.iter().collect::<Vec<_>>(), &shape, alloc);
    }
    let items = steps.iter().map(|step| step.value(message, wish, alloc));
    items.collect::<Result<_>>().map(Value::list)
}
