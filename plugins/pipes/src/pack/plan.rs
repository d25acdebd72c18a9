//! What of a sample is packed, and what goes along.

use std::sync::Arc;

use forebay_core::{Any, Error, Result, Schema, Str, Value, View, abi::tag};

use super::PackOptions;
use crate::{rename::pair, select::repeated};

/// The most items of a row: segments and positions are int32.
const MOST: usize = i32::MAX as usize;

/// What the options say of fields.
#[derive(Debug)]
pub(super) struct Rules {
    /// The fields to pack and their lengths; none for all that hold sequences.
    packed: Option<Vec<(String, usize)>>,
    /// How long the rows of other fields are.
    length: usize,
    /// The fields that go along; none for all others.
    meta: Option<Vec<String>>,
    pad: Numbers,
    bos: Numbers,
    eos: Numbers,
    segments: bool,
    positions: bool,
    uids: Option<String>,
}

/// A number for every packed field, or for some.
#[derive(Debug)]
struct Numbers {
    all: Option<f64>,
    some: Vec<(String, f64)>,
}

/// Where the fields of samples with one schema go.
#[derive(Debug)]
pub(super) struct Plan {
    /// What is packed, by name: samples with other orders of fields can share a row.
    pub(super) columns: Vec<Column>,
    /// What goes along, by name, and where samples have it.
    pub(super) meta: Vec<(Str, usize)>,
    /// For each field of a sample, whether it was taken for a sequence by what it holds.
    looked_at: Vec<Option<bool>>,
    /// The fields of a row whose first sample this is, and where their values come from.
    pub(super) schema: Schema,
    pub(super) parts: Vec<Part>,
}

/// A field that is packed.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) name: Str,
    /// Where samples have it.
    pub(super) place: usize,
    /// How many items a row has.
    pub(super) length: usize,
    pub(super) pad: f64,
    pub(super) bos: Option<f64>,
    pub(super) eos: Option<f64>,
}

/// What a field of a row is made of; numbers are places in the plan's lists.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part {
    Values(usize),
    Meta(usize),
    Segments(usize),
    Positions(usize),
    Uids,
}

impl Rules {
    pub(super) fn new(options: &PackOptions) -> Result<Self> {
        let refuse = |option: &str, message: String| Err(Error::invalid(message).context("option", option));
        let packed = match &options.fields {
            None => None,
            Some(fields) => {
                Some(fields.0.iter().map(|text| field(text, options.length)).collect::<Result<Vec<_>>>()?)
            }
        };
        let names = packed.iter().flatten().map(|(name, _)| name.as_str());
        let names: Vec<_> = names.chain(options.meta.iter().flatten().map(String::as_str)).collect();
        if packed.as_ref().is_some_and(Vec::is_empty) {
            return refuse("fields", "names no field".to_owned());
        }
        if let Some(twice) = repeated(&names) {
            let option =
                if options.meta.iter().flatten().any(|name| name == twice) { "meta" } else { "fields" };
            return refuse(option, format!("`{twice}` is named twice"));
        }
        let numbers = |option: &str, given: &Any| {
            let numbers = Numbers::read(given).filter(|numbers| match &packed {
                Some(packed) => {
                    numbers.some.iter().all(|(name, _)| packed.iter().any(|(one, _)| one == name))
                }
                None => true,
            });
            let expected = "expected a number, or `field=number` for packed fields";
            numbers.ok_or_else(|| {
                Error::invalid(format!("found {}, {expected}", given.0)).context("option", option)
            })
        };
        Ok(Self {
            pad: numbers("pad", &options.pad)?,
            bos: numbers("bos", &options.bos)?,
            eos: numbers("eos", &options.eos)?,
            packed,
            length: options.length,
            meta: options.meta.clone(),
            segments: options.segments,
            positions: options.positions,
            uids: options.uids.clone(),
        })
    }

    /// The plan for samples like this one. It depends on the schema and, where `fields` does not say what to pack, on which
    /// values are sequences; never on samples before.
    pub(super) fn plan(&self, schema: &Schema, values: &[Value]) -> Result<Plan> {
        let named = |name: &Str| self.meta.iter().flatten().any(|meta| meta == name.as_str());
        let looked_at: Vec<_> = schema
            .names()
            .iter()
            .zip(values)
            .map(|(name, value)| (self.packed.is_none() && !named(name)).then(|| is_sequence(value)))
            .collect();
        let length = |place: usize, name: &Str| match &self.packed {
            None => looked_at[place].filter(|sequence| *sequence).map(|_| self.length),
            Some(packed) => {
                packed.iter().find(|(field, _)| field == name.as_str()).map(|(_, length)| *length)
            }
        };
        let (mut columns, mut meta, mut stray) = (Vec::new(), Vec::new(), false);
        for (place, name) in schema.names().iter().enumerate() {
            if let Some(length) = length(place, name) {
                let [pad, bos, eos] = [&self.pad, &self.bos, &self.eos].map(|numbers| numbers.of(name));
                let pad = pad.unwrap_or(0.0);
                columns.push(Column { name: name.clone(), place, length, pad, bos, eos });
            } else {
                stray |= self.meta.is_some() && !named(name);
                meta.push((name.clone(), place));
            }
        }
        let wanted = self.packed.as_ref().map_or(columns.len(), Vec::len);
        if stray
            || columns.is_empty()
            || columns.len() < wanted
            || meta.len() < self.meta.iter().flatten().count()
        {
            return Err(self.mismatch(schema));
        }
        columns.sort_by(|one, other| one.name.as_str().cmp(&other.name));
        meta.sort_by(|one, other| one.0.as_str().cmp(&other.0));
        let (schema, parts) = self.row(schema, &columns, &meta)?;
        Ok(Plan { columns, meta, looked_at, schema, parts })
    }

    /// The error for a sample whose fields are not those that the options name: both are shown.
    fn mismatch(&self, schema: &Schema) -> Error {
        let list = |names: Vec<&str>| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let found = list(schema.names().iter().map(|name| name.as_str()).collect());
        let packed =
            self.packed.as_ref().map(|packed| list(packed.iter().map(|(name, _)| name.as_str()).collect()));
        let packed = packed.unwrap_or_else(|| "one or more sequences".to_owned());
        let meta = self.meta.as_ref().map(|meta| list(meta.iter().map(String::as_str).collect()));
        let meta = meta.map_or(String::new(), |meta| format!(", and beside what is packed: {meta}"));
        Error::invalid(format!("cannot pack: found the fields {found}; expected {packed}{meta}"))
    }

    /// The fields of a row: those of its first sample, segments and positions behind them, then the uids.
    fn row(&self, schema: &Schema, columns: &[Column], meta: &[(Str, usize)]) -> Result<(Schema, Vec<Part>)> {
        let column = |place| columns.iter().position(|column| column.place == place);
        let beside = |place| meta.iter().position(|(_, at)| *at == place).map(Part::Meta);
        let parts =
            (0..schema.len()).filter_map(|place| column(place).map(Part::Values).or_else(|| beside(place)));
        let mut parts: Vec<_> = parts.collect();
        let mut names: Vec<Str> = schema.names().to_vec();
        for column in (0..schema.len()).filter_map(column) {
            let name = &columns[column].name;
            if self.segments {
                names.push(format!("{name}_segment_ids").into());
                parts.push(Part::Segments(column));
            }
            if self.positions {
                names.push(format!("{name}_positions").into());
                parts.push(Part::Positions(column));
            }
        }
        if let Some(uids) = &self.uids {
            names.push(uids.as_str().into());
            parts.push(Part::Uids);
        }
        let texts: Vec<_> = names.iter().map(|name| name.as_str()).collect();
        match repeated(&texts) {
            Some(twice) => {
                Err(Error::invalid("a row has a field of this name already").context("field", twice))
            }
            None => Ok((Schema::new(names), parts)),
        }
    }
}

impl Plan {
    /// Whether this is the plan for samples with the same schema and these values.
    #[inline]
    pub(super) fn is_for(&self, values: &[Value]) -> bool {
        let mut all = self.looked_at.iter().zip(values);
        all.all(|(sequence, value)| sequence.is_none_or(|sequence| sequence == is_sequence(value)))
    }

    /// Whether samples of this plan go into rows of that one.
    ///
    /// # Errors
    /// `Invalid`, with the fields of both.
    pub(super) fn goes_with(self: &Arc<Self>, row: &Arc<Self>) -> Result<()> {
        let packed = |plan: &Self| plan.columns.iter().map(|column| column.name.clone()).collect::<Vec<_>>();
        let meta = |plan: &Self| plan.meta.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        if Arc::ptr_eq(self, row) || (packed(self) == packed(row) && meta(self) == meta(row)) {
            return Ok(());
        }
        let describe = |plan: &Self| {
            let list = |names: &[Str]| names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
            let beside =
                if plan.meta.is_empty() { String::new() } else { format!(", beside {}", list(&meta(plan))) };
            format!("sequences in {}{beside}", list(&packed(plan)))
        };
        Err(Error::invalid(format!("cannot pack: found {} after {}", describe(self), describe(row))))
    }
}

impl Numbers {
    fn read(given: &Any) -> Option<Self> {
        let mut numbers = Self { all: given.0.as_f64(), some: Vec::new() };
        if numbers.all.is_some() || given.0.is_null() {
            return Some(numbers);
        }
        let one = std::slice::from_ref(&given.0);
        for text in given.0.as_array().map_or(one, Vec::as_slice) {
            let (name, number) = pair(text.as_str()?)?;
            numbers.some.push((name.to_owned(), number.parse().ok()?));
        }
        let names: Vec<_> = numbers.some.iter().map(|(name, _)| name).collect();
        repeated(&names).is_none().then_some(numbers)
    }

    fn of(&self, name: &str) -> Option<f64> {
        self.some.iter().find(|(field, _)| field == name).map(|(_, number)| *number).or(self.all)
    }
}

/// A field and its length: `name`, or `name=length`.
fn field(text: &str, length: usize) -> Result<(String, usize)> {
    match pair(text) {
        None => Ok((text.to_owned(), length)),
        Some((name, own)) => match own.parse() {
            Ok(own @ 1..=MOST) => Ok((name.to_owned(), own)),
            _ => Err(Error::invalid(format!(
                "found `{text}`, expected `field` or `field=length` with a length from 1 to {MOST}"
            ))
            .context("option", "fields")),
        },
    }
}

/// Whether a value is taken for a sequence where `fields` does not say what to pack.
#[inline]
fn is_sequence(value: &Value) -> bool {
    match value.view() {
        View::Tensor(tensor) => !tensor.shape().is_empty(),
        View::List(items) => items.first().is_none_or(|item| item.tag() == tag::SCALAR),
        _ => false,
    }
}
