//! Functions of one sample: `map`, `random_map`, `filter` and `flat_map`.

use forebay_core::{
    Condition, Context, DataPipe, Drops, Items, PipeAudit, PipeInfo, PipeOrder, PipePlacement, Randomness,
    Result, Sample, State, StateExt, options,
};
use pyo3::prelude::*;

use super::function::{Function, around};
use crate::convert;

options! {
    /// Options of `py_map`.
    pub struct PyMapOptions {
        /// The function: module and name, and behind `@` what tells its code.
        function: String = required;
        /// What it is called with: the sample; the sample and random numbers; the list of samples in it; or the value in it, whose answer is kept as
        /// its pickle.
        takes: String = "sample", one_of ["sample", "random", "samples", "object"];
    }
}

/// Calls a function of Python's on each sample.
pub(super) struct PyMap {
    function: Function,
    takes: Takes,
}

/// What a function is called with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    Sample,
    Random,
    Samples,
    Object,
}

impl DataPipe for PyMap {
    const INFO: PipeInfo = PipeInfo {
        name: "py_map",
        summary: "What a function of Python's makes of each sample",
        order: PipeOrder { draws: Randomness::If(&[Condition::Is("takes", "random")]), ..PipeOrder::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = PyMapOptions;

    fn new(options: PyMapOptions) -> Result<Self> {
        let takes = match options.takes.as_str() {
            "random" => Takes::Random,
            "samples" => Takes::Samples,
            "object" => Takes::Object,
            _ => Takes::Sample,
        };
        Ok(Self { function: Function::new(options.function), takes })
    }
}

impl forebay_core::Map for PyMap {
    fn map(&self, sample: &mut Sample, cx: &Context) -> Result<()> {
        self.function.attached(cx, |py| match self.takes {
            Takes::Sample => {
                let given = self.function.fields(py, sample)?;
                let made = self.function.call(py, cx, (given,))?;
                convert::fill(sample, &made, cx)
            }
            Takes::Random => {
                let mut draws = cx.rng(sample.uid());
                let key: [u64; 2] = [draws.u64(), draws.u64()];
                let rng = py.import("forebay._calls")?.getattr("rng")?.call1((key[0], key[1]))?;
                let given = self.function.fields(py, sample)?;
                let made = self.function.call(py, cx, (given, rng))?;
                convert::fill(sample, &made, cx)
            }
            Takes::Samples => {
                let given = self.function.fields(py, sample)?.get_item("samples")?;
                let made = self.function.call(py, cx, (given,))?;
                convert::fill(sample, &made, cx)
            }
            Takes::Object => {
                let given = self.function.fields(py, sample)?.get_item("value")?;
                let made = self.function.call(py, cx, (given,))?;
                let value = convert::pickled(&made, cx)?;
                sample.replace(forebay_core::Schema::new(["value"]), [value]);
                Ok(())
            }
        })
    }

    fn around(&self, work: &mut dyn FnMut()) {
        around(work);
    }
}

options! {
    /// Options of `py_filter` and `py_flat_map`.
    pub struct PyFunctionOptions {
        /// The function: module and name, and behind `@` what tells its code.
        function: String = required;
    }
}

/// Leaves out samples of which a function of Python's says no.
pub(super) struct PyFilter(Function);

impl DataPipe for PyFilter {
    const INFO: PipeInfo = PipeInfo {
        name: "py_filter",
        summary: "The samples of which a function of Python's says yes",
        audit: PipeAudit { drops: Drops::Always, ..PipeAudit::DEFAULT },
        placement: PipePlacement { parallel: true, ..PipePlacement::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = PyFunctionOptions;

    fn new(options: PyFunctionOptions) -> Result<Self> {
        Ok(Self(Function::new(options.function)))
    }
}

impl forebay_core::FlatMap for PyFilter {
    type Items = One;

    fn open(&self, sample: Sample, cx: &Context) -> Result<One> {
        let passes = self.0.attached(cx, |py| {
            let given = self.0.shared(py, &sample)?;
            self.0.call(py, cx, (given,))?.is_truthy()
        })?;
        Ok(One(passes.then_some(sample)))
    }

    fn around(&self, work: &mut dyn FnMut()) {
        around(work);
    }
}

/// One sample, or none.
pub(super) struct One(Option<Sample>);

impl Items for One {
    fn next(&mut self, _: &Context) -> Result<Option<Sample>> {
        Ok(self.0.take())
    }

    fn state(&self) -> Result<State> {
        State::json(1, &self.0.is_none())
    }

    fn restore(&mut self, state: &State, _: &Context) -> Result<()> {
        if state.parse::<bool>(1)? {
            self.0 = None;
        }
        Ok(())
    }
}

/// The samples that a function of Python's makes of each.
pub(super) struct PyFlatMap(std::sync::Arc<Function>);

impl DataPipe for PyFlatMap {
    const INFO: PipeInfo = PipeInfo {
        name: "py_flat_map",
        summary: "The samples that a function of Python's makes of each",
        placement: PipePlacement { parallel: true, ..PipePlacement::DEFAULT },
        ..PipeInfo::DEFAULT
    };
    type Options = PyFunctionOptions;

    fn new(options: PyFunctionOptions) -> Result<Self> {
        Ok(Self(std::sync::Arc::new(Function::new(options.function))))
    }
}

impl forebay_core::FlatMap for PyFlatMap {
    type Items = Many;

    fn open(&self, mut sample: Sample, cx: &Context) -> Result<Many> {
        let iterator = self.0.attached(cx, |py| {
            let given = self.0.fields(py, &mut sample)?;
            Ok(self.0.call(py, cx, (given,))?.try_iter()?.into_any().unbind())
        })?;
        Ok(Many { function: std::sync::Arc::clone(&self.0), iterator, of: sample, given: 0 })
    }

    fn around(&self, work: &mut dyn FnMut()) {
        around(work);
    }
}

/// What a function gives, one sample after the other.
pub(super) struct Many {
    function: std::sync::Arc<Function>,
    iterator: Py<PyAny>,
    /// What it was made of, without its fields.
    of: Sample,
    given: u64,
}

impl Many {
    fn advance(&mut self, cx: &Context, convert: bool) -> Result<Option<Sample>> {
        let (uid, key) = (cx.uid_of(self.of.uid(), [self.given]), self.of.key().clone());
        let next = self.function.attached(cx, |py| {
            let mut items = self.iterator.bind(py).cast::<pyo3::types::PyIterator>()?.clone();
            let Some(item) = items.next().transpose()? else { return Ok(None) };
            let mut sample = Sample::new(uid, key);
            if convert {
                convert::fill(&mut sample, &item, cx)?;
            }
            Ok(Some(sample))
        })?;
        self.given += u64::from(next.is_some());
        Ok(next)
    }
}

impl Items for Many {
    fn next(&mut self, cx: &Context) -> Result<Option<Sample>> {
        self.advance(cx, true)
    }

    fn state(&self) -> Result<State> {
        State::json(1, &self.given)
    }

    fn restore(&mut self, state: &State, cx: &Context) -> Result<()> {
        let given: u64 = state.parse(1)?;
        while self.given < given && self.advance(cx, false)?.is_some() {}
        Ok(())
    }
}
