//! Functions of many samples: a dict of lists in, a dict of lists out.

use std::sync::OnceLock;

use forebay_core::{
    Context, DataPipe, Drops, Error, Io, Items, Key, Length, Noun, PipeAudit, PipeInfo, PipeLayout,
    PipePlacement, Result, Sample, Schema, State, StateExt, Step, Str, Stream, Uids, Value, options,
};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::{PyDict, PyList},
};

use super::{
    function::{Function, around},
    map::PyFunctionOptions,
};
use crate::convert;

options! {
    /// Options of `py_gather`.
    pub struct PyGatherOptions {
        /// How many samples are put together.
        size: usize = required, in 1..=1_000_000_000;
        /// Leave out the last ones if they are fewer.
        drop_last: bool = false;
        /// Put whole samples into one list, in place of each field's values.
        whole: bool = false;
    }
}

/// Puts the values of so many samples into lists, one for each field.
///
/// Memory: so many samples. State: how many are held, which come again.
pub(super) struct PyGather {
    size: usize,
    drop_last: bool,
    whole: bool,
    held: Option<Held>,
    /// After a restore: which of the samples that come again failed before.
    skip: Vec<u64>,
}

/// The samples held: the uid, key and fields of the first, and the values of all, field by field.
struct Held {
    uid: u64,
    key: Key,
    schema: Schema,
    lists: Vec<Vec<Value>>,
    count: usize,
    /// How many were taken since the first, and which of those do not fit.
    taken: u64,
    failed: Vec<u64>,
}

impl DataPipe for PyGather {
    const INFO: PipeInfo = PipeInfo {
        name: "py_gather",
        summary: "Lists of the values of several samples",
        layout: PipeLayout { gives: Some(Noun::BATCH), ..PipeLayout::DEFAULT },
        audit: PipeAudit { uids: Uids::Made, drops: Drops::With(&["drop_last"]), ..PipeAudit::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = PyGatherOptions;

    fn new(options: PyGatherOptions) -> Result<Self> {
        let PyGatherOptions { size, drop_last, whole } = options;
        Ok(Self { size, drop_last, whole, held: None, skip: Vec::new() })
    }
}

impl PyGather {
    /// Takes one sample from the input, if one waits; says whether.
    fn take(&mut self, io: &mut Io) -> Result<bool> {
        let (whole, size, held, skip) = (self.whole, self.size, &mut self.held, &mut self.skip);
        let Some(input) = io.input(0) else { return Ok(false) };
        let taken = input.pop_with(|uid, key, schema, values| {
            let held = held.get_or_insert_with(|| Held::new(uid, key.clone(), schema, whole, size));
            let number = held.taken;
            held.taken += 1;
            if whole {
                held.lists[0].push(Value::with_schema(schema.clone(), values.iter_mut().map(take).collect()));
                held.count += 1;
                return Ok(());
            }
            let fits = held.add(schema, values);
            if fits.is_err() {
                held.failed.push(number);
            }
            // One that failed before the restore was told of.
            let told = skip.contains(&number);
            fits.or_else(|error| if told { Ok(()) } else { Err(error.context("sample", &*key)) })
        });
        taken.transpose().map(|taken| taken.is_some())
    }

    /// What is held as one sample.
    fn give(&mut self) -> Result<Sample> {
        self.skip.clear();
        let Some(Held { uid, key, schema, lists, .. }) = self.held.take() else {
            return Err(Error::bug("no samples are held"));
        };
        let schema = if self.whole { Schema::new(["samples"]) } else { schema };
        Ok(Sample::with_schema(uid, key, schema, lists.into_iter().map(Value::list).collect()))
    }

    fn count(&self) -> usize {
        self.held.as_ref().map_or(0, |held| held.count)
    }
}

impl Held {
    fn new(uid: u64, key: Key, schema: &Schema, whole: bool, size: usize) -> Self {
        let lists = if whole { 1 } else { schema.len() };
        // A size that nobody has that many samples for takes no memory ahead.
        let lists = (0..lists).map(|_| Vec::with_capacity(size.min(1024))).collect();
        Self { uid, key, schema: schema.clone(), lists, count: 0, taken: 0, failed: Vec::new() }
    }

    /// Adds a sample, which must have the fields of the first.
    fn add(&mut self, schema: &Schema, values: &mut [Value]) -> Result<()> {
        if self.schema.is(schema) || self.schema == *schema {
            self.lists.iter_mut().zip(values).for_each(|(list, value)| list.push(take(value)));
        } else {
            let missing = |name: &Str| {
                Error::invalid(format!("found no field {name}, which the first of the batch has"))
            };
            let place = |name: &Str| schema.position(name.as_str()).ok_or_else(|| missing(name));
            let places = self.schema.names().iter().map(place).collect::<Result<Vec<_>>>()?;
            if let Some(more) =
                schema.names().iter().find(|name| self.schema.position(name.as_str()).is_none())
            {
                return Err(Error::invalid(format!(
                    "found the field {more}, which the first of the batch lacks"
                )));
            }
            self.lists.iter_mut().zip(places).for_each(|(list, place)| list.push(take(&mut values[place])));
        }
        self.count += 1;
        Ok(())
    }
}

fn take(value: &mut Value) -> Value {
    std::mem::replace(value, Value::NULL)
}

impl Stream for PyGather {
    fn reset(&mut self, _: &Context) -> Result<()> {
        self.held = None;
        self.skip.clear();
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, _: &Context) -> Result<Step> {
        while io.room() > 0 {
            if self.count() == self.size {
                io.push(&mut self.give()?);
            } else if self.take(io)? {
            } else if !io.ended(0) {
                return Ok(Step::NeedInput(0));
            } else if self.held.is_none() || self.drop_last {
                self.held = None;
                return Ok(Step::End);
            } else {
                io.push(&mut self.give()?);
            }
        }
        Ok(Step::Ready)
    }

    fn length(&self, inputs: &[Option<Length>], _: &Context) -> Option<Length> {
        let size = self.size as u64;
        let lists = |count: u64| if self.drop_last { count / size } else { count.div_ceil(size) };
        Some(inputs.first().copied()??.map(lists))
    }

    fn state(&self) -> Result<State> {
        let held = self.held.as_ref();
        let failed = held.map_or(&[][..], |held| &held.failed);
        Ok(State::json(1, &failed)?.again(0, held.map_or(0, |held| held.taken)))
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        self.skip = state.parse(1)?;
        Ok(())
    }
}

/// Calls a function of Python's on a dict of lists, and gives the rows of the one that it answers.
pub(super) struct PyRows {
    function: Function,
    /// Of the first answer. Rows of others with these names share it, which whoever compares names sees at once.
    schema: OnceLock<Schema>,
}

impl DataPipe for PyRows {
    const INFO: PipeInfo = PipeInfo {
        name: "py_rows",
        summary: "The rows of what a function of Python's makes of lists of values",
        audit: PipeAudit { drops: Drops::Always, ..PipeAudit::DEFAULT },
        placement: PipePlacement { parallel: true, ..PipePlacement::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = PyFunctionOptions;

    fn new(options: PyFunctionOptions) -> Result<Self> {
        Ok(Self { function: Function::new(options.function), schema: OnceLock::new() })
    }
}

impl PyRows {
    fn schema(&self, columns: &[(String, Vec<Value>)]) -> Schema {
        let names = || columns.iter().map(|(name, _)| name.as_str());
        let first = self.schema.get_or_init(|| Schema::new(names()));
        if first.names().iter().map(Str::as_str).eq(names()) { first.clone() } else { Schema::new(names()) }
    }
}

impl forebay_core::FlatMap for PyRows {
    type Items = Rows;

    fn open(&self, mut sample: Sample, cx: &Context) -> Result<Rows> {
        let columns = self.function.attached(cx, |py| {
            let given = self.function.fields(py, &mut sample)?;
            columns(&self.function.call(py, cx, (given,))?, cx)
        })?;
        let length = columns.first().map_or(0, |(_, column)| column.len());
        Ok(Rows {
            schema: self.schema(&columns),
            columns: columns.into_iter().map(|(_, column)| column).collect(),
            length,
            of: sample,
            given: 0,
        })
    }

    fn around(&self, work: &mut dyn FnMut()) {
        around(work);
    }
}

/// The values of each column that a function answered.
fn columns(answer: &Bound<'_, PyAny>, cx: &Context) -> PyResult<Vec<(String, Vec<Value>)>> {
    let wrong = || PyTypeError::new_err(format!("found {}, expected a dict of lists", answer.get_type()));
    let dict = answer.cast::<PyDict>().map_err(|_| wrong())?;
    let mut columns: Vec<(String, Vec<Value>)> = Vec::with_capacity(dict.len());
    for (name, column) in dict.iter() {
        let name: String = name.extract()?;
        let mut values = Vec::with_capacity(column.len().unwrap_or(0));
        if let Ok(list) = column.cast::<PyList>() {
            for item in list {
                values.push(convert::value(&item, cx)?);
            }
        } else {
            for item in column.try_iter()? {
                values.push(convert::value(&item?, cx)?);
            }
        }
        if let Some((first, others)) = columns.first()
            && others.len() != values.len()
        {
            let error = format!(
                "found {} values of {name} and {} of {first}, expected as many of each field",
                values.len(),
                others.len()
            );
            return Err(PyValueError::new_err(error));
        }
        columns.push((name, values));
    }
    Ok(columns)
}

/// Rows of columns.
pub(super) struct Rows {
    schema: Schema,
    columns: Vec<Vec<Value>>,
    length: usize,
    of: Sample,
    given: usize,
}

impl Items for Rows {
    fn next(&mut self, cx: &Context) -> Result<Option<Sample>> {
        if self.given == self.length {
            return Ok(None);
        }
        let at = self.given;
        self.given += 1;
        let values =
            self.columns.iter_mut().map(|column| std::mem::replace(&mut column[at], Value::NULL)).collect();
        let uid = cx.uid_of(self.of.uid(), [at as u64]);
        Ok(Some(Sample::with_schema(uid, self.of.key().clone(), self.schema.clone(), values)))
    }

    fn fill(&mut self, out: &mut forebay_core::Output, cx: &Context) -> Result<bool> {
        while out.room() > 0 && self.given < self.length {
            let at = self.given;
            self.given += 1;
            let values =
                self.columns.iter_mut().map(|column| std::mem::replace(&mut column[at], Value::NULL));
            out.push_row(cx.uid_of(self.of.uid(), [at as u64]), self.of.key().clone(), &self.schema, values);
        }
        Ok(self.given < self.length)
    }

    fn state(&self) -> Result<State> {
        State::json(1, &self.given)
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        self.given = state.parse::<usize>(1)?.min(self.length);
        Ok(())
    }
}
