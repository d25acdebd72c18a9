//! What an expression works with: values as they lie in a sample, and those that it makes.

use std::{borrow::Cow, cmp::Ordering};

use forebay_core::{Buffer, Error, Result, Str, Tensor, Value, View};

use super::numbers;
use crate::{plumbing::stack::read_scalar, unbatch::row_of};

/// A value while an expression runs.
#[derive(Debug, Clone)]
pub(super) enum Val<'a> {
    Null,
    Bool(bool),
    Int(i64),
    UInt(u64),
    Float(f64),
    Text(Cow<'a, str>),
    Bytes(&'a [u8]),
    /// What it made.
    List(Vec<Val<'a>>),
    Map(Vec<(&'a str, Val<'a>)>),
    /// A list, struct, tensor or another thing of a sample.
    Of(&'a Value),
    /// A row of a tensor with more axes than one, whose memory it shares.
    Row(Box<Tensor>),
}

impl<'a> Val<'a> {
    #[inline]
    pub(super) fn of(value: &'a Value) -> Self {
        match value.view() {
            View::Null => Self::Null,
            View::Bool(truth) => Self::Bool(truth),
            View::Int(number) => Self::Int(number),
            View::UInt(number) => Self::UInt(number),
            View::Float(number) => Self::Float(number),
            View::Str(text) => Self::Text(Cow::Borrowed(text)),
            View::Bytes(bytes) => Self::Bytes(bytes),
            _ => Self::Of(value),
        }
    }

    /// As it goes into a sample.
    pub(super) fn into_value(self) -> Value {
        match self {
            Self::Null => Value::NULL,
            Self::Bool(truth) => truth.into(),
            Self::Int(number) => number.into(),
            Self::UInt(number) => number.into(),
            Self::Float(number) => number.into(),
            Self::Text(text) => Str::from(text.into_owned()).into(),
            Self::Bytes(bytes) => Buffer::from(bytes.to_vec()).into(),
            Self::List(values) => Value::list(values.into_iter().map(Val::into_value).collect()),
            Self::Map(fields) => {
                let fields = fields.into_iter().map(|(name, value)| (Str::from(name), value.into_value()));
                Value::structure(fields.collect())
            }
            Self::Of(value) => value.clone(),
            Self::Row(tensor) => (*tensor).into(),
        }
    }

    /// What it is, for errors.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a truth value",
            Self::Int(_) => "an integer",
            Self::UInt(_) => "an unsigned integer",
            Self::Float(_) => "a float",
            Self::Text(_) => "text",
            Self::Bytes(_) => "bytes",
            Self::List(_) => "a list",
            Self::Map(_) => "a struct",
            Self::Row(_) => "a tensor",
            Self::Of(value) => match value.view() {
                View::List(_) => "a list",
                View::Struct(_) => "a struct",
                View::Tensor(_) => "a tensor",
                View::Arrow(_) => "Arrow columns",
                _ => "a value of another plugin",
            },
        }
    }

    /// How two numbers, texts, truth values or bytes compare; none where one is NaN.
    #[inline]
    pub(super) fn compare(&self, other: &Self) -> Result<Option<Ordering>> {
        Ok(match (self, other) {
            (Self::Int(one), Self::Int(other)) => Some(one.cmp(other)),
            (Self::Text(one), Self::Text(other)) => Some(one.cmp(other)),
            (Self::Bool(one), Self::Bool(other)) => Some(one.cmp(other)),
            (Self::Bytes(one), Self::Bytes(other)) => Some(one.cmp(other)),
            _ => match (numbers::of(self), numbers::of(other)) {
                (Some(one), Some(other)) => one.compare(other),
                _ => {
                    let (one, other) = (self.kind(), other.kind());
                    return Err(Error::invalid(format!("{one} cannot be compared with {other}")));
                }
            },
        })
    }

    /// Whether two are the same: numbers by what they are, whatever their types; values of other kinds never.
    pub(super) fn equals(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Int(one), Self::Int(other)) => one == other,
            (Self::Text(one), Self::Text(other)) => one == other,
            (Self::Of(one), Self::Of(other)) if !matches!(one.view(), View::List(_) | View::Struct(_)) => {
                one == other
            }
            _ => match (self.items(), other.items(), self.names(), other.names()) {
                (Some(one), Some(other), ..) => {
                    one.len() == other.len() && one.zip(other).all(|(one, other)| one.equals(&other))
                }
                (_, _, Some(one), Some(names)) => {
                    one.len() == names.len()
                        && one.iter().all(|name| match (self.get(name), other.get(name)) {
                            (Some(one), Some(other)) => one.equals(&other),
                            _ => false,
                        })
                }
                _ => matches!(self.compare(other), Ok(Some(Ordering::Equal))),
            },
        }
    }

    /// The tensor that it is.
    pub(super) fn tensor(&self) -> Option<&Tensor> {
        match self {
            Self::Row(tensor) => Some(tensor),
            Self::Of(value) => value.as_tensor(),
            _ => None,
        }
    }

    /// The items of a list, or those of a tensor with axes: numbers, or rows along the first one.
    pub(super) fn items(&self) -> Option<Items<'a, '_>> {
        let (len, items) = match self {
            Self::List(items) => return Some(Items::of(items)),
            Self::Row(tensor) => (first_axis(tensor), Held::Tensor(tensor)),
            Self::Of(value) => match value.view() {
                View::List(items) => (items.len(), Held::List(items)),
                View::Tensor(tensor) if !tensor.shape().is_empty() => {
                    (first_axis(tensor), Held::Tensor(tensor))
                }
                _ => return None,
            },
            _ => return None,
        };
        Some(Items { held: items, at: 0, len })
    }

    /// The names of a struct, in its order.
    pub(super) fn names(&self) -> Option<Vec<&str>> {
        match self {
            Self::Map(fields) => Some(fields.iter().map(|(name, _)| *name).collect()),
            Self::Of(value) => match value.view() {
                View::Struct(fields) => Some(fields.schema().names().iter().map(Str::as_str).collect()),
                _ => None,
            },
            _ => None,
        }
    }

    /// The value of this name in a struct.
    pub(super) fn get(&self, name: &str) -> Option<Val<'a>> {
        match self {
            Self::Map(fields) => {
                fields.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
            }
            Self::Of(value) => match value.view() {
                View::Struct(fields) => fields.get(name).map(Val::of),
                _ => None,
            },
            _ => None,
        }
    }
}

/// How long the first axis is.
pub(super) fn first_axis(tensor: &Tensor) -> usize {
    tensor.shape().first().and_then(|&len| usize::try_from(len).ok()).unwrap_or(0)
}

/// Items, one after the other.
#[derive(Clone)]
pub(super) struct Items<'a, 'v> {
    held: Held<'a, 'v>,
    at: usize,
    len: usize,
}

#[derive(Clone)]
enum Held<'a, 'v> {
    Made(&'v [Val<'a>]),
    List(&'a [Value]),
    Tensor(&'v Tensor),
}

impl<'a, 'v> Items<'a, 'v> {
    /// These values.
    pub(super) fn of(values: &'v [Val<'a>]) -> Self {
        Self { held: Held::Made(values), at: 0, len: values.len() }
    }

    /// The item at a place.
    pub(super) fn at(&self, at: usize) -> Option<Val<'a>> {
        match self.held {
            Held::Made(items) => items.get(at).cloned(),
            Held::List(items) => items.get(at).map(Val::of),
            Held::Tensor(tensor) if at < self.len => match tensor.shape() {
                [_] => Some(number_at(tensor, at)),
                _ => row_of(tensor, at).ok().map(|row| Val::Row(row.into())),
            },
            Held::Tensor(_) => None,
        }
    }
}

impl<'a> Iterator for Items<'a, '_> {
    type Item = Val<'a>;

    fn next(&mut self) -> Option<Val<'a>> {
        let item = self.at(self.at).filter(|_| self.at < self.len)?;
        self.at += 1;
        Some(item)
    }
}

impl Items<'_, '_> {
    pub(super) fn len(&self) -> usize {
        self.len
    }
}

/// The number at a place of a tensor's elements, which has so many.
pub(super) fn number_at<'a>(tensor: &Tensor, at: usize) -> Val<'a> {
    let dtype = tensor.dtype();
    match Value::scalar(dtype, read_scalar(tensor.data(), at, dtype)).view() {
        View::Bool(truth) => Val::Bool(truth),
        View::Int(number) => Val::Int(number),
        View::UInt(number) => Val::UInt(number),
        View::Float(number) => Val::Float(number),
        _ => Val::Null,
    }
}
