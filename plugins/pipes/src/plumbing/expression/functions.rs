//! The functions of the language, and those of its extensions for text and numbers.

use std::borrow::Cow;

use forebay_core::{Error, Result, View};

use super::{
    node::Row,
    numbers::{self, Number},
    reduce,
    val::{Val, first_axis},
};

/// A function, by its name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Function {
    called: &'static str,
    call: Call,
}

/// What a function does, by what it takes.
#[derive(Debug, Clone, Copy)]
enum Call {
    /// Nothing: it draws.
    Random,
    /// Nothing but the sample.
    Sample(for<'a> fn(&Row<'a>) -> Result<Val<'a>>),
    One(for<'a> fn(&Val<'a>) -> Option<Result<Val<'a>>>),
    Two(for<'a> fn(&Val<'a>, &Val<'a>) -> Option<Result<Val<'a>>>),
    Three(for<'a> fn(&Val<'a>, &Val<'a>, &Val<'a>) -> Option<Result<Val<'a>>>),
    /// At least one number, or a list or tensor of them.
    Numbers(for<'a> fn(&[Val<'a>]) -> Option<Result<Val<'a>>>),
    Float(fn(f64) -> f64),
}

const FUNCTIONS: &[Function] = &[
    Function { called: "key", call: Call::Sample(|row| Ok(Val::Text(Cow::Owned(row.key.to_string())))) },
    Function {
        called: "origin",
        call: Call::Sample(|row| Ok(Val::Text(Cow::Borrowed(row.key.origin.as_str())))),
    },
    Function { called: "random", call: Call::Random },
    Function { called: "size", call: Call::One(size) },
    Function { called: "shape", call: Call::One(shape) },
    Function { called: "type", call: Call::One(|value| Some(Ok(Val::Text(type_of(value).into())))) },
    Function { called: "int", call: Call::One(int) },
    Function { called: "uint", call: Call::One(uint) },
    Function { called: "double", call: Call::One(double) },
    Function { called: "string", call: Call::One(string) },
    Function { called: "bool", call: Call::One(boolean) },
    Function { called: "abs", call: Call::One(abs) },
    Function { called: "min", call: Call::Numbers(reduce::min) },
    Function { called: "max", call: Call::Numbers(reduce::max) },
    Function { called: "argmin", call: Call::Numbers(reduce::argmin) },
    Function { called: "argmax", call: Call::Numbers(reduce::argmax) },
    Function { called: "sum", call: Call::Numbers(reduce::sum) },
    Function { called: "mean", call: Call::Numbers(reduce::mean) },
    Function { called: "std", call: Call::Numbers(reduce::std) },
    Function { called: "floor", call: Call::Float(f64::floor) },
    Function { called: "ceil", call: Call::Float(f64::ceil) },
    Function { called: "round", call: Call::Float(f64::round) },
    Function { called: "sqrt", call: Call::Float(f64::sqrt) },
    Function { called: "exp", call: Call::Float(f64::exp) },
    Function { called: "log", call: Call::Float(f64::ln) },
    Function { called: "head", call: Call::Two(head) },
    Function {
        called: "contains",
        call: Call::Two(|text, part| texts(text, part, |text, part| Val::Bool(text.contains(part)))),
    },
    Function {
        called: "startsWith",
        call: Call::Two(|text, part| texts(text, part, |text, part| Val::Bool(text.starts_with(part)))),
    },
    Function {
        called: "endsWith",
        call: Call::Two(|text, part| texts(text, part, |text, part| Val::Bool(text.ends_with(part)))),
    },
    Function { called: "split", call: Call::Two(|text, part| texts(text, part, split)) },
    Function { called: "join", call: Call::Two(join) },
    Function { called: "replace", call: Call::Three(replace) },
    Function { called: "substring", call: Call::Three(substring) },
    Function {
        called: "lowerAscii",
        call: Call::One(|text| changed(text, |text| text.to_ascii_lowercase())),
    },
    Function {
        called: "upperAscii",
        call: Call::One(|text| changed(text, |text| text.to_ascii_uppercase())),
    },
    Function { called: "trim", call: Call::One(|text| changed(text, |text| text.trim().to_owned())) },
];

impl Function {
    /// The function of this name, for so many arguments.
    ///
    /// # Errors
    /// `Invalid` when there is none, or it takes others.
    pub(super) fn find(name: &str, count: usize) -> Result<Self> {
        let Some(found) = FUNCTIONS.iter().find(|function| function.called == name) else {
            let names: Vec<_> = FUNCTIONS.iter().map(|function| function.called).collect();
            return Err(Error::invalid(format!(
                "no function `{name}`; there are: matches, {}",
                names.join(", ")
            )));
        };
        let wanted = match found.call {
            Call::Random | Call::Sample(_) => 0,
            Call::One(_) | Call::Float(_) => 1,
            Call::Two(_) => 2,
            Call::Three(_) => 3,
            Call::Numbers(_) => count.max(1),
        };
        if count == wanted {
            return Ok(*found);
        }
        Err(Error::invalid(format!(
            "`{name}` takes {wanted} values, the one before the dot too; found {count}"
        )))
    }

    /// Whether it draws a number.
    #[inline]
    pub(super) fn is_random(self) -> bool {
        matches!(self.call, Call::Random)
    }

    pub(super) fn call<'a>(self, values: Vec<Val<'a>>, row: &Row<'a>) -> Result<Val<'a>> {
        let done = match (self.call, &values[..]) {
            (Call::Random, _) => Some(row.draws.next().map(Val::Float)),
            (Call::Sample(call), _) => Some(call(row)),
            (Call::One(call), [one]) => call(one),
            (Call::Two(call), [one, two]) => call(one, two),
            (Call::Three(call), [one, two, three]) => call(one, two, three),
            (Call::Numbers(call), values) => call(values),
            (Call::Float(call), [one]) => numbers::of(one).map(|number| Ok(Val::Float(call(number.float())))),
            _ => None,
        };
        done.unwrap_or_else(|| {
            let kinds: Vec<_> = values.iter().map(Val::kind).collect();
            Err(Error::invalid(format!("`{}` does not take {}", self.called, kinds.join(" and "))))
        })
    }
}

/// Characters of a text, bytes, items of a list, fields of a struct; of a tensor the length of its first axis.
fn size<'a>(value: &Val<'a>) -> Option<Result<Val<'a>>> {
    let size = match value {
        Val::Text(text) => text.chars().count(),
        Val::Bytes(bytes) => bytes.len(),
        _ => {
            let tensor = value.tensor().map(first_axis);
            let items = || value.items().map(|items| items.len());
            tensor.or_else(items).or_else(|| value.names().map(|names| names.len()))?
        }
    };
    Some(Ok(Val::Int(size as i64)))
}

fn shape<'a>(value: &Val<'a>) -> Option<Result<Val<'a>>> {
    let tensor = value.tensor()?;
    Some(Ok(Val::List(tensor.shape().iter().map(|&axis| Val::Int(axis)).collect())))
}

fn type_of(value: &Val<'_>) -> &'static str {
    match value {
        Val::Null => "null",
        Val::Bool(_) => "bool",
        Val::Int(_) => "int",
        Val::UInt(_) => "uint",
        Val::Float(_) => "double",
        Val::Text(_) => "string",
        Val::Bytes(_) => "bytes",
        Val::List(_) => "list",
        Val::Map(_) => "struct",
        Val::Row(_) => "tensor",
        Val::Of(value) => match value.view() {
            View::List(_) => "list",
            View::Struct(_) => "struct",
            View::Tensor(_) => "tensor",
            View::Arrow(_) => "arrow",
            _ => "opaque",
        },
    }
}

/// The integer that a number, cut off, or the digits of a text are.
fn integer(value: &Val<'_>) -> Option<Result<i128>> {
    if let Val::Text(text) = value {
        return Some(text.parse().map_err(|_| Error::invalid(format!("`{text}` is no integer"))));
    }
    Some(match numbers::of(value)? {
        Number::Whole(number) => Ok(number),
        // The cast saturates, beyond all that 64 bits hold; NaN is no number.
        Number::Float(number) if number.is_nan() => Err(Error::invalid("NaN is no integer")),
        Number::Float(number) => Ok(number as i128),
    })
}

fn int<'a>(value: &Val<'a>) -> Option<Result<Val<'a>>> {
    Some(integer(value)?.and_then(|number| {
        i64::try_from(number).map(Val::Int).map_err(|_| Error::invalid(format!("{number} is no int64")))
    }))
}

fn uint<'a>(value: &Val<'a>) -> Option<Result<Val<'a>>> {
    Some(integer(value)?.and_then(|number| {
        u64::try_from(number).map(Val::UInt).map_err(|_| Error::invalid(format!("{number} is no uint64")))
    }))
}

fn double<'a>(value: &Val<'a>) -> Option<Result<Val<'a>>> {
    if let Val::Text(text) = value {
        let number = text.parse().map_err(|_| Error::invalid(format!("`{text}` is no number")));
        return Some(number.map(Val::Float));
    }
    numbers::of(value).map(|number| Ok(Val::Float(number.float())))
}

fn string<'a>(value: &Val<'a>) -> Option<Result<Val<'a>>> {
    let text: Cow<'a, str> = match value {
        Val::Text(text) => text.clone(),
        Val::Bool(truth) => truth.to_string().into(),
        Val::Int(number) => number.to_string().into(),
        Val::UInt(number) => number.to_string().into(),
        Val::Float(number) => number.to_string().into(),
        Val::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => text.into(),
            Err(error) => return Some(Err(Error::invalid(format!("bytes that are no text: {error}")))),
        },
        _ => return None,
    };
    Some(Ok(Val::Text(text)))
}

fn boolean<'a>(value: &Val<'a>) -> Option<Result<Val<'a>>> {
    Some(match value {
        Val::Bool(truth) => Ok(Val::Bool(*truth)),
        Val::Text(text) => match &**text {
            "true" => Ok(Val::Bool(true)),
            "false" => Ok(Val::Bool(false)),
            other => Err(Error::invalid(format!("`{other}` is neither `true` nor `false`"))),
        },
        _ => return None,
    })
}

fn abs<'a>(value: &Val<'a>) -> Option<Result<Val<'a>>> {
    Some(match numbers::of(value)? {
        Number::Whole(number) => numbers::whole(number.abs()),
        Number::Float(number) => Ok(Val::Float(number.abs())),
    })
}

/// The first so many bytes, or all there are: a file's kind stands there.
fn head<'a>(bytes: &Val<'a>, count: &Val<'a>) -> Option<Result<Val<'a>>> {
    let (Val::Bytes(bytes), Val::Int(count)) = (bytes, count) else { return None };
    let found = usize::try_from(*count).map(|count| Val::Bytes(bytes.get(..count).unwrap_or(bytes)));
    Some(found.map_err(|_| Error::invalid(format!("the first {count} bytes; expected 0 or more"))))
}

fn texts<'a>(
    one: &Val<'a>,
    other: &Val<'a>,
    call: impl FnOnce(&str, &str) -> Val<'a>,
) -> Option<Result<Val<'a>>> {
    let (Val::Text(one), Val::Text(other)) = (one, other) else { return None };
    Some(Ok(call(one, other)))
}

fn split<'a>(text: &str, between: &str) -> Val<'a> {
    Val::List(text.split(between).map(|part| Val::Text(part.to_owned().into())).collect())
}

fn join<'a>(list: &Val<'a>, between: &Val<'a>) -> Option<Result<Val<'a>>> {
    let (items, Val::Text(between)) = (list.items()?, between) else { return None };
    let mut all = String::new();
    for (at, item) in items.enumerate() {
        let Val::Text(item) = item else { return None };
        if at > 0 {
            all.push_str(between);
        }
        all.push_str(&item);
    }
    Some(Ok(Val::Text(all.into())))
}

fn replace<'a>(text: &Val<'a>, old: &Val<'a>, new: &Val<'a>) -> Option<Result<Val<'a>>> {
    let (Val::Text(text), Val::Text(old), Val::Text(new)) = (text, old, new) else { return None };
    Some(Ok(Val::Text(text.replace(&**old, new).into())))
}

/// The characters from one place to before another.
fn substring<'a>(text: &Val<'a>, from: &Val<'a>, to: &Val<'a>) -> Option<Result<Val<'a>>> {
    let (Val::Text(text), Val::Int(from), Val::Int(to)) = (text, from, to) else { return None };
    let place = |at: i64| {
        let at = usize::try_from(at).ok()?;
        text.char_indices().map(|(place, _)| place).chain([text.len()]).nth(at)
    };
    let found = place(*from).zip(place(*to)).and_then(|(from, to)| text.get(from..to));
    Some(found.map(|part| Val::Text(part.to_owned().into())).ok_or_else(|| {
        Error::invalid(format!("no characters {from} to {to} in a text of {}", text.chars().count()))
    }))
}

fn changed<'a>(text: &Val<'a>, change: impl FnOnce(&str) -> String) -> Option<Result<Val<'a>>> {
    let Val::Text(text) = text else { return None };
    Some(Ok(Val::Text(change(text).into())))
}
