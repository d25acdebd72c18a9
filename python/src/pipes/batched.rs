//! Functions of many samples: a dict of lists in, a dict of lists out.

use forebay_core::{
    Context, DataPipe, Error, Io, Items, PipeInfo, Result, Sample, Schema, State, StateExt, Step, Stream,
    Uids, Value, options,
};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::{PyDict, PyList},
};

use super::{
    function::{Function, around, fields},
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
    held: Vec<Sample>,
}

impl DataPipe for PyGather {
    const INFO: PipeInfo = PipeInfo {
        name: "py_gather",
        summary: "Lists of the values of several samples",
        gives: "batch batches",
        uids: Uids::Made,
        drops: "drop_last",
        ..PipeInfo::DEFAULT
    };
    type Options = PyGatherOptions;

    fn new(options: PyGatherOptions) -> Result<Self> {
        let PyGatherOptions { size, drop_last, whole } = options;
        Ok(Self { size, drop_last, whole, held: Vec::new() })
    }
}

impl PyGather {
    /// What is held as one sample, which has the uid and key of the first.
    fn give(&mut self) -> Result<Sample> {
        let mut held = std::mem::take(&mut self.held);
        let Some(first) = held.first() else { return Err(Error::bug("no samples are held")) };
        let (uid, key, schema) = (first.uid(), first.key().clone(), first.schema().clone());
        if self.whole {
            let whole = |sample: &mut Sample| Value::with_schema(sample.schema().clone(), take(sample));
            let list = Value::list(held.iter_mut().map(whole).collect());
            return Ok(Sample::with_schema(uid, key, Schema::new(["samples"]), vec![list]));
        }
        let mut lists: Vec<Vec<Value>> =
            schema.names().iter().map(|_| Vec::with_capacity(held.len())).collect();
        for sample in &mut held {
            for (name, list) in schema.names().iter().zip(&mut lists) {
                let missing =
                    || Error::invalid(format!("found no field {name}, which the first of the batch has"));
                list.push(
                    sample.take(name.as_str()).ok_or_else(|| missing().context("sample", sample.key()))?,
                );
            }
            if let Some((name, _)) = sample.fields().next() {
                let more =
                    Error::invalid(format!("found the field {name}, which the first of the batch lacks"));
                return Err(more.context("sample", sample.key()));
            }
        }
        Ok(Sample::with_schema(uid, key, schema, lists.into_iter().map(Value::list).collect()))
    }
}

fn take(sample: &mut Sample) -> Vec<Value> {
    sample.values_mut().iter_mut().map(|value| std::mem::replace(value, Value::NULL)).collect()
}

impl Stream for PyGather {
    fn reset(&mut self, _: &Context) -> Result<()> {
        self.held.clear();
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, _: &Context) -> Result<Step> {
        while io.room() > 0 {
            if self.held.len() == self.size {
                io.push(&mut self.give()?);
            } else if let Some(sample) = io.pop(0) {
                self.held.push(sample);
            } else if !io.ended(0) {
                return Ok(Step::NeedInput(0));
            } else if self.held.is_empty() || self.drop_last {
                self.held.clear();
                return Ok(Step::End);
            } else {
                io.push(&mut self.give()?);
            }
        }
        Ok(Step::Ready)
    }

    fn length(&self, inputs: &[Option<forebay_core::Length>], _: &Context) -> Option<forebay_core::Length> {
        let size = self.size as u64;
        let lists = |count: u64| if self.drop_last { count / size } else { count.div_ceil(size) };
        Some(inputs.first().copied()??.map(lists))
    }

    fn state(&self) -> Result<State> {
        Ok(State::json(1, &())?.again(0, self.held.len() as u64))
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        state.parse::<()>(1)
    }
}

/// Calls a function of Python's on a dict of lists, and gives the rows of the one that it answers.
pub(super) struct PyRows(Function);

impl DataPipe for PyRows {
    const INFO: PipeInfo = PipeInfo {
        name: "py_rows",
        summary: "The rows of what a function of Python's makes of lists of values",
        drops: "*",
        parallel: true,
        ..PipeInfo::DEFAULT
    };
    type Options = PyFunctionOptions;

    fn new(options: PyFunctionOptions) -> Result<Self> {
        Ok(Self(Function::new(options.function)))
    }
}

impl forebay_core::FlatMap for PyRows {
    type Items = Rows;

    fn open(&self, mut sample: Sample, cx: &Context) -> Result<Rows> {
        let columns = self.0.attached(cx, |py| {
            let given = fields(py, &mut sample)?;
            columns(&self.0.call(py, cx, (given,))?, cx)
        })?;
        let length = columns.first().map_or(0, |(_, column)| column.len());
        let names = columns.iter().map(|(name, _)| name.as_str());
        Ok(Rows {
            schema: Schema::new(names),
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
        let values = match column.cast::<PyList>() {
            Ok(list) => list.iter().map(|item| convert::value(&item, cx)).collect::<PyResult<Vec<_>>>()?,
            Err(_) => {
                column.try_iter()?.map(|item| convert::value(&item?, cx)).collect::<PyResult<Vec<_>>>()?
            }
        };
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
