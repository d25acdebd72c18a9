"""Loaders: run a dataset, epoch by epoch."""

from __future__ import annotations

import atexit
import functools
import json
import logging
import os
import threading
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from forebay import _calls, _device, _lints, _worker, plugins
from forebay._errors import ForebayError, InvalidError
from forebay._native import Array, Columns, Form, Graph, Origin, arrow_stream
from forebay._native import Loader as Native
from forebay._nodes import Node
from forebay._settings import bytes_of, executor_of, locked, ranks_of, whole
from forebay._stats import Stats

if TYPE_CHECKING:
    from forebay._dataset import Dataset

OUTPUTS = ("batch", "numpy", "torch", "jax", "arrow")
LEVELS = {1: logging.ERROR, 2: logging.WARNING, 3: logging.INFO, 4: logging.DEBUG}
log = logging.getLogger("forebay")
log.addHandler(logging.NullHandler())

_live: weakref.WeakSet[Native] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """Ends all loaders before the interpreter does. A thread in a read that never ends holds nobody up."""
    for native in list(_live):
        try:
            native.close(1.0)
        except ForebayError as error:
            log.warning("a loader failed as it ended: %s", error)


class Batch(dict[str, Any]):
    """The fields of a sample or a batch, by their names. ``uid`` and ``key`` identify it."""

    __slots__ = ("_origin",)

    _origin: Origin

    @property
    def uid(self) -> int:
        """The number of the sample, unique in its epoch."""
        return self._origin.uid

    @property
    def key(self) -> str:
        """The key: where the sample comes from. For a batch, the key of its first sample."""
        return self._origin.key

    def to(self, device: Any, non_blocking: bool = False) -> dict[str, Any]:
        """Returns a dict of torch tensors on this device. Structs become dicts; values that are no arrays stay as they are."""
        import torch

        found: dict[str, Any] = _device.moved(self, torch.device(device), non_blocking)
        return found

    def pin_memory(self) -> dict[str, Any]:
        """Returns a dict of torch tensors in pinned memory, from which a device can copy by itself."""
        found: dict[str, Any] = _device.pinned(self)
        return found

    def __reduce__(self) -> Any:
        return _batch, (dict(self), self.uid, self.key)

    def _repr_html_(self) -> str:
        from forebay import _html

        return _html.sample(self)


def _batch(fields: dict[str, Any], uid: int, key: str) -> Batch:
    batch = Batch(fields)
    batch._origin = Origin(uid, key)
    return batch


class Lost(NamedTuple):
    """A sample that was left out, and why."""

    node: str
    key: str | None
    uid: int | None
    error: ForebayError


class Epoch(Iterator[Any]):
    """The samples of one epoch. ``epoch`` is its number; ``start`` is how many samples came before a resume."""

    def __init__(self, loader: Loader, epoch: int, start: int) -> None:
        self._loader = loader
        self.epoch = epoch
        self.start = start
        self._turn = object()
        self._kind, self._output = loader._kind, loader.output
        self._ahead = loader._copied_ahead(start)

    def __iter__(self) -> Epoch:
        return self

    def __next__(self) -> Any:
        loader = self._loader
        if self._turn is not loader._now:
            raise StopIteration
        kind = self._kind
        if kind is None and self._output == "arrow":
            return _arrow_batch(self._columns(Form()))
        found = loader._native.next(kind) if self._ahead is None else self._ahead.take()
        if found is None:
            loader._log()
            raise StopIteration
        return found if kind is not None or self._ahead is not None else _shown(found, self._output, loader._pinned)

    def _columns(self, form: Form) -> Iterator[Columns]:
        """What is left of the epoch, as columns of one form."""
        loader = self._loader
        while self._turn is loader._now and (found := loader._native.next_columns(form)) is not None:
            yield found
        loader._log()


class Loader:
    """Runs a dataset, and gives its samples epoch by epoch: each ``iter()`` is the next epoch.

    num_workers: how many threads work; 0 is inline, on the caller's thread. ``executor`` is the full form:
    ``"inline"``, ``"threads:4"`` or ``"processes:4"``.
    seed: the seed of all random choices.
    epochs: how many epochs you will read; the next starts while the last is still being delivered.
    ranks: ``(rank, world_size)``, or ``"env"`` for ``RANK`` and ``WORLD_SIZE``.
    budget: the most bytes that wait between pipes, as ``"256MiB"``.
    shuffles: ``False`` leaves out pipes that shuffle, for validation.
    digest: computes the digest for :meth:`digest`.
    views: gives bytes as a read-only ``memoryview`` of the memory that they were read into, instead of a copy as
    ``bytes``. A view keeps all of that memory, which can be a whole file.
    output: ``"batch"`` gives :class:`Batch` with :class:`Array`; ``"numpy"``, ``"torch"`` and ``"jax"`` give a
    ``dict`` of their arrays; ``"arrow"`` gives a ``pyarrow.RecordBatch`` for each batch.
    pin_memory: with ``output="torch"``, gives tensors in pinned memory, from which CUDA copies by itself:
    ``.to("cuda", non_blocking=True)``. On threads, batches are made in pinned memory; batches of worker processes
    are copied into it once. Without an accelerator, there is a warning.
    """

    def __init__(
        self,
        dataset: Dataset,
        *,
        num_workers: int | None = None,
        executor: str | None = None,
        seed: int | None = None,
        epochs: int | None = None,
        ranks: tuple[int, int] | str | None = None,
        budget: int | str | None = None,
        ahead: int | None = None,
        limit: int | None = None,
        shuffles: bool = True,
        allow_failures: bool = False,
        timeout: float | None = None,
        audit: str | os.PathLike[str] | None = None,
        record: str | os.PathLike[str] | None = None,
        replay: str | os.PathLike[str] | None = None,
        output: str = "batch",
        digest: bool = False,
        pin_memory: bool = False,
        views: bool = False,
        _chunk: int | None = None,
        _stall: float = 10.0,
        _warns: bool = True,
    ) -> None:
        _calls.refuse_in_main()
        if output not in OUTPUTS:
            raise InvalidError(f"output is {output!r}, expected one of {', '.join(OUTPUTS)}")
        if pin_memory and output != "torch":
            raise InvalidError(f"found pin_memory=True and output={output!r}, expected output='torch', because pinned memory belongs to torch")
        executor = executor_of(num_workers, executor)
        self.dataset = dataset
        self.output = output
        self._kind = Batch if output == "batch" else None
        self._device: Any = None
        self._copies: _device.Copies | None = None
        self._settings: dict[str, Any] = {
            "executor": executor,
            "seed": whole("seed", seed),
            "epochs": whole("epochs", epochs),
            "budget": whole("budget", bytes_of(budget)),
            "ahead": whole("ahead", ahead),
            "limit": whole("limit", limit),
            "ranks": ranks_of(ranks),
            "shuffles": shuffles,
            "allow_failures": allow_failures,
            "timeout": timeout,
            "audit": None if audit is None else os.fspath(audit),
            "record": None if record is None else os.fspath(record),
            "replay": None if replay is None else os.fspath(replay),
            "chunk": _chunk,
            "digest": digest,
            "pin_memory": pin_memory,
            "stall": _stall,
            "views": views,
        }
        graph, sent = _placed(dataset, executor)
        tag = _calls.register(dataset._functions)
        # Worker processes make batches in memory that they share with this one.
        here = sent is None and not (executor or "").startswith("processes")
        self._pinned = _device.Pinned(stocks=here) if pin_memory and _device.has_accelerator() else None
        stock = self._pinned.stock if self._pinned is not None else None
        settings = {**self._settings, "worker": _worker.command(sent), "tag": tag, "stock": stock}
        self._native = Native(graph, plugins.registry(), settings)
        self._released = weakref.finalize(self, _release, tag, sent)
        _live.add(self._native)
        if _warns:
            _lints.warn(self._not_meant())
        self._lock = threading.Lock()
        self._epoch = 0
        # The turn of the epoch that is read now, and not that epoch: it keeps its loader, and a loader that is dropped ends its workers at once.
        self._now: object | None = None
        # What that epoch takes ahead of whoever iterates.
        self._ahead: _device.Ahead | None = None
        self._state: str | None = None
        # Whether the next epoch was named, and is not begun.
        self._named = False

    def __iter__(self) -> Epoch:
        """The next epoch, from its start. After :meth:`load_state_dict`, the rest of the epoch of the state."""
        if self._settings["pin_memory"] and self._pinned is None:
            warnings.warn(_device.NO_ACCELERATOR, stacklevel=2)
        with self._lock:
            epoch, start = self._epoch, 0
            self._named = False
            if self._state is not None:
                epoch, start, ended = self._native.resume(self._state, [])
                self._state = None
                if ended:
                    epoch, start = epoch + 1, 0
                    self._native.begin(epoch)
            else:
                self._native.begin(epoch)
            self._epoch = epoch + 1
            begun = Epoch(self, epoch, start)
            self._now, self._ahead = begun._turn, begun._ahead
            return begun

    def epochs(self) -> Iterator[Epoch]:
        """The epochs that are left of ``epochs``. Iterate over each to its end."""
        count = 1 if self._settings["epochs"] is None else self._settings["epochs"]
        if self._state is not None:
            self._epoch = _epoch_of(self._state)
        while self._epoch < count:
            yield iter(self)

    def to(self, device: Any) -> Loader:
        """Makes all following epochs give their batches on a device, as dicts of torch tensors. Returns the loader
        itself.

        On CUDA, a batch is copied from pinned memory, by a stream of its own, while the device works on the batch
        before. You can use the batch at once, on the stream that is current when you take it. The device needs memory
        for one more batch. A state does not include a batch that is being copied; :meth:`digest` and :meth:`stats`
        do. For the CPU nothing is copied.
        """
        import torch

        if self.output not in ("batch", "torch"):
            raise InvalidError(f"output is {self.output!r}, expected 'torch', because batches on a device are torch tensors")
        self._device = torch.device(device)
        self._copies = _device.copies_to(self._device)
        self.output, self._kind = "torch", None
        return self

    def _copied_ahead(self, start: int) -> _device.Ahead | None:
        """The batches of an epoch on the device; None where they are as they come."""
        if self._copies is None:
            return None
        self._native.taken_ahead(1)
        return _device.Ahead(functools.partial(_fetched, self._native, self._pinned), self._copies, start)

    def _not_meant(self) -> Iterator[tuple[str, str]]:
        """What may not be meant: the node, and what to do."""
        written = {node["name"]: node.get("function", "").partition("@")[0] for node in self.dataset._nodes}
        # Python's own can be counted; others might have to list files first.
        counts = all(node["pipe"] == "py_indexed" for node in self.dataset._nodes if not node["inputs"])
        for node, message in self._native.lints(locked(), counts):
            if self._settings["ranks"] is not None and node not in written and "." not in node:
                message += f"; ranks add `{node}`, unless you call it as a method of the dataset, with its options"
            yield (f"{node} ({written[node]})" if written.get(node) else node), message

    def _log(self) -> None:
        tell(self._native.take_log())

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The batches of the next epoch as an Arrow stream, for pyarrow, polars, pandas, DuckDB and others."""
        return arrow_stream(iter(self)._columns(Form()))

    def __len__(self) -> int:
        """How many samples, or batches, an epoch has."""
        count = self._native.len()
        if count is None:
            raise TypeError("the number of samples of an epoch depends on the data, or is endless")
        return count

    def __bool__(self) -> bool:
        return True

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch of the next ``iter()``. If a loaded state is in this epoch, the loader still resumes from the state."""
        whole("epoch", epoch)
        with self._lock:
            if self._state is not None and _epoch_of(self._state) == epoch:
                return
            self._epoch, self._state, self._named = epoch, None, True

    def state_dict(self) -> dict[str, Any]:
        """The place of the loader: after the samples that were taken from it so far. It is cheap, at any time."""
        if self._named:
            return {"forebay": 1, "epoch": self._epoch}
        if self._state is not None:
            return {"forebay": 1, "snapshot": self._state}
        return {"forebay": 1, "snapshot": self._native.snapshot(self._ahead.given if self._ahead is not None else None)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Makes the next ``iter()`` go on from ``state``, on any executor and number of ranks. ``{}`` starts again."""
        with self._lock:
            if not state or (state.get("forebay") == 1 and "epoch" in state):
                self._state, self._epoch, self._named = None, int(state.get("epoch", 0)), True
                return
            if state.get("forebay") != 1 or not isinstance(state.get("snapshot"), str):
                raise InvalidError("found no state of a Forebay loader, expected the result of state_dict()")
            self._state, self._named = state["snapshot"], False

    def stats(self) -> Stats:
        """What each node did so far: a mapping that prints as a table. ``limiting`` names the stage that limits the rate."""
        text, limiting = self._native.stats()
        return Stats({**json.loads(text), "limiting": limiting})

    def digest(self) -> str:
        """The digest of all samples that were taken so far, as in ``forebay run --digest``. It needs ``digest=True``."""
        found = self._native.digest()
        if found is None:
            raise InvalidError("found no digest: make the loader with digest=True")
        return found

    def quarantine(self) -> list[Lost]:
        """The samples that were left out."""
        return [Lost(*lost) for lost in self._native.quarantine()]

    def worker_processes(self) -> list[int]:
        """The ids of its worker processes."""
        return self._native.worker_processes()

    def close(self) -> None:
        """Stops the loader, and waits until all of its work has ended."""
        self._log()
        self._native.close()
        self._now = self._ahead = None
        self._released()

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<forebay.Loader of {self.dataset!r}>"

    def __reduce__(self) -> Any:
        state = self.state_dict() if self._now is not None or self._state is not None else None
        return _rebuilt, (self.dataset, self.output, self._settings, state, self._epoch, self._device)


def tell(lines: Iterable[tuple[int, str]]) -> None:
    """Logs what a loader has to say. It is called while a loader waits, too."""
    for level, line in lines:
        log.log(LEVELS.get(level, logging.INFO), "%s", line)


def _epoch_of(state: str) -> int:
    """The epoch that a state goes on in."""
    snapshot = json.loads(state)
    return int(snapshot["epoch"]) + bool(snapshot["ended"])


def _rebuilt(
    dataset: Dataset, output: str, settings: dict[str, Any], state: dict[str, Any] | None, epoch: int, device: Any
) -> Loader:
    settings = dict(settings)
    chunk, stall = settings.pop("chunk"), settings.pop("stall")
    loader = Loader(dataset, output=output, _chunk=chunk, _stall=stall, _warns=False, **settings)
    if device is not None:
        loader.to(device)
    loader.set_epoch(epoch)
    if state is not None:
        loader.load_state_dict(state)
    return loader


def _placed(dataset: Dataset, executor: str | None) -> tuple[Graph, _calls.Sent | None]:
    """The graph with places for its functions, and those as workers find them.

    Where the interpreter has a lock, functions that have no place run in processes if the rest runs on threads.
    """
    away = {node.get("function") for node in dataset._nodes if not _runs_here(node)}
    functions = {called: function for called, function in dataset._functions.items() if called in away}
    executor = executor or dataset._run.get("executor") or "threads"
    nodes = [node for node in dataset._nodes if "function" in node and node["pipe"].startswith("py_")]
    if not functions:
        return dataset._graph(), None
    asked = executor.startswith("processes") or any(node.get("on") == "process" for node in nodes)
    free = [node["name"] for node in nodes if "on" not in node and not _runs_here(node)]
    moves = bool(free) and executor.startswith("threads") and locked()
    if not asked and not moves:
        return dataset._graph(), None
    try:
        sent = _calls.Sent(functions)
    except InvalidError as error:
        if asked:
            raise
        log.info("functions run on threads, only one at a time: %s", error)
        return dataset._graph(), None
    _calls.listen(sent)
    # Said in so many words, so that nobody is told that it might not be meant.
    maps = [node["name"] for node in nodes if node["pipe"] != "py_indexed" and node["name"] in free]
    return dataset._graph(dict.fromkeys(free if moves else maps, "process")), sent


def _runs_here(node: Node) -> bool:
    """Whether a node stays in this process wherever the others run. Sources and samplers do, which the program may talk to."""
    return node.get("on") in ("threads", "own_thread") or (node["pipe"] in ("py_source", "py_sampler") and "on" not in node)


def _release(tag: int, sent: _calls.Sent | None) -> None:
    _calls.forget(tag)
    if sent is not None:
        sent.close()


def _fetched(native: Native, pinned: _device.Pinned | None, waits: bool) -> Any:
    """The next batch as torch's tensors, for its way to a device."""
    if waits:
        found = native.next(None)
    else:
        there = native.next_if_there()
        if not there:
            return _device.LATE
        (found,) = there
    return None if found is None else _shown(found, "torch", pinned)


def _shown(fields: dict[str, Any], output: str, pinned: _device.Pinned | None) -> Any:
    """The fields as another library has them."""
    if pinned is not None:
        return pinned.of(fields)
    show = {"numpy": _numpy, "torch": _torch, "jax": _jax}[output]
    return {name: _inside(value, show) for name, value in fields.items()}


def _inside(value: Any, show: Callable[[Array], Any]) -> Any:
    """The value with arrays shown, also those in dicts and lists."""
    if isinstance(value, Array):
        return show(value)
    if isinstance(value, dict):
        return {name: _inside(item, show) for name, item in value.items()}
    if isinstance(value, list):
        # A list of a thousand texts is looked at once.
        first = next((item for item in value if item is not None), None)
        return [_inside(item, show) for item in value] if isinstance(first, (Array, dict, list)) else value
    return value


def _arrow_batch(columns: Iterator[Columns]) -> Any:
    """The next of them, as pyarrow's."""
    import pyarrow

    return pyarrow.record_batch(next(columns))


def _numpy(array: Array) -> Any:
    return array.numpy()


def _torch(array: Array) -> Any:
    return array.torch()


def _jax(array: Array) -> Any:
    import jax

    return jax.dlpack.from_dlpack(array)
