//! A loader that Python holds.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{self, Receiver, RecvTimeoutError},
    },
    task::Poll,
    thread,
    time::{Duration, Instant},
};

use forebay_core::{Error, Key, Result, Sample};
use forebay_loader::{Digest, Executor, Snapshot, Stall, Stopper, WorkerProgram};
use pyo3::{
    exceptions::{PyRuntimeError, PyTimeoutError},
    intern,
    prelude::*,
    types::{PyDict, PyTuple, PyType},
};

use crate::{
    columns::Columns,
    errors::{exception, raise},
    explain,
    graph::{Graph, Registry},
    json, pipes,
    stock::Stock,
    tables::Form,
    values,
};

/// So long a call waits before it looks for signals, such as Ctrl-C.
const SLICE: Duration = Duration::from_millis(50);

/// What is told of waits, in words.
type Stalls = Arc<Mutex<Vec<String>>>;

/// The level of a warning.
const WARNING: u32 = 2;

/// A graph that runs. Every wait is without the interpreter's lock.
#[pyclass(frozen, weakref, module = "forebay._native")]
pub(crate) struct Loader {
    /// None once it is closed.
    inner: Mutex<Option<forebay_loader::Loader>>,
    stopper: Stopper,
    /// Of all samples that were given, if that is wanted. Boxed: it needs lines of 64 bytes, which Python's allocator does not keep to.
    digest: Option<Box<Mutex<Digest>>>,
    names: values::Names,
    /// What its functions are known by.
    tag: u64,
    /// What was told of waits, and is not logged yet.
    stalls: Stalls,
    /// The process that made it: a fork has none of its threads.
    process: u32,
}

/// Which sample it is, in words that are made when they are asked for.
#[pyclass(frozen, module = "forebay._native")]
pub(crate) struct Origin {
    #[pyo3(get)]
    uid: u64,
    key: Key,
}

#[pymethods]
impl Origin {
    #[new]
    fn new(uid: u64, key: &str) -> Self {
        Self { uid, key: Key::whole(key) }
    }

    #[getter]
    fn key(&self) -> String {
        self.key.to_string()
    }
}

/// How a graph is to run, as Python says it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Settings {
    executor: Option<String>,
    seed: Option<u64>,
    epochs: Option<u64>,
    budget: Option<u64>,
    ahead: Option<u64>,
    limit: Option<u64>,
    ranks: Option<(u32, u32)>,
    shuffles: bool,
    allow_failures: bool,
    timeout: Option<f64>,
    audit: Option<std::path::PathBuf>,
    record: Option<std::path::PathBuf>,
    replay: Option<std::path::PathBuf>,
    worker: Vec<String>,
    tag: u64,
    chunk: Option<usize>,
    digest: bool,
    /// Where pipes of this process find memory for batches.
    stock: Option<Py<Stock>>,
    stall: f64,
    views: bool,
}

impl Settings {
    fn build(
        self,
        graph: forebay_loader::Graph,
        registry: &forebay_loader::Registry,
        stalls: &Stalls,
    ) -> Result<forebay_loader::Loader> {
        let executor = self.executor.as_ref().or(graph.run.executor.as_ref());
        let executor = executor.map_or(Ok(Executor::default()), |text| text.parse())?;
        let mut builder = forebay_loader::Loader::builder(graph)
            .executor(executor)
            .shuffles(self.shuffles)
            .allow_failures(self.allow_failures);
        // Inline, nobody but a thread more could tell of a wait, and each call of a pipe would note the time for it.
        if executor != Executor::Inline {
            let stalls = Arc::clone(stalls);
            let tell = move |stall: &Stall| locked(&stalls).push(stall.to_string());
            builder = builder.on_stall(seconds(self.stall)?, tell);
        }
        if let Some(seed) = self.seed {
            builder = builder.seed(seed);
        }
        if let Some(epochs) = self.epochs {
            builder = builder.epochs(epochs);
        }
        if let Some(budget) = self.budget {
            builder = builder.budget(budget);
        }
        if let Some(ahead) = self.ahead {
            builder = builder.ahead(ahead);
        }
        if let Some(limit) = self.limit {
            builder = builder.limit(limit);
        }
        if let Some(chunk) = self.chunk {
            builder = builder.chunk(chunk);
        }
        if let Some((rank, world_size)) = self.ranks {
            builder = builder.ranks(rank, world_size);
        }
        if let Some(limit) = self.timeout {
            builder = builder.timeout(seconds(limit)?);
        }
        if let Some(file) = self.audit {
            builder = builder.audit(file);
        }
        if let Some(file) = self.record {
            builder = builder.record(file);
        }
        if let Some(file) = self.replay {
            builder = builder.replay(file);
        }
        if let Some(stock) = self.stock {
            let shelves = stock.get().shelves();
            builder = builder.memory(move |len| shelves.take(len));
        }
        if let Some((program, args)) = self.worker.split_first() {
            builder = builder.worker(WorkerProgram::new(program).args(args));
        }
        builder.build(&registry.with_tag(self.tag))
    }
}

fn seconds(count: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(count).map_err(|error| Error::invalid(error.to_string()))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Loader {
    /// A sample as a dict.
    fn shown<'py>(
        &self,
        py: Python<'py>,
        kind: Option<&Bound<'py, PyType>>,
        sample: &mut Sample,
    ) -> PyResult<Bound<'py, PyDict>> {
        let Some(kind) = kind else { return values::fields_of(py, &self.names, sample) };
        let dict = kind.call0()?;
        let origin = Origin { uid: sample.uid(), key: sample.key().clone() };
        dict.setattr(intern!(py, "_origin"), Bound::new(py, origin)?)?;
        let dict = dict.cast_into::<PyDict>()?;
        values::fill(&dict, &self.names, sample)?;
        Ok(dict)
    }

    /// The next sample, unless the epoch has ended; `Pending` if none came within so many seconds.
    fn poll(&self, py: Python<'_>, seconds: Option<f64>) -> PyResult<Poll<Option<Sample>>> {
        let limit = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let until = limit.and_then(|limit| Instant::now().checked_add(limit));
        loop {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let slice = left.map_or(SLICE, |left| left.min(SLICE));
            match self.with(py, |loader| Ok(loader.next_within(slice)))? {
                Poll::Ready(Some(Ok(sample))) => {
                    if let Some(digest) = &self.digest {
                        py.detach(|| locked(digest).update(&sample));
                    }
                    return Ok(Poll::Ready(Some(sample)));
                }
                Poll::Ready(Some(Err(error))) => return Err(exception(py, &error)),
                Poll::Ready(None) => return Ok(Poll::Ready(None)),
                Poll::Pending if left == Some(Duration::ZERO) => return Ok(Poll::Pending),
                Poll::Pending => {
                    py.check_signals()?;
                    self.log(py)?;
                }
            }
        }
    }

    /// The next sample, unless the epoch has ended.
    fn sample(&self, py: Python<'_>, seconds: Option<f64>) -> PyResult<Option<Sample>> {
        match self.poll(py, seconds)? {
            Poll::Ready(sample) => Ok(sample),
            Poll::Pending => Err(PyTimeoutError::new_err("no sample came in time")),
        }
    }

    /// Has what there is to tell logged, while a call waits anyway.
    fn log(&self, py: Python<'_>) -> PyResult<()> {
        let lines = self.take_log(py);
        if lines.is_empty() {
            return Ok(());
        }
        py.import("forebay._loader")?.getattr("tell")?.call1((lines,)).map(drop)
    }

    fn lock(&self) -> MutexGuard<'_, Option<forebay_loader::Loader>> {
        locked(&self.inner)
    }

    /// Has it end, which another thread waits for; what failed at that is heard of it. None if it has ended, or is not of this process.
    fn end(&self) -> Option<Receiver<Result<()>>> {
        let loader = self.lock().take()?;
        if self.process != std::process::id() {
            // A fork has none of its threads, and would wait for them for ever.
            std::mem::forget(loader);
            return None;
        }
        self.stopper.stop();
        let (tell, told) = mpsc::channel();
        // Nobody may be there to hear of it. Without another thread the loader is waited for here.
        let named = thread::Builder::new().name("forebay-reaper".into());
        let end = move || {
            let ended = loader.finish();
            // Objects of Python's that were let go of without its lock go when somebody takes it.
            let _ = Python::try_attach(|_| ());
            tell.send(ended)
        };
        named.spawn(end).ok().map(|_| told)
    }

    /// Whoever asks from within a function of the loader would wait for that very function.
    fn refuse_within(&self) -> PyResult<()> {
        if !pipes::is_within(self.tag) {
            return Ok(());
        }
        Err(PyRuntimeError::new_err(
            "a function of this loader's graph asked for this loader, which waits for that function: give the function what it needs, or make it a \
             loader of its own",
        ))
    }

    /// Does something with the loader, without the interpreter's lock.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut forebay_loader::Loader) -> Result<T> + Send,
    ) -> PyResult<T> {
        if self.process != std::process::id() {
            return Err(PyRuntimeError::new_err(
                "this loader was made before a fork, and its threads are not in this process: make one here, or start the process by spawn",
            ));
        }
        self.refuse_within()?;
        let done = py.detach(|| self.lock().as_mut().map(work));
        match done {
            Some(done) => raise(py, done),
            None => Err(PyRuntimeError::new_err("the loader was closed")),
        }
    }
}

#[pymethods]
impl Loader {
    #[new]
    fn new(py: Python<'_>, graph: &Graph, registry: &Registry, settings: Settings) -> PyResult<Self> {
        let digest = settings.digest.then(Box::default);
        let tag = settings.tag;
        let names = values::Names::viewing(settings.views);
        let stalls = Stalls::default();
        let built = py.detach(|| settings.build(graph.0.clone(), &registry.0, &stalls));
        let loader = raise(py, built)?;
        let stopper = loader.stopper();
        Ok(Self {
            inner: Mutex::new(Some(loader)),
            stopper,
            digest,
            names,
            tag,
            stalls,
            process: std::process::id(),
        })
    }

    /// Begins an epoch.
    fn begin(&self, py: Python<'_>, epoch: u64) -> PyResult<()> {
        self.with(py, |loader| {
            loader.begin(epoch);
            Ok(())
        })
    }

    /// Goes on where a snapshot was taken; nodes, plugins and files named in `allowed` may differ. Gives the epoch, how many samples of it were
    /// delivered before, and whether all were.
    fn resume(&self, py: Python<'_>, snapshot: &str, allowed: Vec<String>) -> PyResult<(u64, u64, bool)> {
        let snapshot = raise(py, Snapshot::from_json(snapshot))?;
        let place = (snapshot.epoch, snapshot.delivered, snapshot.ended);
        self.with(py, |loader| loader.remainder_allowing(&snapshot, &allowed).map(drop))?;
        Ok(place)
    }

    /// The fields of the next sample, in a new dict of the type `kind`, which gets its [`Origin`]; in a plain one where that is None. None at the
    /// end of the epoch. After so many seconds, if they are given, TimeoutError is raised.
    #[pyo3(signature = (kind, seconds=None))]
    fn next<'py>(
        &self,
        py: Python<'py>,
        kind: Option<&Bound<'py, PyType>>,
        seconds: Option<f64>,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let sample = self.sample(py, seconds)?;
        sample.map(|mut sample| self.shown(py, kind, &mut sample)).transpose()
    }

    /// As [`next`](Self::next) in a tuple, which is empty if no sample is there yet.
    fn next_if_there<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        match self.poll(py, Some(0.0))? {
            Poll::Ready(Some(mut sample)) => PyTuple::new(py, [self.shown(py, None, &mut sample)?]),
            Poll::Ready(None) => PyTuple::new(py, [py.None()]),
            Poll::Pending => Ok(PyTuple::empty(py)),
        }
    }

    /// The next batch as columns of Arrow's, which are those of the form's first; None at the end of the epoch.
    fn next_columns(&self, py: Python<'_>, form: &Form) -> PyResult<Option<Columns>> {
        let Some(batch) = self.sample(py, None)? else { return Ok(None) };
        let columns =
            py.detach(|| form.columns(&batch).map_err(|error| error.context("sample", batch.key())));
        raise(py, columns).map(Some)
    }

    /// Where the run is, as JSON; or where it was after so many samples of this epoch.
    #[pyo3(signature = (delivered=None))]
    fn snapshot(&self, py: Python<'_>, delivered: Option<u64>) -> PyResult<String> {
        self.with(py, |loader| {
            let found =
                delivered.map_or_else(|| loader.snapshot(), |delivered| loader.snapshot_at(delivered));
            Ok(found?.to_json())
        })
    }

    /// Has [`snapshot`](Self::snapshot) know where it was up to so many samples ago.
    fn taken_ahead(&self, py: Python<'_>, most: u64) -> PyResult<()> {
        self.with(py, |loader| {
            loader.taken_ahead(most);
            Ok(())
        })
    }

    /// The digest of all samples that were given, if it was asked for.
    fn digest(&self) -> Option<String> {
        self.digest.as_ref().map(|digest| locked(digest).finish())
    }

    /// How many samples an epoch has, where that is known.
    fn len(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        self.with(py, |loader| loader.len())
    }

    /// What each node did so far, as JSON, and the stage that limits the rate.
    fn stats(&self, py: Python<'_>) -> PyResult<(String, String)> {
        let stats = self.with(py, |loader| Ok(loader.stats()))?;
        Ok((json(&stats)?, stats.limiting()))
    }

    /// What may not be meant in its graph, and the graph does not ask for: node, and what to do. `locked` says whether the interpreter has a lock,
    /// `counts` whether sources are asked how many samples they have.
    fn lints(&self, py: Python<'_>, locked: bool, counts: bool) -> PyResult<Vec<(String, String)>> {
        self.with(py, |loader| {
            let turns = locked.then(|| explain::in_turns(loader.graph(), loader.plan(), loader.executor()));
            let lints = loader.lints(counts).into_iter().chain(turns.into_iter().flatten());
            Ok(lints.filter(|lint| !lint.chosen).map(|lint| (lint.node, lint.message)).collect())
        })
    }

    /// The samples that were left out: node, key, uid, and the exception.
    fn quarantine<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let lost = self.with(py, |loader| Ok(loader.quarantine()))?;
        let tuple = |lost: &forebay_loader::LostSample| {
            let error = exception(py, &lost.error).into_value(py);
            (lost.node.as_str(), lost.key.as_deref(), lost.uid, error).into_pyobject(py)
        };
        lost.iter().map(tuple).collect()
    }

    /// The lines that were logged since the last time, and what was told of waits: level, from 1 for an error to 4, and text. None once it is closed,
    /// and from within a function of the loader.
    fn take_log(&self, py: Python<'_>) -> Vec<(u32, String)> {
        if self.process != std::process::id() || pipes::is_within(self.tag) {
            return Vec::new();
        }
        let mut lines =
            py.detach(|| self.lock().as_ref().map(forebay_loader::Loader::take_log)).unwrap_or_default();
        lines.extend(locked(&self.stalls).drain(..).map(|line| (WARNING, line)));
        lines
    }

    /// The ids of the worker processes.
    fn worker_processes(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        self.with(py, |loader| Ok(loader.worker_processes()))
    }

    /// Stops it, waits until nothing of it runs any more, and tells what failed at that; to do so again does nothing. After so many seconds, if
    /// they are given, it is left to itself: a thread may be in a read that never ends.
    #[pyo3(signature = (seconds=None))]
    fn close(&self, py: Python<'_>, seconds: Option<f64>) -> PyResult<()> {
        self.refuse_within()?;
        let Some(mut ended) = py.detach(|| self.end()) else { return Ok(()) };
        let begin = Instant::now();
        loop {
            let heard;
            (heard, ended) = py.detach(move || (ended.recv_timeout(SLICE), ended));
            match heard {
                Ok(result) => return raise(py, result),
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Err(RecvTimeoutError::Timeout) => {}
            }
            py.check_signals()?;
            if seconds.is_some_and(|seconds| begin.elapsed().as_secs_f64() > seconds) {
                return Ok(());
            }
        }
    }
}

impl Drop for Loader {
    /// Another thread waits for the end of its threads: this one has the interpreter's lock, which they may want.
    fn drop(&mut self) {
        drop(self.end());
    }
}
