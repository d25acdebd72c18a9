//! A sampler of Python's: which samples of a source with random access come.

use std::collections::HashMap;

use forebay_core::{
    Access, Context, DataPipe, Drops, Error, Io, PipeAudit, PipeInfo, PipeLayout, PipeOrder, Randomness,
    Result, Schema, State, StateExt, Step, Stream, Uids, options, sampling,
};
use pyo3::{prelude::*, types::PyIterator};

use super::function::{Function, announce, around, saved, tell};

options! {
    /// Options of `py_sampler`.
    pub struct PySamplerOptions {
        /// The sampler: module and name of its class, and behind `@` what tells its code.
        function: String = required;
    }
}

/// The samples whose numbers something of Python's iterates over.
///
/// It is told each epoch by `set_epoch`, if it has that. State: the place, and the sampler's own state if it has one; else it is iterated again up to
/// there.
pub(super) struct PySampler {
    function: Function,
    count: Option<u64>,
    iterator: Option<Py<PyAny>>,
    place: u64,
    /// How often each number was drawn, which tells its samples apart.
    drawn: HashMap<u64, u64>,
    schema: Schema,
}

impl DataPipe for PySampler {
    const INFO: PipeInfo = PipeInfo {
        name: "py_sampler",
        summary: "The samples of a source with random access that a sampler of Python's draws",
        layout: PipeLayout { access: Access::Sampler, ..PipeLayout::DEFAULT },
        audit: PipeAudit { uids: Uids::Made, drops: Drops::Always, ..PipeAudit::DEFAULT },
        order: PipeOrder { draws: Randomness::Always, ..PipeOrder::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = PySamplerOptions;

    fn new(options: PySamplerOptions) -> Result<Self> {
        Ok(Self {
            function: Function::new(options.function),
            count: None,
            iterator: None,
            place: 0,
            drawn: HashMap::new(),
            schema: sampling::drawn(),
        })
    }
}

/// Where it is, and the pickle of the sampler's state.
type Place = (u64, Option<Vec<u8>>, Vec<(u64, u64)>);

impl PySampler {
    fn begin(&mut self, cx: &Context, state: Option<&[u8]>) -> Result<()> {
        let iterator = self.function.attached(cx, |py| {
            let sampler = self.function.object(py, cx)?;
            announce(sampler, cx)?;
            if let Some(state) = state {
                tell(sampler, state)?;
            }
            Ok(sampler.try_iter()?.into_any().unbind())
        })?;
        self.iterator = Some(iterator);
        Ok(())
    }

    /// The next number.
    fn draw(&self, cx: &Context) -> Result<Option<u64>> {
        let Some(iterator) = &self.iterator else { return Err(Error::bug("the sampler was not begun")) };
        self.function.attached(cx, |py| {
            let mut numbers = iterator.bind(py).cast::<PyIterator>()?.clone();
            let number = numbers.next().transpose()?;
            number.map(|number| number.call_method0("__index__")?.extract()).transpose()
        })
    }

    fn give(&mut self, io: &mut Io, count: u64, cx: &Context) -> Result<Step> {
        while io.room() > 0 {
            let Some(number) = self.draw(cx)? else { return Ok(Step::End) };
            if number >= count {
                return Err(Error::invalid(format!(
                    "{} drew sample number {number}, the source has {count}",
                    self.function.shown()
                )));
            }
            let times = self.drawn.entry(number).or_insert(0);
            sampling::push(io, &self.schema, self.place, (number, *times));
            *times += 1;
            self.place += 1;
        }
        Ok(Step::Ready)
    }
}

impl Stream for PySampler {
    fn reset(&mut self, _: &Context) -> Result<()> {
        (self.count, self.iterator, self.place) = (None, None, 0);
        self.drawn.clear();
        Ok(())
    }

    fn poll(&mut self, io: &mut Io, cx: &Context) -> Result<Step> {
        let count = match self.count {
            Some(count) => count,
            None => {
                let Some(count) = sampling::take_count(io)? else {
                    return Ok(if io.ended(0) { Step::End } else { Step::NeedInput(0) });
                };
                self.count = Some(count);
                count
            }
        };
        if self.iterator.is_none() {
            self.begin(cx, None)?;
        }
        let mut step = None;
        around(&mut || step = Some(self.give(io, count, cx)));
        step.unwrap_or(Ok(Step::End))
    }

    fn state(&self) -> Result<State> {
        let state = self.function.state(|py| saved(self.function.known(py)))?;
        let mut drawn: Vec<(u64, u64)> = Vec::new();
        if state.is_some() {
            drawn.extend(self.drawn.iter().map(|(&number, &times)| (number, times)));
            drawn.sort_unstable();
        }
        let place: Place = (self.place, state, drawn);
        let taken = u64::from(self.count.is_some());
        Ok(State::json(1, &place)?.again(0, taken))
    }

    fn restore(&mut self, state: &State, cx: &Context) -> Result<()> {
        let (place, own, drawn): Place = state.parse(1)?;
        self.begin(cx, own.as_deref())?;
        if own.is_some() {
            self.place = place;
            self.drawn = drawn.into_iter().collect();
            return Ok(());
        }
        while self.place < place {
            let Some(number) = self.draw(cx)? else {
                return Err(Error::invalid(format!(
                    "{} draws {} samples, and {place} were drawn",
                    self.function.shown(),
                    self.place
                )));
            };
            *self.drawn.entry(number).or_insert(0) += 1;
            self.place += 1;
        }
        Ok(())
    }
}
