//! Typed options: one macro makes the struct, its schema for the manifest, and its reader.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use crate::{
    Error, Result, Texts,
    descriptor::{List, OptionKind, OptionSpec},
    manifest::is_required,
    texts::Given,
};

/// A set of options that can be read from a JSON object. [`options!`](crate::options!) makes it.
pub trait Options: Sized {
    /// The schema, in order; the first option may be given by position.
    const SPECS: &'static [OptionSpec];

    /// Reads the options; missing ones take their defaults.
    ///
    /// # Errors
    /// `Invalid`, with the option: unknown, of the wrong type, out of range, or missing.
    fn read(reader: &mut Reader) -> Result<Self>;

    /// Reads the options from JSON text.
    ///
    /// # Errors
    /// As [`read`](Options::read).
    fn parse(json: &str) -> Result<Self> {
        Self::read(&mut Reader::new(json, Self::SPECS)?)
    }
}

/// For a pipe, decoder or store without options.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoOptions;

impl Options for NoOptions {
    const SPECS: &'static [OptionSpec] = &[];

    fn read(_: &mut Reader) -> Result<Self> {
        Ok(Self)
    }
}

/// Makes a struct of options, with schema and reader.
///
/// Each field is `name: Type = default;` or `name: Type = required;`, then `in MIN..=MAX` for a
/// range and `one_of ["a", "b"]` for a choice. A default is written as JSON. Types: `bool`, integers,
/// floats, `String`, [`Vec`], [`Option`] (null), [`OneOrMany`], [`Texts`], [`Any`].
///
/// ```
/// use forebay_core::{Options, options};
///
/// options! {
///     /// Options of `batch`.
///     pub struct BatchOptions {
///         /// Samples in one batch.
///         size: u64 = required, in 1..=1_000_000;
///         /// Leave out the last, shorter batch.
///         drop_last: bool = false;
///         /// What to do with values of several shapes.
///         ragged: String = "refuse", one_of ["refuse", "list"];
///     }
/// }
///
/// let options = BatchOptions::parse(r#"{"size": 64}"#)?;
/// assert_eq!((options.size, options.drop_last), (64, false));
/// assert!(BatchOptions::parse(r#"{"size": 0}"#).is_err());
/// assert!(BatchOptions::parse(r#"{"sizes": 64}"#).is_err());
/// # Ok::<(), forebay_core::Error>(())
/// ```
#[macro_export]
macro_rules! options {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident {
            $(
                $(#[doc = $doc:literal])*
                $field:ident: $type:ty = $default:expr
                    $(, in $min:literal ..= $max:literal)?
                    $(, one_of [$($choice:literal),* $(,)?])?;
            )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone)]
        $vis struct $name {
            $($(#[doc = $doc])* pub $field: $type,)*
        }

        impl $crate::Options for $name {
            const SPECS: &'static [$crate::descriptor::OptionSpec] = &[$(
                $crate::descriptor::OptionSpec {
                    name: stringify!($field),
                    kind: <$type as $crate::OptionType>::KIND,
                    default: stringify!($default),
                    min: concat!($($min)?),
                    max: concat!($($max)?),
                    choices: &[$($($choice),*)?],
                    doc: concat!($($doc),*),
                }
            ),*];

            fn read(reader: &mut $crate::options::Reader) -> $crate::Result<Self> {
                Ok(Self { $($field: reader.option(stringify!($field))?,)* })
            }
        }
    };
}

/// A JSON object of options, checked against a schema.
pub struct Reader {
    given: BTreeMap<String, Given>,
    specs: &'static [OptionSpec],
}

impl Reader {
    /// Reads JSON text and refuses options that the schema does not know.
    ///
    /// # Errors
    /// `Invalid`.
    pub fn new(json: &str, specs: &'static [OptionSpec]) -> Result<Self> {
        let given: BTreeMap<String, Given> = serde_json::from_str(json)
            .map_err(|error| Error::invalid(format!("options are no JSON object: {error}")))?;
        if let Some(unknown) = given.keys().find(|key| specs.iter().all(|spec| spec.name != **key)) {
            let names: Vec<_> = specs.iter().map(|spec| spec.name).collect();
            let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return Err(
                Error::invalid(format!("unknown option; known are: {known}")).context("option", unknown)
            );
        }
        Ok(Self { given, specs })
    }

    /// Takes one option, or its default.
    ///
    /// # Errors
    /// `Invalid`, with the option.
    pub fn option<T: OptionType>(&mut self, name: &str) -> Result<T> {
        let spec = self.specs.iter().find(|spec| spec.name == name);
        let spec = spec.ok_or_else(|| Error::bug("an option without a schema").context("option", name))?;
        let value = match self.given.remove(name) {
            Some(value) => value,
            None if is_required(spec.default) => {
                return Err(Error::invalid("missing option").context("option", name));
            }
            None => serde_json::from_str(spec.default)
                .map_err(|error| Error::bug(format!("the default is no JSON: {error}")))?,
        };
        let wrong = |value| format!("found {value}, expected {}", T::KIND.describe());
        let read = match value {
            Given::Texts(texts) => {
                let choices = texts.iter().try_for_each(|text| check_choice(spec, text));
                choices.and_then(|()| T::of_texts(texts).map_err(wrong))
            }
            Given::Json(value) => check_bounds(spec, &value).and_then(|()| T::read(value).map_err(wrong)),
        };
        read.map_err(|message| Error::invalid(message).context("option", name))
    }
}

fn check_bounds(spec: &OptionSpec, value: &Json) -> Result<(), String> {
    if let Some(items) = value.as_array() {
        return items.iter().try_for_each(|item| check_bounds(spec, item));
    }
    if let Some(number) = value.as_f64()
        && !spec.min.is_empty()
    {
        let bound = |text: &str| text.parse::<f64>().unwrap_or(f64::NAN);
        if !(bound(spec.min)..=bound(spec.max)).contains(&number) {
            return Err(format!("found {value}, expected {} to {}", spec.min, spec.max));
        }
    }
    value.as_str().map_or(Ok(()), |text| check_choice(spec, text))
}

fn check_choice(spec: &OptionSpec, text: &str) -> Result<(), String> {
    if spec.choices.is_empty() || spec.choices.contains(&text) {
        return Ok(());
    }
    Err(format!("found {text:?}, expected one of {}", spec.choices.join(", ")))
}

/// A type that an option can have.
pub trait OptionType: Sized {
    /// The kind of value.
    const KIND: OptionKind;

    /// Reads a value. Its contents are moved, not copied.
    ///
    /// # Errors
    /// The value, or the part of it that has another kind or does not fit.
    fn read(value: Json) -> Result<Self, Json>;

    /// Reads a list of only texts, which can be long.
    ///
    /// # Errors
    /// As [`read`](OptionType::read).
    fn of_texts(texts: Texts) -> Result<Self, Json> {
        Self::read(Given::Texts(texts).into_json())
    }
}

impl OptionKind {
    const fn one(base: &'static str) -> Self {
        Self { base, list: List::No, optional: false }
    }

    /// The kind in words.
    #[must_use]
    pub fn describe(&self) -> String {
        let null = if self.optional { " or null" } else { "" };
        match self.list {
            List::No => format!("{}{null}", self.base),
            List::Yes => format!("a list of {}{null}", self.base),
            List::Either => format!("{0} or a list of {0}{null}", self.base),
        }
    }
}

macro_rules! option_types {
    ($($type:ty => $base:literal, $read:expr;)*) => {
        $(impl OptionType for $type {
            const KIND: OptionKind = OptionKind::one($base);

            fn read(value: Json) -> Result<Self, Json> {
                let read: fn(&Json) -> Option<$type> = $read;
                read(&value).ok_or(value)
            }
        })*
    };
}

option_types! {
    bool => "bool", Json::as_bool;
    i64 => "int", Json::as_i64;
    i32 => "int", |value| value.as_i64()?.try_into().ok();
    u64 => "uint", Json::as_u64;
    u32 => "uint", |value| value.as_u64()?.try_into().ok();
    usize => "uint", |value| value.as_u64()?.try_into().ok();
    f64 => "float", Json::as_f64;
}

impl OptionType for String {
    const KIND: OptionKind = OptionKind::one("str");

    fn read(value: Json) -> Result<Self, Json> {
        match value {
            Json::String(text) => Ok(text),
            other => Err(other),
        }
    }
}

impl<T: OptionType> OptionType for Vec<T> {
    const KIND: OptionKind = OptionKind { list: List::Yes, ..T::KIND };

    fn read(value: Json) -> Result<Self, Json> {
        match value {
            Json::Array(items) => items.into_iter().map(T::read).collect(),
            other => Err(other),
        }
    }
}

impl<T: OptionType> OptionType for Option<T> {
    const KIND: OptionKind = OptionKind { optional: true, ..T::KIND };

    fn read(value: Json) -> Result<Self, Json> {
        if value.is_null() { Ok(None) } else { T::read(value).map(Some) }
    }
}

/// One value or a list of them: `size = 224` or `size = [224, 224]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OneOrMany<T>(pub Vec<T>);

impl<T: OptionType> OptionType for OneOrMany<T> {
    const KIND: OptionKind = OptionKind { list: List::Either, ..T::KIND };

    fn read(value: Json) -> Result<Self, Json> {
        match value {
            Json::Array(items) => items.into_iter().map(T::read).collect::<Result<_, _>>().map(Self),
            one => T::read(one).map(|one| Self(vec![one])),
        }
    }
}

/// Any JSON, which the pipe checks itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Any(pub Json);

impl OptionType for Any {
    const KIND: OptionKind = OptionKind::one("any");

    fn read(value: Json) -> Result<Self, Json> {
        Ok(Self(value))
    }
}
