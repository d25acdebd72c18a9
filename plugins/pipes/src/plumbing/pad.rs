//! `Padding`: values of one field that differ in shape become one tensor.

use std::sync::Arc;

use forebay_core::{
    Buffer, Context, DType, Error, OneOrMany, Result, Schema, Str, Tensor, TensorExt, Value, View,
};

use crate::{
    plumbing::{
        number::Number,
        parts::{Cells, Dims, Parts, shown},
        rows::{Join, Rows},
        stack::{Place, join_or_copy, write_scalar},
    },
    rename::pair,
    select::{place, repeated},
};

/// As `options!`, with the options between the first ones and the last that all pipes have that pad; [`Pads`] takes these.
macro_rules! padding_options {
    ($(#[$meta:meta])* pub struct $name:ident { $($before:tt)* } then { $($after:tt)* }) => {
        options! {
            $(#[$meta])*
            pub struct $name {
                $($before)*
                /// Round the padded length up to a multiple of this, for the first axis or for each of the first
                /// axes, unless `pad_to` sets it.
                multiple: OneOrMany<usize> = 1, in 1..=1_000_000;
                /// The fields to pad; null for all tensors with axes and all lists of numbers.
                fields: Option<OneOrMany<String>> = null;
                /// `field=number`: the number that pads a field; 0 for the others.
                values: OneOrMany<String> = [];
                /// Add a mask for each padded field, of its shape, true where a value was: `_mask` is added to the
                /// field's name, or give `field=name`.
                mask: Option<OneOrMany<String>> = null;
                /// Add the length of the first axis before padding for each padded field: `_length` is added to the
                /// field's name, or give `field=name`.
                lengths: Option<OneOrMany<String>> = null;
                $($after)*
            }
        }

        impl $name {
            fn pads(&self) -> $crate::plumbing::pad::Pads {
                let Self { multiple, fields, values, mask, lengths, .. } = self.clone();
                $crate::plumbing::pad::Pads { fields: fields.map(|fields| fields.0), multiple, values, mask, lengths }
            }
        }
    };
}
pub(crate) use padding_options;

/// The options that all pipes have that pad, as they are given.
#[derive(Debug)]
pub(crate) struct Pads {
    /// The fields that are padded; none for all that can be.
    pub(crate) fields: Option<Vec<String>>,
    /// What the length of each axis is a multiple of, where it is that of the longest value.
    pub(crate) multiple: OneOrMany<usize>,
    /// `field=value`.
    pub(crate) values: OneOrMany<String>,
    /// `field=name`, or what is put behind a field's name.
    pub(crate) mask: Option<OneOrMany<String>>,
    pub(crate) lengths: Option<OneOrMany<String>>,
}

/// What is padded, and how.
#[derive(Debug, Clone)]
pub(crate) struct Padding {
    given: Arc<Pads>,
    /// What fields are padded with, by their names; the others with 0.
    with: Arc<[(String, Number)]>,
    /// The length of each axis; 0, and axes beyond these, for that of the longest value.
    to: Vec<usize>,
}

impl Padding {
    /// With these lengths of the first axes.
    ///
    /// # Errors
    /// `Invalid`, naming the option.
    pub(crate) fn new(given: Pads, to: Vec<usize>) -> Result<Self> {
        let refuse = |option: &str, message: String| Err(Error::invalid(message).context("option", option));
        let mut with = Vec::new();
        for text in &given.values.0 {
            let number =
                pair(text).and_then(|(field, value)| Some((field.to_owned(), Number::parse(value)?)));
            let Some(number) = number else {
                return refuse("values", format!("found `{text}`, expected `field=number`"));
            };
            with.push(number);
        }
        let padded: Vec<_> = with.iter().map(|(field, _)| field.as_str()).collect();
        let names = |option: &Option<OneOrMany<String>>| -> Vec<String> {
            let texts = option.iter().flat_map(|texts| &texts.0);
            texts.map(|text| pair(text).map_or("", |(field, _)| field).to_owned()).collect()
        };
        let (mask, lengths) = (names(&given.mask), names(&given.lengths));
        let fields: Vec<_> = given.fields.iter().flatten().map(String::as_str).collect();
        let of = |names: &[String]| -> Vec<String> { names.to_vec() };
        let lists = [
            ("values", padded.iter().map(|&name| name.to_owned()).collect()),
            ("mask", of(&mask)),
            ("lengths", of(&lengths)),
        ];
        if let Some(twice) = repeated(&fields) {
            return refuse("fields", format!("`{twice}` is named twice"));
        }
        for (option, list) in lists {
            match repeated(&list) {
                Some("") => return refuse(option, "there is more than one for all fields".to_owned()),
                Some(twice) => return refuse(option, format!("`{twice}` is named twice")),
                None => {}
            }
            let other = list.iter().find(|name| !name.is_empty() && !fields.contains(&name.as_str()));
            if let (Some(other), Some(_)) = (other, &given.fields) {
                return refuse(option, format!("`{other}` is not among the fields to pad"));
            }
        }
        Ok(Self { given: Arc::new(given), with: with.into(), to })
    }

    /// The same with the first axis as long as `length`.
    pub(crate) fn to_length(&self, length: usize) -> Self {
        Self { to: vec![length], ..self.clone() }
    }

    /// What the field for `option` of a padded field is called, if it is wanted.
    fn name(option: Option<&OneOrMany<String>>, field: &str) -> Option<String> {
        let texts = &option?.0;
        let own = texts.iter().find_map(|text| pair(text).filter(|(of, _)| *of == field));
        let suffix = || texts.iter().find(|text| pair(text).is_none());
        own.map(|(_, name)| name.to_owned()).or_else(|| Some(format!("{field}{}", suffix()?)))
    }

    /// The lengths of the axes after padding, where the longest have these.
    fn target(&self, longest: &Dims) -> Dims {
        let mut target = *longest;
        for (axis, length) in target.iter_mut().enumerate() {
            let multiple = self.given.multiple.0.get(axis).copied().unwrap_or(1);
            *length = match self.to.get(axis) {
                Some(&fixed) if fixed > 0 => fixed,
                _ => length.checked_next_multiple_of(multiple).unwrap_or(usize::MAX),
            };
        }
        target
    }

    fn number(&self, field: &str) -> Number {
        self.with.iter().find(|(name, _)| name == field).map_or(Number::ZERO, |(_, number)| *number)
    }

    /// Whether a value may come to `parts`.
    fn check(&self, parts: &Parts, field: &str, dtype: DType, dims: &Dims, cx: &Context) -> Result<()> {
        let number = self.number(field);
        if parts.values().is_empty() && number.bits(dtype).is_none() {
            let message = format!("{number} is no {dtype}, with which that field could be padded");
            return Err(Error::invalid(message).context("option", "values"));
        }
        let target = self.target(&parts.longest().max(dims));
        if dims.iter().zip(&*target).any(|(length, fixed)| length > fixed) {
            let (found, most) = (shown(dtype, dims), &*target);
            return Err(Error::invalid(format!("cannot pad: found {found}, expected at most {most:?}")));
        }
        size(parts.values().len() + 1, &target, dtype.size(), cx).map(drop)
    }

    /// One memory with all values in it, each padded.
    fn write(parts: &Parts, target: &Dims, pad: &[u8], cx: &Context) -> Result<Buffer> {
        let whole = parts.values().iter().map(|value| value.as_tensor().map(Tensor::data));
        if parts.values().iter().all(|value| parts.dims(value) == *target)
            && let Some(whole) = whole.collect::<Option<Vec<_>>>()
        {
            return join_or_copy(&whole, cx);
        }
        let width = pad.len();
        let mut bytes = cx.alloc(size(parts.values().len(), target, width, cx)?)?;
        for (value, part) in parts.values().iter().zip(places(&mut bytes, parts.values().len())) {
            let mut end = 0;
            runs(&parts.dims(value), target, (0, 0), &mut |from, to, count| {
                fill(&mut part[end * width..to * width], pad);
                let part = &mut part[to * width..(to + count) * width];
                match value.view() {
                    View::Tensor(tensor) => {
                        part.copy_from_slice(&tensor.data()[from * width..(from + count) * width]);
                    }
                    View::List(items) => {
                        for (at, item) in items[from..from + count].iter().enumerate() {
                            write_scalar(part, at, width, item.bits());
                        }
                    }
                    _ => {}
                }
                end = to + count;
            });
            fill(&mut part[end * width..], pad);
        }
        Ok(bytes.freeze())
    }

    /// Of each number whether it was there before.
    fn mask(parts: &Parts, target: &Dims, cx: &Context) -> Result<Buffer> {
        let mut bytes = cx.alloc(size(parts.values().len(), target, 1, cx)?)?;
        bytes.fill(0);
        for (value, part) in parts.values().iter().zip(places(&mut bytes, parts.values().len())) {
            runs(&parts.dims(value), target, (0, 0), &mut |_, to, count| part[to..to + count].fill(1));
        }
        Ok(bytes.freeze())
    }
}

impl Join for Padding {
    type Column = Cells;

    fn begin(&self, schema: &Schema) -> Result<()> {
        let fields = self.given.fields.iter().flatten().map(String::as_str);
        let values = self.with.iter().map(|(field, _)| field.as_str());
        let names = [&self.given.mask, &self.given.lengths].into_iter().flatten().flat_map(|texts| &texts.0);
        let names = names.filter_map(|text| Some(pair(text)?.0));
        fields.chain(values).chain(names).try_for_each(|name| place(schema, name).map(drop))
    }

    fn column(&self, name: &str) -> Cells {
        match &self.given.fields {
            None => Cells::parts(false),
            Some(fields) if fields.iter().any(|field| field == name) => Cells::parts(true),
            Some(_) => Cells::Plain(Default::default()),
        }
    }

    #[inline]
    fn push(&self, column: &mut Cells, name: &str, value: &mut Value, row: usize, at: &Place) -> Result<()> {
        column.push(value, row, at, |parts, dtype, dims| self.check(parts, name, dtype, dims, at.cx))
    }

    fn truncate(&self, column: &mut Cells, rows: usize) {
        column.truncate(rows);
    }

    fn finish(
        &self,
        column: Cells,
        name: &Str,
        rows: usize,
        more: &mut Vec<(String, Value)>,
        cx: &Context,
    ) -> Result<Value> {
        let parts = match column {
            Cells::Plain(column) => return column.finish(rows),
            Cells::Parts(parts) => parts,
        };
        let (dtype, target) = (parts.dtype(), self.target(&parts.longest()));
        let shape: Vec<usize> = [rows].into_iter().chain(target.iter().copied()).collect();
        let mut pad = vec![0; dtype.size()];
        write_scalar(&mut pad, 0, dtype.size(), self.number(name).bits(dtype).unwrap_or(0));
        let value = Tensor::new(dtype, &shape, Self::write(&parts, &target, &pad, cx)?)?;
        if let Some(name) = Self::name(self.given.mask.as_ref(), name) {
            more.push((name, Tensor::new(DType::BOOL, &shape, Self::mask(&parts, &target, cx)?)?.into()));
        }
        if let Some(name) = Self::name(self.given.lengths.as_ref(), name) {
            let lengths = parts.values().iter().map(|value| parts.dims(value)[0] as i64);
            let bytes: Vec<u8> = lengths.flat_map(i64::to_ne_bytes).collect();
            more.push((name, Tensor::new(DType::I64, &[rows], bytes.into())?.into()));
        }
        Ok(value.into())
    }
}

impl Rows<Padding> {
    /// Makes place for more samples than there was for; all of that place is taken.
    ///
    /// # Errors
    /// `Limit`.
    pub(crate) fn grow(&mut self, place: &Place) -> Result<()> {
        let count = self.count();
        self.columns_mut().iter_mut().try_for_each(|column| match column {
            Cells::Plain(column) => column.grow(count, place),
            Cells::Parts(_) => Ok(()),
        })
    }
}

/// How many bytes so many values of this shape have.
fn size(count: usize, dims: &Dims, width: usize, cx: &Context) -> Result<usize> {
    let bytes = dims.iter().try_fold(count.saturating_mul(width), |bytes, &axis| bytes.checked_mul(axis));
    bytes.filter(|&bytes| bytes as u64 <= cx.limits().bytes).ok_or_else(|| {
        let (dims, limit) = (&**dims, cx.limits().bytes);
        Error::limit(format!(
            "{count} values of {dims:?}, {width} bytes each, are more than the {limit} allowed"
        ))
    })
}

/// The memory of each of `count` values.
fn places(bytes: &mut [u8], count: usize) -> impl Iterator<Item = &mut [u8]> {
    let each = bytes.len() / count.max(1);
    bytes.chunks_exact_mut(each.max(1))
}

/// The numbers that lie together both in a value of shape `from` and in the larger one of shape `to` that begins with it:
/// where in each, and how many.
fn runs(from: &[usize], to: &[usize], at: (usize, usize), block: &mut impl FnMut(usize, usize, usize)) {
    let (Some((&count, from)), Some((_, to))) = (from.split_first(), to.split_first()) else {
        return block(at.0, at.1, 1);
    };
    let (small, large) = (from.iter().product::<usize>(), to.iter().product::<usize>());
    if small == 0 || count == 0 {
        return;
    }
    if from == to {
        return block(at.0, at.1, count * small);
    }
    (0..count).for_each(|row| runs(from, to, (at.0 + row * small, at.1 + row * large), block));
}

/// Fills memory with one number over and over.
fn fill(bytes: &mut [u8], number: &[u8]) {
    match number {
        [first, rest @ ..] if rest.iter().all(|byte| byte == first) => bytes.fill(*first),
        _ => bytes.chunks_exact_mut(number.len().max(1)).for_each(|place| place.copy_from_slice(number)),
    }
}
