//! Sources of Python's: what can be iterated, and what can be indexed.

use forebay_core::{
    Access, Context, DataPipe, Error, Indexed, Key, Output, PipeInfo, PipeLayout, Result, Sample, Source,
    State, Str, options,
};
use pyo3::{
    prelude::*,
    types::{PyIterator, PyList},
};

use super::function::{Function, announce, around, has_state, saved, tell};
use crate::convert;

options! {
    /// Options of `py_source` and `py_indexed`.
    pub struct PySourceOptions {
        /// What makes it: module and name, and behind `@` what tells its code.
        function: String = required;
    }
}

/// The samples that something of Python's iterates over, which a function makes for each pass.
///
/// What it iterates over is told each epoch by `set_epoch`, if it has that. State: that of what it iterates over, if that has `state_dict` and `load_state_dict`; else it is run again from the start of its pass.
pub(super) struct PySource {
    function: Function,
    origin: Str,
    /// What the function made, and the iterator over it.
    made: Option<(Py<PyAny>, Py<PyAny>)>,
    given: u64,
}

impl DataPipe for PySource {
    const INFO: PipeInfo = PipeInfo {
        name: "py_source",
        summary: "What something of Python's iterates over",
        ..PipeInfo::DEFAULT
    };
    type Options = PySourceOptions;

    fn new(options: PySourceOptions) -> Result<Self> {
        let function = Function::new(options.function);
        let origin = Str::from(function.shown());
        Ok(Self { function, origin, made: None, given: 0 })
    }
}

impl PySource {
    fn begin(&mut self, cx: &Context, state: Option<&[u8]>) -> Result<()> {
        let made = self.function.attached(cx, |py| {
            let whole = self.function.object(py, cx)?;
            let whole = if whole.is_callable() { whole.call0()? } else { whole.clone() };
            announce(&whole, cx)?;
            let mut iterator = whole.try_iter()?.into_any();
            match state {
                Some(state) if has_state(&iterator)? => tell(&iterator, state)?,
                Some(state) => {
                    tell(&whole, state)?;
                    iterator = whole.try_iter()?.into_any();
                }
                None => {}
            }
            Ok((whole.unbind(), iterator.unbind()))
        })?;
        self.made = Some(made);
        Ok(())
    }
}

impl Source for PySource {
    fn reset(&mut self, cx: &Context) -> Result<()> {
        self.given = 0;
        self.begin(cx, None)
    }

    fn next(&mut self, cx: &Context) -> Result<Option<Sample>> {
        let Some((_, iterator)) = &self.made else { return Err(Error::bug("the source was not reset")) };
        let next = self.function.attached(cx, |py| {
            let mut items = iterator.bind(py).cast::<PyIterator>()?.clone();
            let Some(item) = items.next().transpose()? else { return Ok(None) };
            let key = Key { origin: self.origin.clone(), name: Str::EMPTY, index: self.given };
            let mut sample = Sample::new(self.given, key);
            convert::fill(&mut sample, &item, cx)?;
            Ok(Some(sample))
        });
        // A sample that fails has its number too.
        self.given += u64::from(!matches!(next, Ok(None)));
        next
    }

    fn fill(&mut self, out: &mut Output, cx: &Context) -> Result<bool> {
        let mut filled = None;
        around(&mut || {
            filled = Some(out.fill_with(|sample| Ok(self.next(cx)?.map(|next| *sample = next).is_some())));
        });
        filled.unwrap_or(Ok(false))
    }

    fn state(&self) -> Result<State> {
        // The iterator's own state where it has one, else that of what it iterates over.
        let bytes = self.function.state(|py| match &self.made {
            Some((whole, iterator)) => saved([iterator.bind(py), whole.bind(py)]),
            None => Ok(None),
        });
        let bytes = bytes?.ok_or_else(|| Error::unsupported("this source does not save its position"))?;
        let bytes = [&self.given.to_le_bytes()[..], &bytes].concat();
        Ok(State { version: 1, bytes: bytes.into(), again: Vec::new().into() })
    }

    fn restore(&mut self, state: &State, cx: &Context) -> Result<()> {
        let bytes = state.bytes.as_slice();
        let Some((given, rest)) = bytes.split_first_chunk::<8>().filter(|_| state.version == 1) else {
            return Err(Error::invalid("found a state of another kind of source"));
        };
        self.begin(cx, Some(rest))?;
        self.given = u64::from_le_bytes(*given);
        Ok(())
    }
}

/// The samples of something of Python's that has a length and gives each by its number, or that maps keys to them.
pub(super) struct PyIndexed {
    function: Function,
    origin: Str,
    next: u64,
    count: u64,
}

impl DataPipe for PyIndexed {
    const INFO: PipeInfo = PipeInfo {
        name: "py_indexed",
        summary: "What something of Python's has by number or key",
        layout: PipeLayout { access: Access::Indexed, ..PipeLayout::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = PySourceOptions;

    fn new(options: PySourceOptions) -> Result<Self> {
        let function = Function::new(options.function);
        let origin = Str::from(function.shown());
        Ok(Self { function, origin, next: 0, count: 0 })
    }
}

impl PyIndexed {
    /// The items with these numbers.
    fn items<'py>(&self, py: Python<'py>, cx: &Context, numbers: &[u64]) -> PyResult<Bound<'py, PyList>> {
        let get = py.import("forebay._calls")?.getattr("items")?;
        Ok(get.call1((self.function.object(py, cx)?, numbers.to_vec()))?.cast_into::<PyList>()?)
    }
}

impl Source for PyIndexed {
    fn reset(&mut self, cx: &Context) -> Result<()> {
        self.next = 0;
        self.count = self.count(cx)?;
        Ok(())
    }

    fn next(&mut self, cx: &Context) -> Result<Option<Sample>> {
        if self.next == self.count {
            return Ok(None);
        }
        let number = self.next;
        self.next += 1;
        let mut chunk = forebay_core::abi::Chunk::new();
        self.get(&[number], &mut Output::new(&mut chunk, 1), cx)?;
        Ok(chunk.pop())
    }

    fn state(&self) -> Result<State> {
        forebay_core::StateExt::json(1, &self.next)
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        self.next = forebay_core::StateExt::parse(state, 1)?;
        Ok(())
    }
}

impl Indexed for PyIndexed {
    fn count(&self, cx: &Context) -> Result<u64> {
        self.function.attached(cx, |py| Ok(self.function.object(py, cx)?.len()? as u64))
    }

    fn get(&self, keys: &[u64], out: &mut Output, cx: &Context) -> Result<()> {
        // One that fails must not take those before it along.
        let together = self.function.attached(cx, |py| self.add(py, keys, out, cx));
        if together.is_ok() || keys.len() == 1 {
            return together;
        }
        keys.iter().try_for_each(|&key| self.function.attached(cx, |py| self.add(py, &[key], out, cx)))
    }
}

impl PyIndexed {
    fn add(&self, py: Python<'_>, keys: &[u64], out: &mut Output, cx: &Context) -> PyResult<()> {
        let items = self.items(py, cx, keys)?;
        let mut samples = Vec::with_capacity(keys.len());
        for (&number, item) in keys.iter().zip(items.iter()) {
            let key = Key { origin: self.origin.clone(), name: Str::EMPTY, index: number };
            let mut sample = Sample::new(number, key);
            convert::fill(&mut sample, &item, cx)?;
            samples.push(sample);
        }
        samples.iter_mut().for_each(|sample| out.push(sample));
        Ok(())
    }
}
