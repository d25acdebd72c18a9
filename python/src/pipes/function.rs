//! A function of Python's that a node calls.

use std::{cell::RefCell, mem, thread};

use forebay_core::{Context, Error, ErrorKind, Result, Sample};
use pyo3::{
    prelude::*,
    sync::PyOnceLock,
    types::{PyBytes, PyDict},
};

use crate::values::{self, Names};

thread_local! {
    /// The tags of the loaders whose functions this thread is in.
    static CALLERS: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// Whether this thread is in a function of the loader with this tag, which waits for it.
pub(crate) fn is_within(tag: u64) -> bool {
    CALLERS.with_borrow(|callers| callers.contains(&tag))
}

/// This thread is in a function of a loader for as long as this lives.
struct Within;

impl Within {
    fn enter(tag: u64) -> Self {
        CALLERS.with_borrow_mut(|callers| callers.push(tag));
        Self
    }
}

impl Drop for Within {
    fn drop(&mut self) {
        CALLERS.with_borrow_mut(|callers| callers.pop());
    }
}

/// What a node calls, by the name that its graph has for it. It is looked up with the first call.
pub(super) struct Function {
    name: String,
    found: PyOnceLock<Py<PyAny>>,
    names: Names,
}

impl Function {
    pub(super) fn new(name: String) -> Self {
        Self { name, found: PyOnceLock::new(), names: Names::default() }
    }

    /// What a person would call it: the name without the part that tells its code.
    pub(super) fn shown(&self) -> &str {
        self.name.split('@').next().unwrap_or_default()
    }

    /// Calls it with these arguments.
    pub(super) fn call<'py>(
        &self,
        py: Python<'py>,
        cx: &Context,
        args: impl pyo3::call::PyCallArgs<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.object(py, cx)?.call1(args)
    }

    /// The sample's fields as a new dict; the sample has none of worth until it gets others.
    pub(super) fn fields<'py>(&self, py: Python<'py>, sample: &mut Sample) -> PyResult<Bound<'py, PyDict>> {
        values::fields_of(py, &self.names, sample)
    }

    /// As [`fields`](Self::fields), of a sample that stays as it is.
    pub(super) fn shared<'py>(&self, py: Python<'py>, sample: &Sample) -> PyResult<Bound<'py, PyDict>> {
        values::shared(py, &self.names, sample)
    }

    /// The object itself.
    pub(super) fn object<'a, 'py>(
        &'a self,
        py: Python<'py>,
        cx: &Context,
    ) -> PyResult<&'a Bound<'py, PyAny>> {
        let find = || -> PyResult<Py<PyAny>> {
            let find = py.import("forebay._calls")?.getattr("find")?;
            Ok(find.call1((cx.tag(), &self.name))?.unbind())
        };
        Ok(self.found.get_or_try_init(py, find)?.bind(py))
    }

    /// The object, if it was looked up.
    pub(super) fn known<'a, 'py>(&'a self, py: Python<'py>) -> Option<&'a Bound<'py, PyAny>> {
        self.found.get(py).map(|found| found.bind(py))
    }

    /// What `state` gives; an error where it raises.
    pub(super) fn state<T>(
        &self,
        state: impl for<'py> FnOnce(Python<'py>) -> PyResult<Option<T>>,
    ) -> Result<Option<T>> {
        let raised = |error: PyErr| Error::invalid(format!("state_dict of {} raised {error}", self.shown()));
        Python::try_attach(state).transpose().map_err(raised).map(Option::flatten)
    }

    /// The error of a run for what was raised, which comes out again as that very exception.
    pub(super) fn raised(&self, py: Python<'_>, raised: &PyErr, cx: &Context) -> Error {
        let keep = || -> PyResult<(u64, String, bool)> {
            let keep = py.import("forebay._calls")?.getattr("keep")?;
            // With its traceback, which the value alone does not have before 3.12.
            let exception = raised.clone_ref(py).into_value(py);
            keep.call1((exception, cx.worker().map(|(at, _)| at)))?.extract()
        };
        match keep() {
            Ok((cookie, text, is_exception)) => {
                // What is raised to end the program is no sample's fault.
                let kind = if is_exception { ErrorKind::Invalid } else { ErrorKind::Cancelled };
                Error::new(kind, format!("{} raised {text}", self.shown())).with_cookie(cookie)
            }
            Err(failed) => Error::invalid(format!("{} raised {raised}, and that: {failed}", self.shown())),
        }
    }

    /// Does `work` in the interpreter, and makes an error of what it raises.
    pub(super) fn attached<T>(
        &self,
        cx: &Context,
        work: impl for<'py> FnOnce(Python<'py>) -> PyResult<T>,
    ) -> Result<T> {
        let done = Python::try_attach(|py| {
            let _within = Within::enter(cx.tag());
            to_its_end(|| work(py).map_err(|raised| self.raised(py, &raised, cx)))
        });
        done.unwrap_or_else(|| Err(Error::new(ErrorKind::Cancelled, "the interpreter has ended")))
    }
}

/// Does `work`. A thread that comes back to an interpreter which has ended stays in here for good.
///
/// Before 3.14 the interpreter ends such a thread by unwinding it. On the way out the lock would be given back, which
/// the thread does not have: that ends the program by an abort.
fn to_its_end<T>(work: impl FnOnce() -> T) -> T {
    struct Stays;
    impl Drop for Stays {
        fn drop(&mut self) {
            while !thread::panicking() {
                thread::park();
            }
        }
    }
    let stays = Stays;
    let done = work();
    mem::forget(stays);
    done
}

/// Does `work`, with the interpreter's lock taken once for all of it.
pub(super) fn around(work: &mut dyn FnMut()) {
    if Python::try_attach(|_| to_its_end(&mut *work)).is_none() {
        work(); // Each call finds that the interpreter has ended.
    }
}

/// The pickled state of the first of these objects that says where it is, and can be told.
pub(super) fn saved<'a, 'py: 'a>(
    objects: impl IntoIterator<Item = &'a Bound<'py, PyAny>>,
) -> PyResult<Option<Vec<u8>>> {
    for object in objects {
        if has_state(object)? {
            let state = object.call_method0("state_dict")?;
            let pickle = object.py().import("pickle")?.call_method1("dumps", (state,))?;
            return Ok(Some(pickle.cast::<PyBytes>()?.as_bytes().to_vec()));
        }
    }
    Ok(None)
}

/// Whether an object says where it is, and can be told.
pub(super) fn has_state(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(object.hasattr("state_dict")? && object.hasattr("load_state_dict")?)
}

/// Tells an object which epoch begins, if it wants to know.
pub(super) fn announce(object: &Bound<'_, PyAny>, cx: &Context) -> PyResult<()> {
    match object.getattr_opt("set_epoch")? {
        Some(set_epoch) => set_epoch.call1((cx.epoch(),)).map(drop),
        None => Ok(()),
    }
}

/// Tells an object where it was.
pub(super) fn tell(object: &Bound<'_, PyAny>, state: &[u8]) -> PyResult<()> {
    let py = object.py();
    let state = py.import("pickle")?.call_method1("loads", (PyBytes::new(py, state),))?;
    object.call_method1("load_state_dict", (state,)).map(drop)
}
