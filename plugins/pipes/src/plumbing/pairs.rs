//! Two samples with one key as one: what they are compared by, and how their values come together.

use forebay_core::{Error, Key, Result, Schema, Value};

use crate::plumbing::{
    expression::{shown, text},
    join::Join,
    keys::By,
};

/// The most keys of a table that are compared to find one that was meant: an error costs no more than this.
const LOOKED_AT: usize = 10_000;

/// What the samples of two inputs are compared by, and how two become one.
#[derive(Debug)]
pub(crate) struct Pairs {
    pub(crate) by: [By; 2],
    /// The field of the second input that the first one has too, as its key, and what the first one calls it.
    shared: Option<(String, String)>,
    names: Join,
    /// The schemas of the last two, whether there was a left one, and how they came together.
    last: Option<([Schema; 2], bool, Places)>,
}

impl Pairs {
    /// Of the options `key`, `left`, `right` and `prefix`.
    ///
    /// # Errors
    /// `Invalid`, naming the option.
    pub(crate) fn new(
        key: Option<&str>,
        [left, right]: [Option<&str>; 2],
        prefix: Option<Vec<String>>,
    ) -> Result<Self> {
        if let Some(found) = prefix.as_ref().map(Vec::len).filter(|&found| found != 2) {
            let error = Error::invalid(format!("found {found} prefixes for 2 inputs"));
            return Err(error.context("option", "prefix"));
        }
        if key.is_some() && left.is_some() && right.is_some() {
            let error = Error::invalid("found a key beside `left` and `right`, which win over it");
            return Err(error.context("option", "key"));
        }
        let by = |option, own: Option<&str>| match own {
            Some(own) => By::new(option, Some(own)),
            None => By::new("key", key),
        };
        let by = [by("left", left)?, by("right", right)?];
        let name = |input: usize, field: &str| match &prefix {
            Some(prefix) => format!("{}{field}", prefix[input]),
            None => field.to_owned(),
        };
        let shared = match (by[0].field(), by[1].field()) {
            (Some(one), Some(other)) if name(0, one) == name(1, other) => {
                Some((other.to_owned(), one.to_owned()))
            }
            _ => None,
        };
        let mut names = Join::new(prefix);
        if let Some((field, _)) = &shared {
            names = names.without(1, field);
        }
        Ok(Self { by, shared, names, last: None })
    }

    /// The fields of the first input that are known before any sample of it: the key, where both have it.
    pub(crate) fn known(&self) -> Schema {
        Schema::new(self.shared.iter().map(|(_, own)| own.as_str()))
    }

    /// How samples of these schemas come together; without a left one its key is that of the right one.
    ///
    /// # Errors
    /// `Invalid` when both have a field of one name.
    #[inline]
    pub(crate) fn places(&mut self, schemas: [&Schema; 2], has_left: bool) -> Result<Places> {
        if let Some((known, had_left, places)) = &self.last
            && *had_left == has_left
            && known[0].is(schemas[0])
            && known[1].is(schemas[1])
        {
            return Ok(*places);
        }
        let place = |(field, own): &(String, String)| {
            Some((schemas[1].position(field)?, schemas[0].position(own).filter(|_| !has_left)))
        };
        let shared = self.shared.as_ref().and_then(place);
        self.names.schema(schemas.into_iter())?;
        let places = Places { first: schemas[0].len(), shared };
        self.last = Some((schemas.map(Schema::clone), has_left, places));
        Ok(places)
    }

    /// The names of what [`places`](Pairs::places) told last.
    pub(crate) fn schema(&self) -> &Schema {
        self.names.joined()
    }
}

/// How many fields the first of two samples has, where in the second the key is that both have, and where that goes in the first if not there already.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Places {
    first: usize,
    shared: Option<(usize, Option<usize>)>,
}

impl Places {
    /// The values of both, the key once.
    #[inline]
    pub(crate) fn join(
        self,
        left: impl Iterator<Item = Value>,
        right: impl Iterator<Item = Value>,
    ) -> impl Iterator<Item = Value> {
        let is_shared = move |at: usize| self.shared.is_some_and(|(key, _)| key == at);
        left.chain(right.enumerate().filter_map(move |(at, value)| (!is_shared(at)).then_some(value)))
    }

    /// What stands for a left sample where there is none: nulls, and the key of the right one.
    pub(crate) fn without_left(self, right: &[Value]) -> Vec<Value> {
        let mut left = vec![Value::NULL; self.first];
        if let Some((key, Some(own))) = self.shared {
            left[own] = right[key].clone();
        }
        left
    }
}

/// The error for a sample whose key, as it was written, none of this input has.
#[cold]
pub(crate) fn alone(key: &Key, input: usize, written: &[u8]) -> Error {
    Error::invalid(format!("no sample of input {input} has its key {}", shown(written)))
        .context("sample", key)
}

/// The error for a sample whose key, as it was written, no row of a table has; with one of these keys of the table that may have been meant.
#[cold]
#[inline(never)]
pub(crate) fn no_row<'a>(key: &Key, written: &[u8], keys: impl ExactSizeIterator<Item = &'a [u8]>) -> Error {
    let others = keys.len().saturating_sub(1);
    let wanted = text(written).unwrap_or_default();
    let near = |key: &&[u8]| {
        let other = text(key).unwrap_or_default();
        let inside =
            !wanted.is_empty() && !other.is_empty() && (wanted.contains(other) || other.contains(wanted));
        let begins = wanted.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count();
        (inside, begins)
    };
    // Of equals the last is taken: so from the back.
    let nearest = keys.take(LOOKED_AT).collect::<Vec<_>>().into_iter().rev().max_by_key(near);
    let has = match nearest {
        None => "is empty".to_owned(),
        Some(nearest) if others == 0 => format!("has {}", shown(nearest)),
        Some(nearest) => format!("has {} and {others} more", shown(nearest)),
    };
    let message = format!("no row has its key {}; the table {has}", shown(written));
    Error::invalid(message).context("sample", key)
}
